"""Exports of models: as ONNX, or as a Python file that needs only NumPy."""

from discernel.export.formula import numpy_scorer, write_scorer
from discernel.export.onnx_model import register_onnx, to_onnx

__all__ = ["numpy_scorer", "register_onnx", "to_onnx", "write_scorer"]
