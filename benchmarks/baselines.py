"""The methods the default is compared with: each learns one division and predicts its rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.svm import SVC
from tasks import Division, rows_for_default

from discernel import MultipleKernelDiscriminant
from discernel.kernels import RBF

#: The costs of errors an SVM searches.
C = [0.1, 1.0, 10.0, 100.0]


@dataclass(frozen=True)
class Prediction:
    """Classes of the held-out rows, and probabilities of all classes, shape (n_rows, n_classes).

    `expected` is what the method claims about new rows, None for methods without claims.
    """

    classes: np.ndarray
    probabilities: np.ndarray
    expected: Any = None


Method = Callable[[Division], Prediction]


def predict(clf: Any, X: Any) -> Prediction:
    return Prediction(clf.predict(X), clf.predict_proba(X), getattr(clf, "expected_", None))


def auto(division: Division, **options: Any) -> Prediction:
    """Take the default as it is; on several views, which it cannot know, given kernels."""
    if division.is_fusion:
        return on_kernels(division, **options)
    train, test = rows_for_default(division)
    return predict(MultipleKernelDiscriminant(**options).fit(train, division.y_train), test)


def on_kernels(division: Division, **options: Any) -> Prediction:
    clf = MultipleKernelDiscriminant(division.kernels, **options)
    return predict(clf.fit(division.kernel_train, division.y_train), division.kernel_test)


def average(division: Division) -> Prediction:
    return on_kernels(division, criterion="uniform")


def single(division: Division) -> Prediction:
    """Take the kernel with the least leave-one-out error on the training rows, and its λ."""
    best: tuple[float, Any] = (np.inf, None)
    for kernel in division.kernels:
        clf = MultipleKernelDiscriminant([kernel], criterion="uniform")
        clf.fit(division.kernel_train, division.y_train)
        error = min(clf.learned_kernel_.leave_one_out.values())
        if error < best[0]:
            best = (error, clf)
    return predict(best[1], division.kernel_test)


def svc_grid(division: Division) -> Prediction:
    """Search ten widths × four C by 5-fold CV; on fused data also the average kernel."""
    median = RBF().resolve(division.X_train).parameters["width"]
    widths = median * 2.0 ** np.linspace(-4, 4, 10)
    grid = GridSearchCV(SVC(), {"gamma": 1 / widths**2, "C": C}, cv=5, refit=False)
    grid.fit(division.X_train, division.y_train)
    svm, X_train, X_test = SVC(**grid.best_params_), division.X_train, division.X_test
    if division.is_fusion:
        grams, cross = division.normalized()
        average = GridSearchCV(SVC(kernel="precomputed"), {"C": C}, cv=5, refit=False)
        average.fit(grams.mean(axis=0), division.y_train)
        if average.best_score_ > grid.best_score_:
            svm = SVC(kernel="precomputed", **average.best_params_)
            X_train, X_test = grams.mean(axis=0), cross.mean(axis=0)
    calibrated = calibrate(svm, X_train, division.y_train)
    return Prediction(uncalibrated(calibrated).predict(X_test), calibrated.predict_proba(X_test))


def easymkl(division: Division) -> Prediction:
    """Take MKLpy's EasyMKL and an SVM of C = 10 on its kernel, one class against the rest."""
    from MKLpy.algorithms import EasyMKL

    grams, cross = division.normalized()
    scores, probabilities = [], []
    n_classes = int(division.y_train.max()) + 1
    for label in range(n_classes) if n_classes > 2 else [1]:
        y = np.where(division.y_train == label, 1, -1)
        mkl = EasyMKL(lam=0.1).fit(list(grams), y)
        weights = np.asarray(mkl.solution.weights, dtype=float)
        svm = SVC(kernel="precomputed", C=10.0)
        calibrated = calibrate(svm, np.tensordot(weights, grams, 1), y)
        K = np.tensordot(weights, cross, 1)
        scores.append(uncalibrated(calibrated).decision_function(K))
        probabilities.append(calibrated.predict_proba(K)[:, 1])
    if n_classes == 2:
        return Prediction(
            (scores[0] > 0).astype(int), np.column_stack([1.0 - probabilities[0], probabilities[0]])
        )
    stacked = np.column_stack(probabilities)
    return Prediction(np.argmax(scores, axis=0), stacked / stacked.sum(axis=1, keepdims=True))


def calibrate(svm: SVC, X: np.ndarray, y: np.ndarray) -> CalibratedClassifierCV:
    """Return an SVM of all rows with a sigmoid of its cross-validated scores (Platt)."""
    return CalibratedClassifierCV(svm, cv=5, ensemble=False).fit(X, y)


def uncalibrated(calibrated: CalibratedClassifierCV) -> SVC:
    """Return the SVM inside, whose classes are those of its margins, not of its sigmoids."""
    (only,) = calibrated.calibrated_classifiers_
    return only.estimator


def xrfm(division: Division) -> Prediction:
    """Take xRFM's defaults; a fifth of the training rows tunes it, as its documentation has it."""
    import torch
    from xrfm import xRFM

    X, X_tune, y, y_tune = train_test_split(
        division.X_train.astype(np.float32),
        division.y_train.astype(np.int64),
        test_size=0.2,
        random_state=division.seed,
        stratify=division.y_train,
    )
    clf = xRFM(device=torch.device("cpu"), random_state=division.seed, verbose=False)
    clf.fit(X, y, X_tune, y_tune)
    probabilities = clf.predict_proba(division.X_test.astype(np.float32)).astype(float)
    return Prediction(probabilities.argmax(axis=1), probabilities)


