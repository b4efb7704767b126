"""Fits on small data whose numbers `same_results.py` compares: every part of the library once.

A cell is a name and a function that returns a few named arrays. Data are drawn, bundled with
scikit-learn, or, where ``DISCERNEL_DATA`` names their folder, the papers'. Cells that need a
package that is not installed raise ImportError, and are left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from discernel import (
    AKFDClassifier,
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    SeparabilityClassifier,
    align_kernels,
    learn_kernel,
    open_rows,
    regularization_path,
    reweigh_spectrum,
)
from discernel.bank import LowRank
from discernel.export import numpy_scorer, to_onnx
from discernel.inspection import contributions, similar_rows, source_importances
from discernel.kernels import (
    RBF,
    ChiSquared,
    Cosine,
    Exponential,
    Laplace,
    Linear,
    Polynomial,
    Standardized,
    WhereKnown,
    rbf_ladder,
)
from discernel.views import join_views, source_kernels, source_weights

Numbers = dict[str, Any]
Cell = tuple[str, Callable[[], Numbers]]

WIDTHS = [RBF(width=float(width)) for width in np.geomspace(0.1, 100.0, 10)]
FEW = [RBF(width=1.0), RBF(width=3.0), Laplace(width=2.0), Linear()]
BUNDLED = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
PAPERS = ("sonar", "ionosphere", "heart_statlog", "bupa", "pima")
TABLES = ("automobile", "colic", "german", "soybean")
#: Rows of a data set that are predicted, and of those drawn that are learned from.
N_PREDICTED, N_DRAWN = 40, 150

#: What is asked for; those in the second list are for two classes.
ASKED: dict[str, dict[str, Any]] = {
    "auto": {},
    "rkda 5e-4": {"criterion": "rkda", "regularization": 5e-4},
    "rkda joint": {"criterion": "rkda", "regularization": "joint"},
    "rkda loo": {"criterion": "rkda"},
    "rkda silp": {"criterion": "rkda", "solver": "silp", "regularization": 1e-2},
    "rkda galerkin": {"criterion": "rkda", "solver": "galerkin", "regularization": 1e-3},
    "rkda tiled": {"criterion": "rkda", "regularization": 1e-3, "bank": "tiled"},
    "loo": {"criterion": "loo"},
    "akfd": {"criterion": "akfd"},
    "alignment": {"criterion": "alignment"},
    "alignment qp": {"criterion": "alignment", "solver": "qp"},
    "separability": {"criterion": "separability"},
    "uniform": {"criterion": "uniform"},
}
TWO_CLASSES: dict[str, dict[str, Any]] = {
    "fdr 1e-8": {"criterion": "fdr", "regularization": 1e-8},
    "fdr 1e-3": {"criterion": "fdr", "regularization": 1e-3},
    "margin": {"criterion": "margin"},
}
#: Four that most other parts are tried with.
SOME: dict[str, dict[str, Any]] = {
    "auto": {},
    "rkda 1e-2": {"criterion": "rkda", "regularization": 1e-2, "tol": 1e-10},
    "loo": {"criterion": "loo"},
    "uniform": {"criterion": "uniform"},
}
KERNELS: dict[str, Any] = {"given": FEW, "auto": "auto"}


# ---- data ----------------------------------------------------------------------------------------


@cache
def drawn(name: str, n: int = N_DRAWN + N_PREDICTED) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and classes: three rings, a rare class, or few columns of twelve that matter."""
    rng = np.random.default_rng(len(name))
    if name == "rings":
        X = rng.normal(size=(n, 4))
        return X, np.digitize(np.hypot(X[:, 0], X[:, 1]) + 0.3 * rng.normal(size=n), [0.8, 1.6])
    if name == "rare":
        y = (np.arange(n) % 8 == 0).astype(int)
        return rng.normal(size=(n, 5)) + 1.2 * np.outer(y, [1.0, 1.0, 0.0, 0.0, 0.0]), y
    X = rng.normal(size=(n, 12))
    score = 1.5 - X[:, 1] ** 2 + 1.5 * X[:, 3] * X[:, 7] + 0.4 * rng.normal(size=n)
    return X, (score > 0).astype(int)


