"""Weights per source, under names that a person gave."""

import numpy as np
import pandas as pd

from discernel import MultipleKernelDiscriminant
from discernel.kernels import RBF, Linear
from discernel.views import source_weights


def test_a_dictionary_names_its_sources() -> None:
    """Its keys, where columns have one kernel each; else the columns."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    y = np.arange(40) % 2
    sources = {"lab": RBF().on(["a", "b"]), "scan": RBF().on(["c"])}
    clf = MultipleKernelDiscriminant(sources, criterion="uniform").fit(table, y)
    assert list(source_weights(clf)) == ["lab", "scan"]
    sources |= {"wide": RBF(width=9.0).on(["c"]), "mine": Linear().on(["a"], "ours")}
    clf = MultipleKernelDiscriminant(sources, criterion="uniform").fit(table, y)
    assert list(source_weights(clf)) == ["lab", "c", "ours"]
