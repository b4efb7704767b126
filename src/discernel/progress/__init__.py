"""What a long fit reports while it runs, and the deadline that it keeps."""

from discernel.progress.reporter import in_words, phase, reporting

__all__ = ["in_words", "phase", "reporting"]