DRAWN = ("rings", "rare", "few columns")


@cache
def divided(name: str) -> tuple[Any, Any, np.ndarray]:
    """Return training rows, others, and the classes of the former; all standardised."""
    if name in DRAWN:
        X, y = drawn(name)
        return X[:N_DRAWN], X[N_DRAWN:], y[:N_DRAWN]
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else read_paper(name)
    train, test, y_train, _ = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test)[:N_PREDICTED], y_train


def read_paper(name: str) -> tuple[np.ndarray, np.ndarray]:
    path = Path(os.environ["DISCERNEL_DATA"]) / f"{name}.csv"
    table = np.genfromtxt(path, delimiter=",", dtype=str)[1:]
    return table[:, :-1].astype(float), np.unique(table[:, -1], return_inverse=True)[1]


def sets() -> list[str]:
    return [*BUNDLED, *DRAWN, *(PAPERS if os.environ.get("DISCERNEL_DATA") else ())]


@cache
def tables(kind: str) -> tuple[Any, np.ndarray]:
    """Return a table with categories and missing cells, and labels of text."""
    X, y = drawn("rings")
    rng = np.random.default_rng(5)
    town = np.where(y == 2, "Bath", rng.choice(["Ely", "Wells", "York"], len(y))).astype(object)
    town[rng.random(len(y)) < 0.1] = None
    X = np.where(rng.random(X.shape) < 0.08, np.nan, X)
    labels = np.array(["in", "mid", "out"])[y]
    if kind == "numbers with NaN":
        return X, labels
    cells = np.column_stack([X.astype(object), town, rng.integers(1, 4, len(y)).astype(object)])
    if kind == "objects":
        return cells, labels
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcd")).assign(town=town)
    frame["size"] = pd.Categorical(cells[:, -1])
    frame["member"] = rng.random(len(y)) < 0.5
    return frame, labels


def take(rows: Any, which: Any) -> Any:
    return rows.iloc[which] if hasattr(rows, "iloc") else rows[which]


def row_weights(kind: str, n: int) -> np.ndarray | None:
    rng = np.random.default_rng(7)
    if kind == "counts":
        return rng.integers(1, 4, n).astype(float)
    if kind == "some zero":
        return rng.integers(0, 3, n).astype(float)
    return None if kind == "none" else rng.uniform(0.2, 3.0, n)


# ---- numbers -------------------------------------------------------------------------------------


def as_array(found: Any) -> np.ndarray:
    """Return an array of NumPy, from Dask or from a device."""
    if hasattr(found, "compute"):
        found = found.compute()
    if hasattr(found, "cpu"):
        found = found.cpu()
    return np.asarray(found)


def describe(model: Any, rows: Any) -> Numbers:
    """Return what a fitted estimator has learned and says about rows."""
    numbers: Numbers = {}
    learned = getattr(model, "learned_kernel_", None)
    if learned is not None:
        numbers["weights"] = learned.weights
        numbers["regularization"] = learned.regularization
        numbers["objective"] = learned.objective
    for name in ("feature_importances_", "explained_variance_ratio_"):
        found = getattr(model, name, None)
        if found is not None:
            numbers[name] = found
    expected = getattr(model, "expected_", None)
    if expected is not None:
        numbers["expected"] = [one for one in vars(expected).values() if isinstance(one, float)]
    for name in ("predict_proba", "decision_function", "transform"):
        if hasattr(model, name):
            numbers[name] = as_array(getattr(model, name)(rows))
    if hasattr(model, "predict"):
        numbers["predict"] = codes(as_array(model.predict(rows)), getattr(model, "classes_", None))
    return numbers


def codes(labels: np.ndarray, classes: Any) -> np.ndarray:
    """Return numbers as they are, and text as positions among the classes."""
    return labels if labels.dtype.kind in "fiub" else np.searchsorted(np.asarray(classes), labels)


