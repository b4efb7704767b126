"""Reports of comparisons as self-contained HTML files. Nothing is fitted here."""

from discernel.compare.report.page import write_report

__all__ = ["write_report"]
