"""From probabilities to a class: priors, costs and threshold, and class weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import softmax

from discernel.arrays import FloatArray
from discernel.discriminant.gaussian import Discriminant, logarithms
from discernel.exceptions import InvalidInputError, is_number, is_word
from discernel.targets import ClassTarget


@dataclass(frozen=True, eq=False)
class Decision:
    """Priors, and the costs or the threshold by which probabilities become a class.

    Attributes
    ----------
    priors : ndarray of shape (n_classes,)
        Class probabilities before a row is seen.
    offsets : ndarray of shape (n_classes,)
        What is added to the log-posteriors before the largest is taken: the logarithm of what
        misclassifying a sample of the class costs.
    """

    priors: FloatArray
    offsets: FloatArray

    @cached_property
    def log_priors(self) -> FloatArray:
        """The logarithms of the priors; −inf of a class without rows."""
        return logarithms(self.priors)

    @classmethod
    def make(
        cls, target: ClassTarget, *, priors: Any, class_costs: Any, threshold: Any
    ) -> Decision:
        """Return the decision these parameters stand for, or raise a clear error.

        A threshold of ``"roc"`` is left open; `choose_threshold` fills it in.
        """
        probabilities = _check_priors(priors, target)
        if threshold is None:
            costs = np.ones(target.n_classes)
            if class_costs is not None:
                word = {"balanced": _balanced(target)}
                costs = _per_class("class costs", class_costs, target, word, default=1.0)
            return cls(probabilities, np.log(costs))
        _check_threshold(threshold, class_costs, target)
        decision = cls(probabilities, np.zeros(2))
        return decision if threshold == "roc" else decision.with_threshold(float(threshold))

    def with_threshold(self, threshold: float) -> Decision:
        """Return the decision for the second class from this probability on."""
        # log p₁ − log p₀ > log t − log(1 − t)
        return replace(self, offsets=np.array([np.log(threshold), np.log1p(-threshold)]))

    def choose_threshold(self, discriminant: Discriminant) -> float:
        """Return the probability of the second class that best splits the training scores.

        It maximises true minus false positive rate ([Youden50]_) on the scores the statistics
        were taken from, and lies midway between the two scores it separates.
        """
        posterior = discriminant.log_posterior(discriminant.training_scores, self.priors)
        probability = softmax(posterior, axis=1)[:, 1]
        order = np.argsort(probability, kind="stable")
        values, positive = probability[order], discriminant.training_codes[order] == 1
        counted = discriminant.training.row_weights.values[order]
        negatives, positives = np.cumsum(~positive * counted), np.cumsum(positive * counted)
        if not negatives[-1] * positives[-1]:
            return 0.5  # one class has all rows with weight, and any threshold will do
        gain = negatives / negatives[-1] - positives / positives[-1]
        # No threshold fits between equal scores.
        gain = np.where(np.diff(values) > 0, gain[:-1], -np.inf)
        best = int(gain.argmax())
        return float(np.clip((values[best] + values[best + 1]) / 2.0, 1e-12, 1.0 - 1e-12))


def class_factors(class_weight: Any, target: ClassTarget) -> FloatArray | None:
    """Return the factors of the weights of samples by class; None for none.

    ``class_weight`` has a number above 0 per class, 1 where not said; ``"balanced"`` makes all
    classes weigh the same.
    """
    if class_weight is None:
        return None
    if is_word(class_weight, "balanced"):
        return _balanced(target)
    if not hasattr(class_weight, "keys"):
        raise InvalidInputError(
            "class_weight must be None, 'balanced' or a dictionary of class to number. Got "
            f"{class_weight!r}."
        )
    return _per_class("class weights", class_weight, target, {}, default=1.0)


def _check_priors(priors: Any, target: ClassTarget) -> FloatArray:
    """Return class probabilities, or raise a clear error; None is the share of the samples.

    Whatever is given, that of a class without samples is 0.
    """
    if priors is None:
        return target.shares.copy()
    seen = target.counts > 0
    word = {"uniform": np.asarray(seen / seen.sum())}
    values = _per_class("priors", priors, target, word, default=None)
    if abs(values.sum() - 1.0) > 1e-6:
        raise InvalidInputError(
            f"The priors must sum to 1. Got {priors!r}, which sum to {values.sum():.6g}."
        )
    return values if seen.all() else np.asarray(values * seen / (values @ seen))


def _balanced(target: ClassTarget) -> FloatArray:
    """Return the factors that make all classes weigh the same; 1 for those without samples."""
    seen, factors = target.counts > 0, np.ones(target.n_classes)
    factors[seen] = target.row_weights.total / (np.count_nonzero(seen) * target.sizes[seen])
    return factors


def _per_class(
    what: str,
    given: Any,
    target: ClassTarget,
    words: dict[str, FloatArray],
    *,
    default: float | None,
) -> FloatArray:
    """Return a positive number per class, copied, or raise a clear error.

    ``default`` is for classes that a dictionary does not name; None: it must name all. Words stand
    for numbers.
    """
    if isinstance(given, str):
        if given not in words:
            raise InvalidInputError(
                f"The {what} must be None, {', '.join(map(repr, words))}, a list or a dictionary "
                f"with one number per class. Got {given!r}."
            )
        return words[given]
    labels, numbers = target.classes.tolist(), given
    if hasattr(given, "keys"):  # a dictionary, or a series of pandas
        named = {label: given[label] for label in given.keys()}  # noqa: SIM118
        unknown = [label for label in named if label not in labels]
        missing = [label for label in labels if label not in named and default is None]
        if unknown or missing:
            wrong = f"{unknown}, which are none" if unknown else f"nothing for {missing}"
            raise InvalidInputError(
                f"The {what}, given as a dictionary, must name classes of {labels}"
                f"{', all of them' if default is None else ''}. Got {wrong}."
            )
        numbers = [named.get(label, default) for label in labels]
    try:
        values = np.array(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (len(labels),) or not ((values > 0) & np.isfinite(values)).all():
        raise InvalidInputError(
            f"The {what} must be {len(labels)} positive, finite numbers, as a list in the order of "
            f"the classes {labels} or as a dictionary of class to number. Got {given!r}."
        )
    return values


def _check_threshold(threshold: Any, costs: Any, target: ClassTarget) -> None:
    if target.n_classes != 2:
        raise InvalidInputError(
            "Only binary classification is supported: a threshold is defined for two classes. Got "
            f"{target.n_classes}: {target.classes.tolist()}. Use class_costs or priors."
        )
    if costs is not None:
        raise InvalidInputError(
            "Give a threshold or class_costs, not both: each moves the same boundary. Got "
            f"threshold={threshold!r} and class_costs={costs!r}."
        )
    if not is_word(threshold, "roc") and not (is_number(threshold) and 0 < threshold < 1):
        raise InvalidInputError(
            "The threshold must be a probability between 0 and 1, 'roc' or None. "
            f"Got {threshold!r}."
        )