def fitted(model: Any, train: Any, y: Any, rows: Any, **fit: Any) -> Numbers:
    return describe(model.fit(train, y, **fit), rows)


# ---- criteria, tables, weights -------------------------------------------------------------------


def criteria_cells() -> Iterator[Cell]:
    def run(name: str, kernels: Any, options: dict[str, Any]) -> Numbers:
        train, test, y = divided(name)
        return fitted(MultipleKernelDiscriminant(kernels, **options), train, y, test)

    for name in sets():
        asked = ASKED | (TWO_CLASSES if len(np.unique(divided(name)[2])) == 2 else {})
        for (what, options), (kind, given) in product(
            asked.items(), {"widths": WIDTHS, "auto": "auto"}.items()
        ):
            yield f"{name}, {what}, {kind}", partial(run, name, given, options)


def table_cells() -> Iterator[Cell]:
    asked = SOME | {
        "balanced": {"class_weight": "balanced"},
        "uniform priors": {"priors": "uniform"},
        "costs": {"class_costs": [1.0, 2.0, 3.0]},
        "training": {"statistics": "training"},
        "auto 1e-2": {"regularization": 1e-2},
        "lowrank": {"bank": LowRank(40)},
    }

    def run(kind: str, options: dict[str, Any]) -> Numbers:
        rows, y = tables(kind)
        train, test = take(rows, slice(0, N_DRAWN)), take(rows, slice(N_DRAWN, None))
        return fitted(MultipleKernelDiscriminant(**options), train, y[:N_DRAWN], test)

    for kind, (what, options) in product(("frame", "objects", "numbers with NaN"), asked.items()):
        yield f"{kind}, {what}", partial(run, kind, options)

    def stored(name: str) -> Numbers:
        import pandas as pd

        path = Path(os.environ["DISCERNEL_DATA"]) / "tables" / f"{name}.csv.gz"
        table = pd.read_csv(path).sample(frac=1.0, random_state=0)
        rows, y = table.iloc[:, :-1], table.iloc[:, -1].to_numpy()
        test = rows.iloc[300 : 300 + N_PREDICTED] if len(rows) > 340 else rows.iloc[:N_PREDICTED]
        return fitted(MultipleKernelDiscriminant(), rows.iloc[:300], y[:300], test)

    for name in TABLES if os.environ.get("DISCERNEL_DATA") else ():
        yield f"{name}, first 300 rows", partial(stored, name)


def weight_cells() -> Iterator[Cell]:
    asked = SOME | {name: ASKED[name] for name in ("rkda loo", "akfd", "alignment")}

    def run(name: str, kind: str, kernels: Any, options: dict[str, Any]) -> Numbers:
        train, test, y = divided(name)
        model = MultipleKernelDiscriminant(kernels, **options)
        return fitted(model, train, y, test, sample_weight=row_weights(kind, len(y)))

    for name, kind in product(("rings", "rare"), ("counts", "some zero", "floats")):
        more = {n: TWO_CLASSES[n] for n in ("fdr 1e-3", "margin")} if name == "rare" else {}
        for (what, options), (given, kernels) in product((asked | more).items(), KERNELS.items()):
            yield (
                f"{name}, {kind}, {what}, {given}",
                partial(run, name, kind, kernels, options),
            )


def decision_cells() -> Iterator[Cell]:
    asked: dict[str, dict[str, Any]] = {
        "balanced": {"class_weight": "balanced"},
        "class weights": {"class_weight": {1: 7.5}},
        "priors": {"priors": [0.6, 0.4]},
        "costs": {"class_costs": "balanced"},
        "threshold": {"threshold": 0.3},
        "roc": {"threshold": "roc"},
        "training": {"statistics": "training"},
    }

    def run(name: str, kernels: Any, options: dict[str, Any]) -> Numbers:
        train, test, y = divided(name)
        return fitted(MultipleKernelDiscriminant(kernels, **options), train, y, test)

    for name, (what, options), (given, kernels) in product(
        ("rare", "few columns"), asked.items(), KERNELS.items()
    ):
        yield f"{name}, {what}, {given}", partial(run, name, kernels, options)


