"""The data sets of the papers, by name.

`load` finds a set in this order: it ships with scikit-learn or follows from a rule; it lies in
the folder that the environment variable ``DISCERNEL_DATA`` names; it is fetched from OpenML and
kept in scikit-learn's cache. Shape, missing values and class counts are checked each time.
"""

from discernel.exceptions import DataUnavailableError
from discernel.rows.datasets.catalog import names, private_names
from discernel.rows.datasets.generators import make_waveform
from discernel.rows.datasets.loading import Dataset, load

__all__ = [
    "DataUnavailableError",
    "Dataset",
    "load",
    "make_waveform",
    "names",
    "private_names",
]
