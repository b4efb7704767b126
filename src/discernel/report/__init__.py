"""Records in, one self-contained HTML file out. Nothing is fitted here."""

from discernel.report.page import write_report

__all__ = ["write_report"]