# ---- kernels and sources -------------------------------------------------------------------------


def given_kernels() -> dict[str, list[Any]]:
    """Return lists of kernels of all kinds, for rows of four columns."""
    return {
        "columns": [RBF(width=1.5).on([j]) for j in range(4)],
        "sources": [RBF().on([0, 1]), Laplace().on([2]), Linear().on([3])],
        "mixed": [RBF(), Laplace(), Exponential(), Linear(), Polynomial(degree=2), Cosine()],
        "standardized": [Standardized(kernel) for kernel in (RBF(), Linear())],
        "composed": [RBF() * Linear(), RBF() + Polynomial(degree=2), 2.0 * Laplace()],
        "scaled": [RBF(width=2.0, scales=(1.0, 0.5, 0.1, 0.0)), RBF(gamma=0.3)],
        "named": ["rbf", "laplacian", "linear", "poly"],
        "ladder": rbf_ladder(6),
    }


def kernel_cells() -> Iterator[Cell]:
    def run(kind: str, options: dict[str, Any]) -> Numbers:
        train, test, y = divided("rings")
        model = MultipleKernelDiscriminant(given_kernels()[kind], **options)
        return fitted(model, train, y, test)

    def matrices(options: dict[str, Any]) -> Numbers:
        train, test, y = divided("rings")
        stack, cross = (np.stack([k(Z, train) for k in FEW], axis=-1) for Z in (train, test))
        return fitted(MultipleKernelDiscriminant("precomputed", **options), stack, y, cross)

    def positive(options: dict[str, Any]) -> Numbers:
        train, test, y = divided("rings")
        model = MultipleKernelDiscriminant([ChiSquared(), RBF()], **options)
        return fitted(model, np.abs(train), y, np.abs(test))

    def thin(options: dict[str, Any]) -> Numbers:
        train, test, y = divided("few columns")
        train, test = (sparse.csr_array(Z * (np.abs(Z) > 0.7)) for Z in (train, test))
        return fitted(MultipleKernelDiscriminant(**options), train, y, test)

    for what, options in SOME.items():
        for kind in given_kernels():
            yield f"{kind}, {what}", partial(run, kind, options)
        yield f"matrices, {what}", partial(matrices, options)
        yield f"positive, {what}", partial(positive, options)
        yield f"sparse rows, {what}", partial(thin, options)


@cache
def views() -> tuple[Any, dict[str, Any], np.ndarray]:
    """Return three sources of which two lack some rows, joined, where they are, and classes."""
    X, y = drawn("few columns")
    rng = np.random.default_rng(3)
    scan, blood, text = X[:, :6].copy(), X[:, 6:].copy(), np.where(y == 1, "warm dry", "cold wet")
    scan[rng.random(len(y)) < 0.15], blood[rng.random(len(y)) < 0.15] = np.nan, np.nan
    notes = [f"{words} {i % 7}" for i, words in enumerate(text)]
    joined = join_views({"scan": scan, "blood": blood, "notes": notes})
    return *joined, y


def source_cells() -> Iterator[Cell]:
    def run(numbers_only: bool, options: dict[str, Any]) -> Numbers:
        table, columns, y = views()
        if numbers_only:
            columns = {name: columns[name] for name in ("scan", "blood")}
        model = MultipleKernelDiscriminant(source_kernels(columns, table=table), **options)
        model.fit(take(table, slice(0, N_DRAWN)), y[:N_DRAWN])
        shares = list(source_weights(model).values())
        return describe(model, take(table, slice(N_DRAWN, None))) | {"source_weights": shares}

    def where_known(options: dict[str, Any]) -> Numbers:
        rows, y = tables("numbers with NaN")
        kernels = [WhereKnown(RBF().on([0, 1])), WhereKnown(Linear().on([2, 3]))]
        model = MultipleKernelDiscriminant(kernels, **options)
        return fitted(model, rows[:N_DRAWN], y[:N_DRAWN], rows[N_DRAWN:])

    for what, options in SOME.items():
        yield f"all, {what}", partial(run, False, options)
        yield f"numbers, {what}", partial(run, True, options)
        yield f"where known, {what}", partial(where_known, options)


