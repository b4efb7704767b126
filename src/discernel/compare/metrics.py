"""Metrics of predictions of held-out rows, by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import recall_score, roc_auc_score

from discernel.arrays import FloatArray
from discernel.exceptions import unknown_choice

#: Lower bound of probabilities, so that one confident error does not dominate the log-loss.
LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True)
class PredictionMetric:
    """A metric of predictions, with one value per split, and how to display it.

    Attributes
    ----------
    name : str
        Name on the command line and key in the metrics of a result.
    label : str
        Name in sentences.
    short : str
        Heading of a narrow column.
    meaning : str
        A definition in one sentence.
    higher_is_better : bool
        Whether larger values are better.
    in_percent : bool
        Whether values are displayed in percent.
    most, least : float
        Largest and smallest possible value.
    form : str
        Format of values that are not in percent.
    of_numbers : bool
        Whether it is a metric of predicted numbers, not of classes.
    """

    name: str
    label: str
    short: str
    meaning: str
    higher_is_better: bool = True
    in_percent: bool = False
    most: float = 1.0
    least: float = 0.0
    form: str = "z.3f"
    of_numbers: bool = False

    @property
    def sign(self) -> float:
        """1 if larger values are better, else −1."""
        return 1.0 if self.higher_is_better else -1.0

    @property
    def unit(self) -> float:
        """Factor of displayed values: 100 for percent."""
        return 100.0 if self.in_percent else 1.0

    @property
    def heading(self) -> str:
        """The label, with the unit if there is one."""
        return f"{self.label} %" if self.in_percent else self.label

    def show(self, value: float) -> str:
        """Return a value as text, without its unit."""
        if math.isnan(value):
            return "–"
        return f"{100.0 * value:z.1f}" if self.in_percent else f"{value:{self.form}}"

    def show_with_unit(self, value: float) -> str:
        """Return a value as text, with its unit."""
        return self.show(value) + " %" * self.in_percent


#: The metrics of classes recorded for every cell, by name; the first ranks methods by default.
METRICS: dict[str, PredictionMetric] = {
    metric.name: metric
    for metric in (
        PredictionMetric(
            "accuracy",
            "accuracy",
            "acc. %",
            "The share of held-out rows whose class is predicted correctly.",
            in_percent=True,
        ),
        PredictionMetric(
            "balanced_accuracy",
            "balanced accuracy",
            "bal. %",
            "The accuracy within each class, averaged over the classes, so that a rare class "
            "counts as much as a common one.",
            in_percent=True,
        ),
        PredictionMetric(
            "roc_auc",
            "ROC AUC",
            "AUC",
            "The probability that a row of a class gets a higher score for it than a row of "
            "another class; 0.5 is guessing. With more than two classes, the mean over the "
            "classes, each against the rest.",
        ),
        PredictionMetric(
            "log_loss",
            "log-loss",
            "log-loss",
            "Minus the mean logarithm of the predicted probability of the true class; lower is "
            "better. Confident errors cost most. Probabilities are clipped at one in a million.",
            higher_is_better=False,
            most=math.inf,
        ),
        PredictionMetric(
            "brier",
            "Brier score",
            "Brier",
            "The mean squared difference between predicted probabilities and outcomes (0 or 1); "
            "lower is better.",
            higher_is_better=False,
            most=2.0,
        ),
    )
}


#: The metrics of predicted numbers; the first ranks methods by default.
NUMBER_METRICS: dict[str, PredictionMetric] = {
    metric.name: metric
    for metric in (
        PredictionMetric(
            "r2",
            "R²",
            "R²",
            "1 minus the squared error of held-out rows, relative to that of predicting their "
            "mean: 1 is perfect, 0 no better than the mean.",
            least=-math.inf,
            of_numbers=True,
        ),
        PredictionMetric(
            "rmse",
            "root mean squared error",
            "RMSE",
            "The root of the mean squared error of held-out rows, in units of the target; lower is "
            "better.",
            higher_is_better=False,
            most=math.inf,
            form=".4g",
            of_numbers=True,
        ),
    )
}
#: All metrics.
ALL_METRICS = METRICS | NUMBER_METRICS


def metrics_beside(metric: PredictionMetric) -> dict[str, PredictionMetric]:
    """Return the metrics of classes or of numbers, as the given one."""
    return NUMBER_METRICS if metric.of_numbers else METRICS


def default_metric(*, numbers: bool) -> str:
    """Return the name of the metric that ranks methods by default."""
    return next(iter(NUMBER_METRICS if numbers else METRICS))


def find_metric(name: str) -> PredictionMetric:
    """Return a metric by its name, or raise an error that lists them.

    Parameters
    ----------
    name : str
        Name of the metric; hyphens and spaces may replace underscores.

    Examples
    --------
    >>> from discernel.compare.metrics import find_metric
    >>> find_metric("log-loss").higher_is_better
    False
    """
    found = ALL_METRICS.get(name.lower().replace("-", "_").replace(" ", "_"))
    if found is None:
        raise unknown_choice("metric", name, list(ALL_METRICS))
    return found


def measure(
    y_true: NDArray[Any],
    y_pred: NDArray[Any],
    *,
    classes: NDArray[Any],
    scores: FloatArray | None = None,
    probabilities: FloatArray | None = None,
) -> dict[str, float]:
    """Return every metric that can be computed from the predictions, by name.

    Parameters
    ----------
    y_true, y_pred : ndarray of shape (n_rows,)
        True and predicted labels.
    classes : ndarray of shape (n_classes,)
        Classes of the training rows, in the order of the columns of scores and probabilities.
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes), optional
        Decision values.
    probabilities : ndarray of shape (n_rows, n_classes), optional
        Probability of each class.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 0, 1, 1])
    >>> p = np.array([0.1, 0.6, 0.7, 0.9])
    >>> both = np.column_stack([1 - p, p])
    >>> found = measure(y, both.argmax(axis=1), classes=np.arange(2), probabilities=both)
    >>> {name: round(value, 3) for name, value in found.items()}
    {'accuracy': 0.75, 'balanced_accuracy': 0.75, 'roc_auc': 1.0, 'log_loss': 0.371, 'brier': 0.118}
    """
    found = {
        "accuracy": float(np.mean(np.asarray(y_true) == np.asarray(y_pred))),
        "balanced_accuracy": float(
            recall_score(y_true, y_pred, labels=np.unique(y_true), average="macro")
        ),
    }
    two = len(classes) == 2
    # With more than two classes, decision values of different rows may have different scales.
    ranked = probabilities if scores is None or (not two and probabilities is not None) else scores
    area = None if ranked is None else _area(y_true, ranked, classes)
    if area is not None:
        found["roc_auc"] = area
    if probabilities is not None:
        truth = (np.asarray(y_true)[:, None] == classes).astype(np.float64)
        least = np.maximum(probabilities, LEAST_PROBABILITY)
        of_truth = (truth * least / least.sum(axis=1, keepdims=True)).sum(axis=1)
        found["log_loss"] = float(-np.log(np.maximum(of_truth, LEAST_PROBABILITY)).mean())
        # A class without training rows has probability 0.
        squares = ((probabilities - truth) ** 2).sum(axis=1) + (1.0 - truth.sum(axis=1))
        found["brier"] = float(squares.mean() / (2.0 if two else 1.0))  # as in scikit-learn
    return found


def measure_numbers(y_true: FloatArray, y_pred: FloatArray) -> dict[str, float]:
    """Return every metric of predicted numbers, by name.

    Parameters
    ----------
    y_true, y_pred : ndarray of shape (n_rows,)
        True and predicted numbers.

    Examples
    --------
    >>> import numpy as np
    >>> measure_numbers(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))["r2"]
    0.5
    """
    squares = float(np.mean((np.asarray(y_true) - np.asarray(y_pred)) ** 2))
    variance = float(np.var(y_true))
    found = {"rmse": math.sqrt(squares)}
    return {"r2": 1.0 - squares / variance, **found} if variance > 0 else found


def _area(y_true: NDArray[Any], scores: FloatArray, classes: NDArray[Any]) -> float | None:
    """Return the area under the ROC curve; with more than two classes, the one-against-rest mean.

    Classes that all rows or no rows belong to do not count. None if no class counts.
    """
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    if scores.shape[1] != len(classes):  # such as one column per pair of classes
        return None
    columns = [1] if len(classes) == 2 else range(len(classes))
    areas = []
    for column in columns:
        of_class = np.asarray(y_true) == classes[column]
        if 0 < of_class.sum() < len(of_class):
            areas.append(float(roc_auc_score(of_class, scores[:, column])))
    return float(np.mean(areas)) if areas else None
