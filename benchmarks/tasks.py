"""The 34 tasks that the default is compared on: the same splits and preprocessing for all methods.

Sixteen are data sets of numbers, two of them with several views. Eighteen are tables with numbers
and categories, missing cells, and classes of unequal size.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import load
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from discernel.bank import DenseBank, gram_stack
from discernel.kernels import RBF, Kernel, Linear, rbf_ladder

#: Data set and training rows (a share or a number).
ARRAYS: dict[str, tuple[str, float | int]] = {
    "sonar": ("sonar", 0.8),
    "ionosphere": ("ionosphere", 0.8),
    "heart statlog": ("heart_statlog", 0.8),
    "heart cleveland": ("heart_cleveland", 0.8),
    "pima": ("pima", 0.8),
    "bupa": ("bupa", 0.8),
    "wisconsin": ("breast_cancer_wisconsin", 0.8),
    "wdbc": ("wdbc", 0.8),
    "wine": ("wine", 0.8),
    "segment 20%": ("segment", 0.2),
    "satimage 1000": ("satimage", 1000),
    "waveform 500": ("waveform", 500),
    "usps 500": ("usps", 500),
    "digits 20%": ("digits", 0.2),
    "mfeat 10%": ("mfeat", 0.1),
    "protein fold": ("protein_fold_rank27", 0.5),
}
#: Tables with a header, the class in the last column. They train on four fifths of their rows.
TABLES = {
    name.replace("_", " "): name
    for name in (
        "adult",
        "german",
        "colic",
        "soybean",
        "glass",
        "ecoli",
        "haberman",
        "abalone_sex",
        "phoneme",
        "wine_red",
        "page_blocks",
        "spambase",
        "nursery",
        "car",
        "balance",
        "automobile",
        "splice",
        "maternal",
    )
}
#: The tasks that are ranked, and those reported beside them. The last eight tables are for
#: `default_against_peers` alone.
TASKS = [*ARRAYS, *list(TABLES)[:10]]
BESIDE = {"segment 80%": ("segment", 0.8)}
VIEWS = {
    "mfeat": ["fou", "fac", "kar", "pix", "zer", "mor"],
    "protein_fold_rank27": [f"view{i}" for i in range(12)],
}
#: At most this many rows of a table train, for time.
MOST_TRAINING_ROWS = 2000
#: At most this many held-out rows are predicted, for time.
MOST_TEST_ROWS = 2000
#: Whether the default takes a table as it was read, with text and missing cells.
DEFAULT_TAKES_TABLES = True


@dataclass(frozen=True)
class Division:
    """One division of a task into training and held-out rows.

    Attributes
    ----------
    raw_train, raw_test : array or DataFrame
        Rows as they were read; of several views, the rows the kernels take.
    X_train, X_test : ndarray
        All columns as standardised numbers, prepared on the training rows.
    kernel_train, kernel_test : ndarray
        The rows that ``kernels`` take: the same but where there are several views.
    y_train, y_test : ndarray of int
        Classes 0, 1, ….
    kernels : list of Kernel
        The candidates of the methods on given kernels.
    seed : int
        Which division it is; also for what else a method draws.
    """

    raw_train: Any
    raw_test: Any
    X_train: np.ndarray
    X_test: np.ndarray
    kernel_train: np.ndarray
    kernel_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray
    kernels: list[Kernel]
    is_fusion: bool
    is_table: bool
    seed: int

    def normalized(self) -> tuple[np.ndarray, np.ndarray]:
        """Return training and held-out matrices, centred traces 1; for methods on matrices."""
        kernels = [kernel.resolve(self.kernel_train) for kernel in self.kernels]
        grams = gram_stack(kernels, self.kernel_train)
        bank = DenseBank(grams, trusted=[True] * len(kernels))
        scales = bank.expand(bank.scales)[:, None, None] * len(self.y_train)
        cross = np.array([kernel(self.kernel_test, self.kernel_train) for kernel in kernels])
        return grams * scales, cross * scales


def rows_for_default(division: Division) -> tuple[Any, Any]:
    """Return training and held-out rows as the default gets them: as they are, if it can."""
    if division.is_table and not DEFAULT_TAKES_TABLES:
        return division.X_train, division.X_test
    return division.raw_train, division.raw_test


def divide(task: str, seed: int) -> Division:
    """Return one division of a task; the same for every method."""
    rows, y = load_task(task)
    train, test = train_test_split(
        np.arange(len(y)), train_size=training_rows(task, len(y)), random_state=seed, stratify=y
    )
    test = test[:MOST_TEST_ROWS]
    is_table = task in TABLES
    is_fusion = isinstance(rows, list)
    prepare = prepare_table if is_table else prepare_views if is_fusion else standardize
    X_train, X_test = prepare(rows, train, test)
    kernel_train, kernel_test = X_train, X_test
    if task == "protein fold":
        # These views are factors of kernels already: scaling their columns would change them.
        kernel_train, kernel_test = np.hstack(rows)[train], np.hstack(rows)[test]
    raw_train, raw_test = kernel_train, kernel_test
    if not is_fusion:
        take = rows.iloc if is_table else rows
        raw_train, raw_test = take[train], take[test]
    return Division(
        raw_train=raw_train,
        raw_test=raw_test,
        X_train=X_train,
        X_test=X_test,
        kernel_train=kernel_train,
        kernel_test=kernel_test,
        y_train=y[train],
        y_test=y[test],
        kernels=make_kernels(task, rows),
        is_fusion=is_fusion,
        is_table=is_table,
        seed=seed,
    )


@cache
def load_task(task: str) -> tuple[Any, np.ndarray]:
    """Return an array, a DataFrame or a list of views, and classes 0, 1, …."""
    if task in TABLES:
        path = Path(os.environ["DISCERNEL_DATA"]) / "tables" / f"{TABLES[task]}.csv.gz"
        table = pd.read_csv(path)
        rows, labels = table.iloc[:, :-1], table.iloc[:, -1].to_numpy()
    elif (name := (ARRAYS | BESIDE)[task][0]) in VIEWS:
        stored = np.load(Path(os.environ["DISCERNEL_DATA"]) / f"{name}.npz")
        rows, labels = [stored[view].astype(float) for view in VIEWS[name]], stored["target"]
    else:
        rows, labels = load(name)
    return rows, np.unique(labels, return_inverse=True)[1]


def training_rows(task: str, n_rows: int) -> float | int:
    if task in TABLES:
        return min(int(0.8 * n_rows), MOST_TRAINING_ROWS)
    return (ARRAYS | BESIDE)[task][1]


def standardize(
    rows: np.ndarray, train: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    scaler = StandardScaler().fit(rows[train])
    return scaler.transform(rows[train]), scaler.transform(rows[test])


def prepare_views(
    views: list[np.ndarray], train: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    return standardize(np.hstack(views), train, test)


def prepare_table(
    table: pd.DataFrame, train: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Standardise numbers, the median for missing cells; make a 0/1 column of every category."""
    numbers = make_column_selector(dtype_include="number")
    categories = make_column_selector(dtype_exclude="number")
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        # A missing cell is a category of its own.
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), categories),
    )
    return prepare.fit_transform(table.iloc[train]), prepare.transform(table.iloc[test])


def make_kernels(task: str, rows: Any) -> list[Kernel]:
    """Return the candidates: ten for one view; three widths, or linear and one, per view.

    Plain ones, as rows are standardised first: what is compared are ways to combine them.
    """
    if not isinstance(rows, list):
        return [*rbf_ladder(), Linear()]
    # The protein views are factors of kernels already: their inner products are those kernels.
    each = (
        [Linear(), RBF()]
        if task == "protein fold"
        else [RBF(width="0.5*median"), RBF(), RBF(width="2*median")]
    )
    ends = np.cumsum([0, *(view.shape[1] for view in rows)]).tolist()
    return [
        kernel.on(slice(start, stop))
        for start, stop in zip(ends[:-1], ends[1:], strict=True)
        for kernel in each
    ]
