"""The papers' data sets by name: `load` and `names`."""

from discernel.exceptions import DataUnavailableError
from discernel.rows.catalog import names, private_names
from discernel.rows.datasets import Dataset, load
from discernel.rows.generators import make_waveform

__all__ = [
    "DataUnavailableError",
    "Dataset",
    "load",
    "make_waveform",
    "names",
    "private_names",
]
