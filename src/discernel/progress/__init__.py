"""Progress reports and deadlines of long fits."""

from discernel.progress.reporter import in_words, phase, reporting

__all__ = ["in_words", "phase", "reporting"]
