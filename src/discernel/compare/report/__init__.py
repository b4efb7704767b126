"""Results of a comparison in, one self-contained HTML file out. Nothing is fitted here."""

from discernel.compare.report.page import write_report

__all__ = ["write_report"]
