"""Metrics against scikit-learn's, and where it has none."""

import math

import numpy as np
import pytest
from sklearn import metrics as sk

from discernel.compare.metrics import LEAST_PROBABILITY, METRICS, find_metric, measure
from discernel.exceptions import InvalidInputError


def predictions(n_classes, seed=0, n_rows=200):
    rng = np.random.default_rng(seed)
    classes = np.array(["a", "b", "c", "d"])[:n_classes]
    y = rng.choice(classes, size=n_rows, p=[0.7, *[0.3 / (n_classes - 1)] * (n_classes - 1)])
    scores = rng.normal(size=(n_rows, n_classes)) + 1.5 * (y[:, None] == classes)
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return y, classes, scores, probabilities


@pytest.mark.parametrize("n_classes", [2, 4])
def test_metrics_are_those_of_scikit_learn(n_classes):
    y, classes, scores, p = predictions(n_classes)
    y_pred = classes[p.argmax(axis=1)]
    decision = scores[:, 1] - scores[:, 0] if n_classes == 2 else scores
    found = measure(y, y_pred, classes=classes, scores=decision, probabilities=p)
    area = (
        sk.roc_auc_score(y, decision)
        if n_classes == 2
        else sk.roc_auc_score(y, p, multi_class="ovr", average="macro")
    )
    truth = y[:, None] == classes
    brier = np.mean((p[:, 1] - truth[:, 1]) ** 2)
    if n_classes > 2:
        brier = np.mean(np.sum((p - truth) ** 2, axis=1))
    expected = {
        "accuracy": sk.accuracy_score(y, y_pred),
        "balanced_accuracy": sk.balanced_accuracy_score(y, y_pred),
        "roc_auc": area,
        "log_loss": sk.log_loss(y, p, labels=classes),
        "brier": brier,
    }
    assert found == pytest.approx(expected, abs=1e-5)  # of the log-loss, by the least probability
    assert set(found) == set(METRICS)


def test_what_predictions_do_not_tell_is_left_out():
    y, classes, _, p = predictions(3)
    y_pred = classes[p.argmax(axis=1)]
    assert set(measure(y, y_pred, classes=classes)) == {"accuracy", "balanced_accuracy"}
    only = y == "a"
    found = measure(y[only], y_pred[only], classes=classes, probabilities=p[only])
    assert "roc_auc" not in found
    assert found["balanced_accuracy"] == found["accuracy"]


def test_classes_without_held_out_rows_do_not_count():
    y, classes, _, p = predictions(4)
    kept = y != "d"
    found = measure(
        y[kept], classes[p.argmax(axis=1)][kept], classes=classes, probabilities=p[kept]
    )
    areas = [sk.roc_auc_score(y[kept] == label, p[kept, i]) for i, label in enumerate("abc")]
    assert found["roc_auc"] == pytest.approx(np.mean(areas))


def test_a_row_that_was_sure_and_wrong_does_not_cost_everything():
    p = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = measure(np.array([1, 1]), np.array([0, 1]), classes=np.arange(2), probabilities=p)
    assert found["log_loss"] == pytest.approx(-math.log(LEAST_PROBABILITY) / 2, rel=1e-4)


def test_metrics_are_found_by_name_and_shown():
    assert find_metric("Log-Loss") is METRICS["log_loss"]
    assert [METRICS["accuracy"].show_with_unit(0.5), METRICS["log_loss"].show_with_unit(0.5)] == [
        "50.0 %",
        "0.500",
    ]
    assert METRICS["roc_auc"].show(math.nan) == "–"
    with pytest.raises(InvalidInputError, match=r"The metric must be one of 'accuracy', .* 'f1'"):
        find_metric("f1")
