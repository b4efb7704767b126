"""Weights per source, under names that a person gave."""

import numpy as np
import pandas as pd

from discernel import MultipleKernelDiscriminant
from discernel.kernels import RBF, Linear, Precomputed
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


def test_precomputed_matrices_are_sources_by_name() -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.arange(40) % 2
    stack = np.stack([RBF(width=width)(X) for width in (1.0, 3.0)], axis=-1)
    clf = MultipleKernelDiscriminant("precomputed", criterion="uniform").fit(stack, y)
    assert source_weights(clf) == {"matrix 0": 0.5, "matrix 1": 0.5}
    named = {"spectra": Precomputed(0), "texts": Precomputed(1)}
    clf = MultipleKernelDiscriminant(named, criterion="rkda").fit(stack, y)
    weights = source_weights(clf)
    assert list(weights) == ["spectra", "texts"]
    assert list(weights.values()) == clf.kernel_weights_.tolist()
    one = MultipleKernelDiscriminant("precomputed", criterion="uniform").fit(stack[:, :, 0], y)
    assert source_weights(one) == {"matrix 0": 1.0}
