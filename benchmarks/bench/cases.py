"""The cases, as plain data: what is divided by what, at which size, and what must come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.svm import SVC

from bench import work
from bench.work import fit, rows, seconds
from discernel.bank import TiledBank, gram_stack
from discernel.estimators import MultipleKernelDiscriminant
from discernel.exceptions import NumericalError, unknown_choice
from discernel.kernels import Kernel, as_kernels, feature_kernels, rbf_ladder, resolve_kernels
from discernel.learn import learn_kernel

__all__ = ["CASES", "Case", "Direction", "Pair", "chosen_cases"]

Direction = Literal["at most", "at least"]
#: Calls of which the median is taken where one is too short to be timed.
_CALLS = 20
#: Relative difference up to which two objectives are the same.
_SAME = 1e-6


@dataclass(frozen=True)
class Pair:
    """What is divided by what.

    Attributes
    ----------
    over, under : callable
        Each call measures once and returns a number, mostly seconds.
    value : callable
        From the ratio to what is reported; by default the ratio.
    """

    over: Callable[[], float]
    under: Callable[[], float]
    value: Callable[[float], float] = float


@dataclass(frozen=True)
class Case:
    """One ratio.

    Attributes
    ----------
    name : str
        What the command line calls it.
    what : str
        What is divided by what, in words.
    prepare : callable
        From a number of training rows to a `Pair`; not timed.
    rows, quick_rows : int
        How many rows there are, and how many to see that everything runs.
    limit : float, optional
        What the median must keep to; none where it is only reported.
    direction : {"at most", "at least"}
        On which side of the limit it must be: "at most" says that less is better.
    repeats : int
        How many ratios are measured.
    worse_by : float
        The factor from which on a median is worse than one recorded before.
    slow : bool
        Whether it is run only when asked for.
    needs : tuple of str
        Modules of others without which it cannot run.
    install : str
        What pip is to be told to get them.
    """

    name: str
    what: str
    prepare: Callable[[int], Pair]
    rows: int
    quick_rows: int
    limit: float | None = None
    direction: Direction = "at most"
    repeats: int = 5
    worse_by: float = 1.3
    slow: bool = False
    needs: tuple[str, ...] = ()
    install: str = ""


# ---- how they are measured ---------------------------------------------------------------------


def _ladder() -> list[Kernel]:
    return list(rbf_ladder(10))


def _against_unit(kernels: Callable[[], list[Kernel]]) -> Callable[[int], Pair]:
    def prepare(n: int) -> Pair:
        X, y = rows(n)
        return Pair(
            lambda: seconds(lambda: fit(X, y, kernels())), lambda: seconds(lambda: work.unit(X))
        )

    return prepare


def _peer(peer: Callable[..., None], *more: Any) -> Callable[[int], Pair]:
    """Return how to divide the time of somebody else by ours, the same rows given to both."""

    def prepare(n: int) -> Pair:
        X, y = rows(n)
        return Pair(
            lambda: seconds(lambda: peer(X, y, *more)),
            lambda: seconds(lambda: fit(X, y, _ladder())),
        )

    return prepare


def _ten_classes(n: int) -> Pair:
    (X, two), (_, ten) = rows(n), rows(n, 10)
    return Pair(
        lambda: seconds(lambda: fit(X, ten, _ladder())),
        lambda: seconds(lambda: fit(X, two, _ladder())),
    )


def _large(n: int) -> Pair:
    """Compare the fit in units at n rows with that at two fifths of them."""

    def in_units(n_rows: int) -> Callable[[], float]:
        pair = _against_unit(_ladder)(n_rows)
        return lambda: pair.over() / pair.under()

    return Pair(in_units(n), in_units(2 * n // 5))


def _growth(n: int) -> Pair:
    (X, y), (Z, z) = rows(n), rows(n // 4)
    return Pair(
        lambda: seconds(lambda: fit(X, y, _ladder())),
        lambda: seconds(lambda: fit(Z, z, _ladder())),
        value=lambda ratio: float(np.log(ratio) / np.log(4.0)),
    )


def _semidefinite(n: int) -> Pair:
    X, y = rows(n)
    grams = gram_stack(resolve_kernels(_ladder(), X), X)

    def learn(solver: str) -> float:
        learned = learn_kernel(
            grams, y, criterion="rkda", regularization=work.REGULARIZATION, solver=solver
        )
        return float(learned.objective or np.nan)

    ours = learn("auto")

    def program() -> None:
        theirs = learn("sdp")
        if not abs(ours - theirs) <= _SAME * abs(theirs):
            raise NumericalError(f"Both must reach one optimum. Got {ours!r} and {theirs!r}.")

    return Pair(
        lambda: seconds(program),
        lambda: float(np.median([seconds(lambda: learn("auto")) for _ in range(_CALLS)])),
    )


def _many_kernels(n: int) -> Pair:
    """As many kernels as rows, one per feature, and the λ that selects some of them."""
    X, y = rows(n, n_features=n)
    kernels = feature_kernels(n)
    bank = TiledBank(resolve_kernels(as_kernels(kernels), X), X)
    vector = np.random.default_rng(1).standard_normal((n, 1))
    return Pair(
        lambda: seconds(lambda: fit(X, y, kernels, 1e-2)),
        lambda: seconds(lambda: bank.products(vector)),
    )


def _prediction(n: int) -> Pair:
    """25 times as many rows as were learned from; five kernels against as many support vectors."""
    X, y = rows(n)
    new = np.random.default_rng(1).standard_normal((25 * n, X.shape[1]))
    clf = MultipleKernelDiscriminant(
        rbf_ladder(5), criterion="uniform", regularization=work.REGULARIZATION
    ).fit(X, y)
    svm = SVC(C=1e-3).fit(X, y)  # with so small a C, all rows are support vectors
    if int(np.sum(svm.n_support_)) != n:
        raise NumericalError(f"All {n} rows must be support vectors. Got {svm.n_support_}.")
    return Pair(
        lambda: seconds(lambda: clf.predict(new)), lambda: seconds(lambda: svm.predict(new))
    )


# ---- the cases ---------------------------------------------------------------------------------

_UNIT = "one kernel matrix and one Cholesky"
_MKLPY: dict[str, Any] = {"needs": ("MKLpy", "torch"), "install": "MKLpy torch"}
_HIMALAYA: dict[str, Any] = {"needs": ("himalaya",), "install": "himalaya"}
_CONIC: dict[str, Any] = {"needs": ("cvxpy", "clarabel"), "install": "cvxpy clarabel"}
_WIDTHS = tuple(work.ladder_widths().tolist())

#: By name, in the order they are run and shown. "Fit" is always ours, of ten Gaussian kernels.
CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case("ladder", f"fit ÷ {_UNIT}", _against_unit(_ladder), 4000, 200, 8.0),
        Case(
            "papers",
            f"fit of the papers' widths, no ladder ÷ {_UNIT}",
            _against_unit(work.paper_kernels),
            4000,
            200,
            12.0,
        ),
        Case(
            "easymkl",
            "MKLpy's EasyMKL, its kernels included ÷ fit",
            _peer(work.easymkl, _WIDTHS),
            4000,
            200,
            3.0,
            "at least",
            **_MKLPY,
        ),
        Case(
            "svc",
            "GridSearchCV of SVC, 10 widths × 4 C × 5 folds ÷ fit",
            _peer(work.svc_grid),
            1000,
            60,
            20.0,
            "at least",
        ),
        Case(
            "sdp",
            "semidefinite program by Clarabel ÷ learning from the same matrices",
            _semidefinite,
            100,
            20,
            3000.0,
            "at least",
            slow=True,
            **_CONIC,
        ),
        Case("classes", "fit of 10 classes ÷ fit of 2", _ten_classes, 4000, 200, 2.0),
        Case(
            "many",
            "fit of as many kernels as rows, one per feature, λ = 0.01 ÷ one pass over them",
            _many_kernels,
            1000,
            60,
            3.0,
        ),
        Case(
            "predict",
            "predict, five kernels ÷ SVC.predict with as many support vectors",
            _prediction,
            2000,
            100,
            0.5,
        ),
        Case(
            "growth",
            "exponent of the time of a fit from a quarter of the rows on",
            _growth,
            8000,
            800,
            3.0,
            worse_by=1.1,  # of the exponent: 1.4 of the time
            slow=True,
        ),
        Case(
            "large",
            f"fit ÷ {_UNIT}, over the same with two fifths of the rows",
            _large,
            10_000,
            500,
            1.5,
            repeats=2,
            slow=True,
        ),
        Case(
            "svc-2000",
            "GridSearchCV of SVC, 10 widths × 4 C × 5 folds ÷ fit",
            _peer(work.svc_grid),
            2000,
            80,
            direction="at least",
            repeats=3,
            slow=True,
        ),
        Case(
            "ridge",
            "GridSearchCV of KernelRidge, 10 widths × 4 α × 5 folds ÷ fit",
            _peer(work.ridge_grid),
            1000,
            60,
            direction="at least",
        ),
        Case(
            "fheuristic",
            "MKLpy's FHeuristic, its kernels included ÷ fit",
            _peer(work.fit_heuristic, _WIDTHS),
            4000,
            200,
            direction="at least",
            **_MKLPY,
        ),
        Case(
            "himalaya",
            "himalaya's MultipleKernelRidgeCV, random search, 10 draws × 5 folds ÷ fit",
            _peer(work.himalaya_multiple, _WIDTHS),
            1000,
            60,
            direction="at least",
            **_HIMALAYA,
        ),
        Case(
            "himalaya-single",
            "himalaya's KernelRidgeCV, one width, 13 α × 5 folds ÷ fit",
            _peer(work.himalaya_single),
            1000,
            60,
            direction="at least",
            **_HIMALAYA,
        ),
    )
}


def chosen_cases(names: Sequence[str] = ()) -> list[Case]:
    """Return the cases that are meant.

    Parameters
    ----------
    names : sequence of str
        Names of cases, or "all". Without any, those that are not slow.
    """
    if not names:
        return [case for case in CASES.values() if not case.slow]
    for name in names:
        if name != "all" and name not in CASES:
            raise unknown_choice("case", name, [*CASES, "all"])
    return [case for case in CASES.values() if case.name in names or "all" in names]