# ---- ways of computing ---------------------------------------------------------------------------


def bank_cells() -> Iterator[Cell]:
    banks: dict[str, dict[str, Any]] = {
        **{name: {"bank": name} for name in ("dense", "tiled", "factored", "iterative")},
        "lowrank 40": {"bank": LowRank(40)},
        "lowrank 90": {"bank": LowRank(90)},
    }

    def run(kernels: Any, weights: str, options: dict[str, Any]) -> Numbers:
        train, test, y = divided("rings")
        model = MultipleKernelDiscriminant(kernels, **options)
        return fitted(model, train, y, test, sample_weight=row_weights(weights, len(y)))

    for (bank, how), (what, options), weights in product(
        banks.items(), SOME.items(), ("none", "counts", "floats")
    ):
        if what == "loo" and bank == "iterative":
            continue  # needs a whole inverse
        yield f"{bank}, {what}, weights {weights}", partial(run, FEW, weights, how | options)
    for bank, how in banks.items():
        yield f"{bank}, proposed kernels", partial(run, "auto", "none", how)


def chunks_of(rows: Any, *more: Any) -> list[tuple[Any, ...]]:
    """Return rows in three chunks of unequal size."""
    ends = [0, 60, 75, N_DRAWN]
    parts = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    return [tuple(take(each, part) for each in (rows, *more)) for part in parts]


def stream_cells() -> Iterator[Cell]:
    def in_chunks(kernels: Any, weights: str, options: dict[str, Any]) -> Numbers:
        train, test, y = divided("rings")
        given = row_weights(weights, len(y))
        chunks = chunks_of(train, y) if given is None else chunks_of(train, y, given)
        model = MultipleKernelDiscriminant(kernels, **options).fit(open_rows(chunks))
        return describe(model, test)

    def table() -> Numbers:
        rows, y = tables("frame")
        model = MultipleKernelDiscriminant().fit(open_rows(chunks_of(rows, y)))
        return describe(model, take(rows, slice(N_DRAWN, None)))

    for (given, kernels), (what, options), weights in product(
        KERNELS.items(), SOME.items(), ("none", "counts")
    ):
        yield (
            f"{given}, {what}, weights {weights}",
            partial(in_chunks, kernels, weights, options),
        )
    yield "table, auto", table


def partial_fit_cells() -> Iterator[Cell]:
    def run(kernels: Any, weights: str, options: dict[str, Any]) -> Numbers:
        train, test, y = divided("rings")
        given = row_weights(weights, len(y))
        model = MultipleKernelDiscriminant(kernels, **options)
        for rows, labels, some in chunks_of(train, y, np.ones(len(y)) if given is None else given):
            fit = {} if given is None else {"sample_weight": some}
            model.partial_fit(rows, labels, classes=np.arange(3), **fit)
        return describe(model, test)

    for (given, kernels), (what, options), weights in product(
        KERNELS.items(), SOME.items(), ("none", "counts")
    ):
        yield f"{given}, {what}, weights {weights}", partial(run, kernels, weights, options)


def dask_cells() -> Iterator[Cell]:
    def arrays(kernels: Any, options: dict[str, Any]) -> Numbers:
        import dask.array as da

        train, test, y = divided("rings")
        rows, labels = (da.from_array(each, chunks=70) for each in (train, y))
        model = MultipleKernelDiscriminant(kernels, **options).fit(rows, labels)
        return describe(model, da.from_array(test, chunks=15))

    def frames() -> Numbers:
        import dask.dataframe as dd

        rows, y = tables("frame")
        pieces = [piece.assign(y=labels) for piece, labels in chunks_of(rows, y)]
        away = dd.from_map(lambda i: pieces[i], range(len(pieces)), meta=pieces[0].iloc[:0])
        model = MultipleKernelDiscriminant().fit(away, "y")
        return describe(model, take(rows, slice(N_DRAWN, None)))

    for (given, kernels), (what, options) in product(KERNELS.items(), SOME.items()):
        yield f"arrays, {given}, {what}", partial(arrays, kernels, options)
    yield "table, auto", frames


