"""Progress of a long fit, and its deadline."""

from discernel.progress.reporter import in_words, phase, reporting

__all__ = ["in_words", "phase", "reporting"]
