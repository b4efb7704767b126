"""Models outside of discernel: as ONNX, or as a Python file that needs NumPy alone."""

from discernel.export.onnx_model import register_onnx, to_onnx
from discernel.export.scoring import numpy_scorer, write_scorer

__all__ = ["numpy_scorer", "register_onnx", "to_onnx", "write_scorer"]
