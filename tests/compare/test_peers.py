"""Classifiers of other packages: found where installed, with labels and seeds of ours."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from discernel.compare.methods import DEFAULT_METHODS, METHODS, find_method
from discernel.compare.metrics import measure
from discernel.compare.plan import Cell, Data, Splits
from discernel.compare.runner import run_cell
from discernel.exceptions import InvalidInputError

#: The peers by name.
PEERS = {method.name: method.run.args[0] for method in METHODS if method.package}
#: A package as strict as the strictest peer: labels from 0 on, rows in single precision.
STAND_IN = """
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

class {maker}(KNeighborsClassifier):
    def __init__(self, {parameters}):
        super().__init__()
        self.given = dict({given})
        vars(self).update(self.given)

    def fit(self, X, y, *tuning):
        assert X.dtype == np.float32 and y.dtype.kind == "i" and set(y) == set(range(max(y) + 1))
        self.n_tuning = len(tuning[0]) if tuning else 0
        return super().fit(X, y)
"""


def install(folder, monkeypatch, *peers):
    for package in {peer.package for peer in peers}:
        texts = []
        for peer in peers:
            names = [peer.seed, *peer.options]
            given = ", ".join(f"{name}={name}" for name in names)
            words = {"maker": peer.maker, "parameters": ", ".join(names), "given": given}
            texts += [STAND_IN.format(**words)] if peer.package == package else []
        (folder / f"{package}.py").write_text("\n".join(texts))
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.syspath_prepend(folder)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, *PEERS.values())
    yield tmp_path
    for peer in PEERS.values():
        sys.modules.pop(peer.package, None)


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_runs_as_a_method(name, installed):
    method = find_method(name)
    cell = Cell(Data("iris", options={"rows": 60}), method, Splits(n=1), repetition=0)
    _, result = run_cell(cell)
    assert result.error is None
    assert result.metrics["accuracy"] > 0.8
    assert {"log_loss", "roc_auc"} < set(result.metrics)


@pytest.mark.parametrize("name", PEERS)
def test_peers_have_their_defaults_our_seed_and_any_labels(name, installed):
    rng = np.random.default_rng(0)
    y = np.array(["well", "ill"])[np.arange(40) % 2]
    X = rng.normal(size=(40, 2)) + 5.0 * (y == "ill")[:, None]
    clf = clone(PEERS[name]).set_params(random_state=7).fit(X, y)
    assert clf.fitted_.given == {PEERS[name].seed: 7, **PEERS[name].options}
    assert clf.fitted_.n_tuning == (8 if PEERS[name].tunes else 0)
    assert clf.classes_.tolist() == ["ill", "well"]
    found = measure(y, clf.predict(X), classes=clf.classes_, probabilities=clf.predict_proba(X))
    assert found["accuracy"] == found["roc_auc"] == 1.0


def test_a_peer_that_is_not_installed_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("discernel.compare.methods.find_spec", lambda name: None)
    with pytest.raises(InvalidInputError, match="pip install pytabkit"):
        find_method("realmlp")


def test_installed_peers_are_compared_by_default(installed):
    code = "from discernel.compare.methods import DEFAULT_METHODS; print(*DEFAULT_METHODS, sep=',')"
    path = [str(installed), *sys.path]
    words = [sys.executable, "-c", f"import sys; sys.path = {path!r}\n{code}"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    names = list(PEERS)
    assert said.split(",")[-len(names) - 1 :] == [*names, "majority"]
    assert DEFAULT_METHODS[-1] == "majority"
