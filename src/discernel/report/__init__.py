"""Reports on fitted models and comparisons, as self-contained HTML files."""

from discernel.compare.report import write_report
from discernel.report.model import RowExplanation, write_model_report

__all__ = ["RowExplanation", "write_model_report", "write_report"]