@contextmanager
def processor_as_device() -> Iterator[None]:
    """Take arrays of PyTorch in the memory of the processor for those of another device."""
    from discernel.arrays import Device

    before = Device.__dict__["is_host"]
    Device.is_host = False  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Device.is_host = before  # type: ignore[method-assign]


def sender(library: str) -> Callable[[np.ndarray], Any]:
    if library == "torch":
        import torch

        return torch.as_tensor
    import array_api_strict

    return array_api_strict.asarray


def device_cells() -> Iterator[Cell]:
    def rows(library: str, model: Any, weights: str = "none", numbers: bool = False) -> Numbers:
        send, (train, test, y) = sender(library), divided("rings")
        given = row_weights(weights, len(y))
        fit = {} if given is None else {"sample_weight": send(given)}
        labels = y + train[:, 0] if numbers else y
        with processor_as_device():
            return fitted(model, send(train), send(labels), send(test), **fit)

    def matrices(library: str, options: dict[str, Any]) -> Numbers:
        send, (train, _, y) = sender(library), divided("rings")
        with processor_as_device():
            learned = learn_kernel(send(np.stack([k(train) for k in FEW])), y, **options)
        return {"weights": learned.weights, "regularization": learned.regularization}

    for library in ("torch", "array_api_strict"):
        for (given, kernels), (what, options) in product(KERNELS.items(), SOME.items()):
            model = MultipleKernelDiscriminant(kernels, **options)
            yield f"{library}, {given}, {what}", partial(rows, library, model)
        for bank in ("iterative", "lowrank"):
            model = MultipleKernelDiscriminant(FEW, bank=bank, **SOME["rkda 1e-2"])
            yield f"{library}, {bank}", partial(rows, library, model)
        for weights, (given, kernels) in product(("counts", "floats"), KERNELS.items()):
            model = MultipleKernelDiscriminant(kernels)
            yield f"{library}, {given}, {weights}", partial(rows, library, model, weights)
        ridge = MultipleKernelRidge(FEW)
        yield f"{library}, ridge", partial(rows, library, ridge, numbers=True)
        for what in ("rkda 1e-2", "uniform"):
            yield f"{library}, matrices, {what}", partial(matrices, library, SOME[what])


# ---- other estimators ----------------------------------------------------------------------------


def ridge_cells() -> Iterator[Cell]:
    def run(
        n_outputs: int, kernels: Any, weights: str, options: dict[str, Any], table: bool = False
    ) -> Numbers:
        X, _ = drawn("rings")
        rows = tables("frame")[0] if table else X
        y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 1] * X[:, 2]])
        y = (y[:, 0] if n_outputs == 1 else y)[:N_DRAWN]
        train, test = take(rows, slice(0, N_DRAWN)), take(rows, slice(N_DRAWN, None))
        model = MultipleKernelRidge(kernels, **options)
        return fitted(model, train, y, test, sample_weight=row_weights(weights, len(y)))

    for n, (given, kernels), (what, options), weights in product(
        (1, 2), KERNELS.items(), SOME.items(), ("none", "counts")
    ):
        yield (
            f"{n} outputs, {given}, {what}, weights {weights}",
            partial(run, n, kernels, weights, options),
        )
    yield "table", partial(run, 1, "auto", "none", {}, table=True)
    yield "lowrank", partial(run, 1, "auto", "none", {"bank": LowRank(40)})


def label_cells() -> Iterator[Cell]:
    def run(kernels: Any, weights: str, options: dict[str, Any]) -> Numbers:
        train, test, y = divided("rings")
        labels = np.column_stack([y == 0, y == 2, train[:, 3] > 0]).astype(int)
        model = MultiLabelKernelDiscriminant(kernels, **options)
        return fitted(model, train, labels, test, sample_weight=row_weights(weights, len(y)))

    for (given, kernels), (what, options), weights in product(
        KERNELS.items(), SOME.items(), ("none", "counts")
    ):
        yield f"{given}, {what}, weights {weights}", partial(run, kernels, weights, options)


