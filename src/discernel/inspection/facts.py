"""Facts about a fitted estimator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from discernel.default.menu import MENU
from discernel.exceptions import InvalidInputError, NumericalError
from discernel.inspection.explained import Explained
from discernel.inspection.source_weights import kernel_sources, sum_by
from discernel.inspection.sources import source_importances
from discernel.kernels import RBF, Laplace, Linear, as_kernels, kernel_names
from discernel.kernels.make import are_sources
from discernel.model import Model
from discernel.show.facts import ExpectedFacts, ImportanceFacts, ModelFacts, Origin, SourceFacts
from discernel.show.notebook import notebook_html


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
        Name of the data; by default the class name of the estimator.
    target : str, default=""
        Name of the target.
    columns : sequence of str, optional
        Column name of each importance; importances with the same name are summed. By default the
        column names of the training rows.
    origin : Origin, optional
        Origin of the model. Its ``class_counts`` count all rows, also if the model read them in
        chunks and knows only the counts of a sample.

    Returns
    -------
    ModelFacts
        Facts for terminal, notebook and pages.

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
    # Heads without class counts return empty tables.
    found = dict(zip(classes, model.head.class_counts().tolist(), strict=False))
    confusion = dict(zip(classes, map(tuple, model.head.confusion().tolist()), strict=False))
    counts = dict(given.class_counts or found)
    sample = ""
    if streamed is not None:
        sample = (
            f"kernel learned on a random sample of {streamed.n_sample:,} rows; {streamed.rank:,} "
            f"landmarks capture {streamed.captured:.0%} of its variance"
        )
    expected = model.head.expected
    n_rows = sum(counts.values()) or model.head.n_rows
    return ModelFacts(
        **vars(learned.describe(model.facts.names)),
        name=name or kind,
        target=target,
        estimator=kind,
        n_rows=n_rows if streamed is None else streamed.n_rows,
        n_columns=None if model.reader.kernels[0].precomputed else model.reader.n_features,
        classes=counts,
        expected=None if expected is None else ExpectedFacts(**vars(expected)),
        links=dict(model.head.link_weights),
        majority=_majority(counts),
        importances=_importances(explained, columns),
        sources=_sources(estimator, model),
        confusion=confusion,
        plan=() if model.facts.plan is None else tuple(map(str, model.facts.plan.stages)),
        sample=sample,
        origin=given,
    )


def facts_html(estimator: Any) -> str:
    """Return the facts about a fitted model as HTML, for a notebook."""
    return notebook_html(model_facts(estimator).blocks())


def _majority(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the largest class, its share, and the log-loss of predicting class shares."""
    if not counts:
        return {}
    shares = np.array(list(counts.values())) / sum(counts.values())
    known = shares[shares > 0]
    largest = max(counts, key=counts.__getitem__)
    entropy = -float(np.sum(known * np.log(known)))
    return {"class": largest, "share": float(shares.max()), "log_loss": entropy}


def _importances(
    explained: Explained, columns: Sequence[str] | None
) -> tuple[ImportanceFacts, ...]:
    """Return column importances, largest first; empty if there are none."""
    both = None
    with suppress(NumericalError):  # they cannot be computed
        both = getattr(explained.model.facts.importances, "found", None)
    if both is None:
        return ()
    both, given = np.stack(both), [] if columns is None else list(columns)
    if len(given) != both.shape[1]:
        given = explained.column_names
    parts, (names, (shares, errors)) = Counter(given), sum_by(given, both)
    return tuple(
        ImportanceFacts(names[i], float(shares[i]), float(errors[i]), parts[names[i]])
        for i in np.argsort(-shares, kind="stable")
    )


def _sources(estimator: Any, model: Model) -> tuple[SourceFacts, ...]:
    """Return weights and importances of sources; empty with a single source."""
    given = kernel_sources(model.reader.kernels)
    names, weights = sum_by(given, model.facts.learned.weights)
    if len(names) < 2:
        return ()
    found = [SourceFacts(*pair) for pair in zip(names, weights.tolist(), strict=True)]
    # The model keeps no training rows, or fits without some rows have no factors.
    with suppress(InvalidInputError, NumericalError):
        worth = source_importances(estimator)
        numbers = zip(worth.shares.tolist(), worth.spread.tolist(), strict=True)
        known = dict(zip(worth.names, numbers, strict=True))
        found = [SourceFacts(each.source, each.weight, *known[each.source]) for each in found]
    return tuple(found)


def given_names(learner: Any) -> list[str]:
    """Return kernel names as given by the user, which are the same in every fit.

    They contain widths such as "2*median" instead of resolved numbers.
    """
    candidates = learner._candidates()
    if are_sources(candidates):
        return [str(name) for name in candidates]
    if hasattr(learner, "metric_"):
        # The kernels that replace "auto".
        gaussian = [RBF(width=f"{factor:g}*median") for factor in MENU.gaussian]
        laplace = [Laplace(width=f"{factor:g}*median") for factor in MENU.laplace]
        return kernel_names([*gaussian, *laplace, Linear()])
    return kernel_names(as_kernels(candidates))
