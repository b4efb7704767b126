"""A fitted model, or records of a comparison, as one self-contained HTML file."""

from discernel.compare.report import write_report
from discernel.report.model import RowExplanation, write_model_report

__all__ = ["RowExplanation", "write_model_report", "write_report"]