def columns_of(rows: Any, like: Any) -> Any:
    """Return rows as a DataFrame: numbers without gaps (medians of ``like``), and categories."""
    frame, known = pd.DataFrame(rows).copy(), pd.DataFrame(like)
    frame.columns = known.columns = [f"x{i}" for i in range(frame.shape[1])]
    for name in frame:
        if pd.api.types.is_numeric_dtype(known[name]):
            frame[name] = frame[name].astype(float).fillna(known[name].median())
        else:
            frame[name] = frame[name].astype(object).fillna("missing").astype(str)
            levels = sorted(known[name].astype(object).fillna("missing").astype(str).unique())
            frame[name] = pd.Categorical(frame[name], levels)
    return frame


def frames(division: Division) -> tuple[Any, Any]:
    """Return training and held-out rows for methods that take categories as they are."""
    if division.is_fusion:
        train, test = division.X_train, division.X_test
    else:
        train, test = division.raw_train, division.raw_test
    return columns_of(train, train), columns_of(test, train)


def lightgbm_tuned(division: Division) -> Prediction:
    """Search 12 random settings of LightGBM by 3 folds, each stopped early; fit the best to all."""
    import lightgbm

    X, X_test = frames(division)
    y, rng = division.y_train, np.random.default_rng(division.seed)
    least = max(2, min(3, int(np.bincount(y).min())))
    folds = list(StratifiedKFold(least, shuffle=True, random_state=division.seed).split(X, y))
    best: tuple[float, dict[str, Any]] = (np.inf, {})
    for _ in range(12):
        options = {
            "num_leaves": int(np.exp(rng.uniform(np.log(4), np.log(64)))),
            "min_child_samples": int(np.exp(rng.uniform(np.log(3), np.log(40)))),
            "learning_rate": float(np.exp(rng.uniform(np.log(0.02), np.log(0.2)))),
            "subsample": float(rng.uniform(0.6, 1.0)),
            "subsample_freq": 1,
            "colsample_bytree": float(rng.uniform(0.5, 1.0)),
            "reg_lambda": float(np.exp(rng.uniform(np.log(1e-3), np.log(10.0)))),
            "n_jobs": 1,
            "verbosity": -1,
            "random_state": division.seed,
        }
        losses, steps = [], []
        for train, held_out in folds:
            clf = lightgbm.LGBMClassifier(n_estimators=600, **options)
            stop = lightgbm.early_stopping(40, verbose=False)
            inside = [(X.iloc[held_out], y[held_out])]
            clf.fit(X.iloc[train], y[train], eval_set=inside, callbacks=[stop])
            losses.append(next(iter(next(iter(clf.best_score_.values())).values())))
            steps.append(clf.best_iteration_)
        if np.mean(losses) < best[0]:
            best = (
                float(np.mean(losses)),
                {**options, "n_estimators": round(np.mean(steps) * 1.2)},
            )
    return predict(lightgbm.LGBMClassifier(**best[1]).fit(X, y), X_test)


def from_pytabkit(name: str, **options: Any) -> Method:
    """Return a classifier of pytabkit with its tuned defaults: five bagged models, log-loss."""

    def run(division: Division) -> Prediction:
        import pytabkit
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        X, X_test = frames(division)
        clf = getattr(pytabkit, name)(
            device=device,
            random_state=division.seed,
            n_cv=5,
            n_threads=1,
            val_metric_name="cross_entropy",
            **options,
        )
        probabilities = clf.fit(X, division.y_train).predict_proba(X_test)
        return Prediction(probabilities.argmax(axis=1), probabilities)

    return run


def on_columns(make: Callable[..., Any], **options: Any) -> Method:
    """Return the method that fits a scikit-learn classifier on all columns."""

    def run(division: Division) -> Prediction:
        clf = make(random_state=division.seed, **options)
        probabilities = clf.fit(division.X_train, division.y_train).predict_proba(division.X_test)
        # That is what their ``predict`` does, at twice the time.
        return Prediction(probabilities.argmax(axis=1), probabilities)

    return run


CLASSIFIERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "forest": (RandomForestClassifier, {"n_estimators": 500}),
    "boosting": (HistGradientBoostingClassifier, {}),
    "logistic": (LogisticRegression, {"max_iter": 10_000}),
}
METHODS: dict[str, Method] = {
    "auto": auto,
    "average": average,
    "single": single,
    "svc grid": svc_grid,
    "easymkl": easymkl,
    **{name: on_columns(make, **options) for name, (make, options) in CLASSIFIERS.items()},
    "xrfm": xrfm,
}
#: The strongest methods for tables, each in the form that its authors recommend.
PEERS: dict[str, Method] = {
    "lightgbm tuned": lightgbm_tuned,
    "realmlp": from_pytabkit("RealMLP_TD_Classifier", use_ls=False),
    "tabm": from_pytabkit("TabM_D_Classifier"),
}
#: The same with classes that weigh the same however many rows they have.
BALANCED: dict[str, Method] = {
    f"{name} balanced": on_columns(make, class_weight="balanced", **options)
    for name, (make, options) in CLASSIFIERS.items()
}
if "class_weight" in inspect.signature(MultipleKernelDiscriminant).parameters:
    BALANCED = {
        "auto balanced": lambda division: auto(division, class_weight="balanced"),
        **BALANCED,
    }
