"""Models outside of discernel: as ONNX, or as a Python file that needs NumPy alone."""

from discernel.export.scoring import numpy_scorer, write_scorer

__all__ = ["numpy_scorer", "write_scorer"]
