"""Facts about a fitted estimator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from discernel.default.menu import MENU
from discernel.exceptions import InvalidInputError
from discernel.inspection.explained import Explained
from discernel.inspection.source_weights import kernel_sources, sum_by
from discernel.inspection.sources import source_importances
from discernel.kernels import RBF, Laplace, Linear, as_kernels, kernel_names
from discernel.model import Model
from discernel.programs.solution import compared_by_folds
from discernel.show.facts import ExpectedFacts, ImportanceFacts, ModelFacts, Origin, SourceFacts


def model_facts(
    estimator: Any,
    *,
    name: str = "",
    target: str = "",
    columns: Sequence[str] | None = None,
    origin: Origin | None = None,
) -> ModelFacts:
    """Return the facts about a fitted model, as plain data.

    Parameters
    ----------
    estimator : estimator of discernel with a learned kernel, or Pipeline with one
        Fitted.
    name : str, default=""
        What it was fitted to; by default the name of its class.
    target : str, default=""
        What it predicts.
    columns : sequence of str, optional
        The column that each importance belongs to; those of one name are summed. By default the
        names of the columns.
    origin : Origin, optional
        Where the model comes from. Its ``class_counts`` are of all rows, where a model that read
        them in chunks knows those of a sample.

    Returns
    -------
    ModelFacts
        Facts, which the terminal, notebooks and pages show in the same words.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discernel import MultipleKernelDiscriminant
    >>> facts = model_facts(MultipleKernelDiscriminant().fit(*load_wine(return_X_y=True)))
    >>> facts.n_rows, facts.n_columns, facts.classes
    (178, 13, {'0': 59, '1': 71, '2': 48})
    """
    explained = Explained.of(estimator, predicts=False)
    model, learned = explained.model, explained.learned
    kind = type(explained.learner).__name__
    streamed = model.facts.streamed
    given = Origin() if origin is None else origin
    classes = [] if model.classes is None else [str(label) for label in model.classes]
    # Heads that count no rows by class return empty tables.
    found = dict(zip(classes, model.head.class_counts().tolist(), strict=False))
    confusion = dict(zip(classes, map(tuple, model.head.confusion().tolist()), strict=False))
    counts = dict(given.class_counts or found)
    sample = ""
    if streamed is not None:
        sample = (
            f"kernel learned on rows of a sample of {streamed.n_sample:,}; {streamed.rank:,} "
            f"landmarks have {streamed.captured:.0%} of its variance"
        )
    expected = _expected(model)
    n_rows = sum(counts.values()) or (None if expected is None else expected.n_rows)
    return ModelFacts(
        **vars(learned.describe(model.facts.names)),
        name=name or kind,
        target=target,
        estimator=kind,
        n_rows=n_rows if streamed is None else streamed.n_rows,
        n_columns=None if model.reader.kernels[0].precomputed else model.reader.n_features,
        classes=counts,
        expected=expected,
        links=dict(model.head.link_weights),
        majority=_majority(counts),
        importances=_importances(explained, columns),
        sources=_sources(estimator, model),
        confusion=confusion,
        plan=() if model.facts.plan is None else tuple(map(str, model.facts.plan.stages)),
        sample=sample,
        origin=given,
    )


def _majority(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the largest class, its share, and the log-loss of knowing the shares only."""
    if not counts:
        return {}
    shares = np.array(list(counts.values())) / sum(counts.values())
    known = shares[shares > 0]
    largest = max(counts, key=counts.__getitem__)
    entropy = -float(np.sum(known * np.log(known)))
    return {"class": largest, "share": float(shares.max()), "log_loss": entropy}


def _expected(model: Model) -> ExpectedFacts | None:
    """Return the expected scores of new rows; None without held-out predictions."""
    considered = model.facts.learned.considered
    error = considered[0].error if compared_by_folds(considered) else None
    found = model.head.expect(model.kept.labels, error)
    return ExpectedFacts(**found) if found else None


def _importances(
    explained: Explained, columns: Sequence[str] | None
) -> tuple[ImportanceFacts, ...]:
    """Return the columns, the most important first; empty where rows have none."""
    found = explained.model.facts.importances
    if found is None:
        return ()
    both, given = np.stack(found.found), [] if columns is None else list(columns)
    if len(given) != both.shape[1]:
        given = explained.column_names
    parts, (names, (shares, errors)) = Counter(given), sum_by(given, both)
    return tuple(
        ImportanceFacts(names[i], float(shares[i]), float(errors[i]), parts[names[i]])
        for i in np.argsort(-shares, kind="stable")
    )


def _sources(estimator: Any, model: Model) -> tuple[SourceFacts, ...]:
    """Return the sources if there are several, else nothing."""
    given = kernel_sources(model.reader.kernels)
    names, weights = sum_by(given, model.facts.learned.weights)
    if len(names) < 2:
        return ()
    found = [SourceFacts(*pair) for pair in zip(names, weights.tolist(), strict=True)]
    with suppress(InvalidInputError):  # of a model that keeps no training rows
        worth = source_importances(estimator)
        numbers = zip(worth.shares.tolist(), worth.spread.tolist(), strict=True)
        known = dict(zip(worth.names, numbers, strict=True))
        found = [SourceFacts(each.source, each.weight, *known[each.source]) for each in found]
    return tuple(found)


def given_names(learner: Any) -> list[str]:
    """Return the names of the kernels as they were given, the same in every fit.

    Widths are multiples of the median, where resolved ones are other numbers in every fit.
    """
    if hasattr(learner, "metric_"):
        # The kernels that were put in the place of "auto".
        gaussian = [RBF(width=f"{factor:g}*median") for factor in MENU.gaussian]
        laplace = [Laplace(width=f"{factor:g}*median") for factor in MENU.laplace]
        return kernel_names([*gaussian, *laplace, Linear()])
    return kernel_names(as_kernels(learner._candidates()))
