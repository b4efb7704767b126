"""Records or a fitted model in, one self-contained HTML file out. Nothing is fitted here."""

from discernel.report.model import RowExplanation, write_model_report
from discernel.report.page import write_report

__all__ = ["RowExplanation", "write_model_report", "write_report"]
