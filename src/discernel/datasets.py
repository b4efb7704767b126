"""The data sets of the papers, by name: `load` and `names`."""

from discernel.exceptions import DataUnavailableError
from discernel.rows.datasets import Dataset, load, make_waveform, names, private_names

__all__ = [
    "DataUnavailableError",
    "Dataset",
    "load",
    "make_waveform",
    "names",
    "private_names",
]