def transformer_cells() -> Iterator[Cell]:
    def learned(kernels: Any, options: dict[str, Any]) -> Numbers:
        train, test, y = divided("rings")
        return fitted(LearnedKernelTransformer(kernels, **options), train, y, test)

    def single(kernel: Any, name: str, options: dict[str, Any]) -> Numbers:
        train, test, y = divided(name)
        return fitted(KernelDiscriminant(kernel, **options), train, y, test)

    for (given, kernels), (what, options) in product(KERNELS.items(), SOME.items()):
        yield f"learned, {given}, {what}", partial(learned, kernels, options)
    kernels = {"rbf": "rbf", "linear": Linear(), "laplace": Laplace(), "polynomial": Polynomial()}
    for (kind, kernel), lam in product(kernels.items(), ("loo", 1e-2)):
        for name, criterion in (("rings", "rkda"), ("rare", "rkda"), ("rare", "fdr")):
            options = {"criterion": criterion, "regularization": lam}
            yield f"{kind}, {name}, {criterion}, {lam}", partial(single, kernel, name, options)


def paper_cells() -> Iterator[Cell]:
    def akfd(kernels: Any, options: dict[str, Any]) -> Numbers:
        train, test, y = divided("few columns")
        return fitted(AKFDClassifier(kernels, **options), train, y, test)

    def separability(options: dict[str, Any]) -> Numbers:
        train, test, y = divided("rings")
        some = np.where(np.arange(len(y)) % 3 == 0, y, -1)
        model = SeparabilityClassifier([RBF()], **options).fit(train, some)
        return {"predict": model.predict(train)}

    for given, kernels in KERNELS.items():
        yield f"akfd, {given}", partial(akfd, kernels, {})
        yield f"akfd, {given}, ν 1", partial(akfd, kernels, {"nu": 1.0})
    for method in ("closed_form", "dinkelbach"):
        yield f"separability, {method}", partial(separability, {"method": method})


def matrix_cells() -> Iterator[Cell]:
    def stack(name: str) -> tuple[np.ndarray, np.ndarray]:
        train, _, y = divided(name)
        return np.stack([kernel.resolve(train)(train) for kernel in [*WIDTHS[3:8], Linear()]]), y

    def learn(name: str, options: dict[str, Any]) -> Numbers:
        grams, y = stack(name)
        found = learn_kernel(grams, y, **options)
        return {
            "weights": found.weights,
            "regularization": found.regularization,
            "objective": found.objective,
        }

    def path(name: str) -> Numbers:
        found = regularization_path(*stack(name), np.geomspace(1.0, 1e-3, 4), tol=1e-8)
        return {"weights": found.weights, "regularizations": found.regularizations}

    def align(method: Any) -> Numbers:
        train, _, y = divided("rare")
        found = align_kernels([RBF(width=1.0), RBF(width=4.0)], train, y, method=method)
        return {"weights": found.weights, "matrices": [k(train)[:9] for k in found.kernels]}

    def spectrum(method: Any) -> Numbers:
        train, _, y = divided("rings")
        some = np.where(np.arange(len(y)) % 3 == 0, y, -1)
        found = reweigh_spectrum(RBF(width=2.0)(train), some, method=method)
        return {"eigenvalues": found.eigenvalues, "mu": found.mu}

    for name in ("rings", "rare"):
        asked = {n: o for n, o in ASKED.items() if "bank" not in o}
        for what, options in (asked | (TWO_CLASSES if name == "rare" else {})).items():
            yield f"{name}, {what}", partial(learn, name, options)
        yield f"{name}, path", partial(path, name)
    for method in ("gradient", "newton"):
        yield f"align, {method}", partial(align, method)
    for method in ("closed_form", "dinkelbach"):
        yield f"spectrum, {method}", partial(spectrum, method)


