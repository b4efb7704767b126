"""Whether two versions of the package learn the same, to the last digits that mean something.

    python benchmarks/same_results.py --write before.json     # with the one version
    python benchmarks/same_results.py --against before.json   # with the other

Weights, λ, objectives and probabilities of every criterion that is asked for by its name, on
fixed divisions of the papers' data sets and of those bundled with scikit-learn.
"""

import argparse
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import discernel
from discernel import MultipleKernelDiscriminant
from discernel.kernels import RBF

BUNDLED = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
PAPERS = ["sonar", "ionosphere", "heart_statlog", "bupa", "pima"]
WIDTHS = np.geomspace(0.1, 100.0, 10)

#: What is asked for; those in the second list are for two classes.
ASKED = {
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
TWO_CLASSES = {
    "fdr 1e-8": {"criterion": "fdr", "regularization": 1e-8},
    "fdr 1e-3": {"criterion": "fdr", "regularization": 1e-3},
    "margin": {"criterion": "margin"},
}


def data_sets():
    for name, load in BUNDLED.items():
        yield name, *load(return_X_y=True)
    folder = os.environ.get("DISCERNEL_DATA")
    for name in PAPERS if folder else []:
        table = np.genfromtxt(Path(folder) / f"{name}.csv", delimiter=",", dtype=str)
        table = table[1:] if not _is_number(table[0, 0]) else table
        yield name, table[:, :-1].astype(float), np.unique(table[:, -1], return_inverse=True)[1]


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def results():
    for name, X, y in data_sets():
        asked = ASKED | (TWO_CLASSES if len(np.unique(y)) == 2 else {})
        train, test, y_train, _ = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
        scaler = StandardScaler().fit(train)
        train, test = scaler.transform(train), scaler.transform(test)
        for what, options in asked.items():
            for kernels, given in (("widths", [RBF(width=s) for s in WIDTHS]), ("auto", "auto")):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    clf = MultipleKernelDiscriminant(given, **options).fit(train, y_train)
                learned = clf.learned_kernel_
                yield (
                    f"{name}, {what}, {kernels}",
                    {
                        "weights": learned.weights.tolist(),
                        "regularization": learned.regularization,
                        "objective": learned.objective,
                        "probabilities": clf.predict_proba(test).ravel().tolist(),
                    },
                )


def difference(before, after):
    """Return the largest difference of two results, relative to their size."""
    worst = {}
    for what in before:
        a, b = (np.atleast_1d(np.asarray(r[what], dtype=float)) for r in (before, after))
        if a.shape != b.shape:
            worst[what] = np.inf
            continue
        size = max(1.0, float(np.nanmax(np.abs(a), initial=0.0)))
        size = abs(a).max() if what == "regularization" else size
        worst[what] = float(np.nanmax(np.abs(a - b), initial=0.0) / size)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--limit", type=float, default=1e-8)
    options = parser.parse_args()
    print(f"discernel {discernel.__version__} of {Path(discernel.__file__).parents[2].name}")
    found = dict(results())
    if options.write:
        options.write.write_text(json.dumps(found))
    if not options.against:
        return 0
    before = json.loads(options.against.read_text())
    same, other = 0, []
    for name in sorted(set(before) & set(found)):
        worst = difference(before[name], found[name])
        if max(worst.values()) <= options.limit:
            same += 1
        else:
            other.append(name)
            print(name, {what: f"{value:.1e}" for what, value in worst.items()})
    print(f"{same} of {same + len(other)} results are the same to {options.limit:.0e}")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