# ---- explanations and exports --------------------------------------------------------------------


@cache
def models() -> dict[str, tuple[Any, Any]]:
    """Return fitted models, and rows to explain."""
    train, test, y = divided("rings")
    rows, labels = tables("frame")
    frame, others = take(rows, slice(0, N_DRAWN)), take(rows, slice(N_DRAWN, None))
    one = {"criterion": "rkda", "regularization": 1e-2, "tol": 1e-10}
    low = {"bank": LowRank(40)}
    given = {"left": RBF().on([0, 1]), "right": Laplace().on([2, 3])}
    made: dict[str, tuple[Any, Any, Any, Any]] = {
        "default": (MultipleKernelDiscriminant(), train, y, test),
        "two classes": (MultipleKernelDiscriminant(), train, y > 0, test),
        "table": (MultipleKernelDiscriminant(), frame, labels[:N_DRAWN], others),
        "given": (MultipleKernelDiscriminant(FEW, **one), train, y, test),
        "sources": (MultipleKernelDiscriminant(given, **one), train, y, test),
        "lowrank": (MultipleKernelDiscriminant(FEW, **one, **low), train, y, test),
        "single": (KernelDiscriminant(), train, y, test),
        "ridge": (MultipleKernelRidge(), train, train[:, 0] * train[:, 1], test),
    }
    return {name: (model.fit(X, t), Z) for name, (model, X, t, Z) in made.items()}


MODELS = ["default", "two classes", "table", "given", "sources", "lowrank", "single", "ridge"]


def explanation_cells() -> Iterator[Cell]:
    def adds_up(name: str) -> Numbers:
        model, rows = models()[name]
        found = contributions(model, take(rows, slice(0, 8)))
        return {"baseline": found.baseline, "columns": found.columns, "sources": found.sources}

    def similar(name: str) -> Numbers:
        model, rows = models()[name]
        found = similar_rows(model, take(rows, slice(0, 8)))
        return {"indices": found.indices, "similarity": found.similarity}

    def importances(name: str) -> Numbers:
        found = source_importances(models()[name][0])
        return {"shares": found.shares, "spread": found.spread}

    for name in MODELS:
        yield f"contributions, {name}", partial(adds_up, name)
        if name != "lowrank":  # which keeps no training rows
            yield f"similar rows, {name}", partial(similar, name)
            yield f"importances, {name}", partial(importances, name)


def export_cells() -> Iterator[Cell]:
    def scorer(name: str) -> Numbers:
        model, rows = models()[name]
        found = numpy_scorer(model)
        return {"probabilities": found.predict_proba(rows)}

    def onnx(name: str) -> Numbers:
        import onnxruntime

        from discernel.export.formula import final_estimator
        from discernel.export.onnx_model import feeds

        model, rows = models()[name]
        graph = to_onnx(model)
        session = onnxruntime.InferenceSession(
            graph.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        given = feeds(graph, numpy_scorer(final_estimator(model)[0]), rows)
        return {"probabilities": session.run(None, given)[1]}

    for name in MODELS[:-1]:
        yield f"scorer, {name}", partial(scorer, name)
        yield f"onnx, {name}", partial(onnx, name)


FAMILIES: dict[str, Callable[[], Iterator[Cell]]] = {
    "criteria": criteria_cells,
    "tables": table_cells,
    "weights": weight_cells,
    "decisions": decision_cells,
    "kernels": kernel_cells,
    "sources": source_cells,
    "banks": bank_cells,
    "streams": stream_cells,
    "partial_fit": partial_fit_cells,
    "dask": dask_cells,
    "devices": device_cells,
    "ridge": ridge_cells,
    "labels": label_cells,
    "transformers": transformer_cells,
    "papers": paper_cells,
    "matrices": matrix_cells,
    "explanations": explanation_cells,
    "exports": export_cells,
}


def cells(families: list[str]) -> dict[str, Callable[[], Numbers]]:
    """Return all cells by name, which begins with that of the family."""
    return {f"{f}: {name}": run for f in families for name, run in FAMILIES[f]()}
