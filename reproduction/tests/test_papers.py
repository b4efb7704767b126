"""The papers' experiments: every kind of method, and one quick table of each paper."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import auc as area
from sklearn.model_selection import LeaveOneOut, StratifiedKFold, cross_val_score
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from discernel import align_kernels, reweigh_spectrum
from discernel.compare.methods import METHODS as COMPARED
from discernel.compare.plan import Cell, Data, Method, Splits
from discernel.compare.roc import mean_roc
from discernel.compare.runner import run_cell
from discernel.compare.store import Store
from discernel.compare.tasks import TrainTestSplit
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Linear
from discernel.papers.separability.spectrum_choice import SHARES
from discernel_reproduction import simplemkl
from discernel_reproduction.baselines import ConformalKernelTransformer
from discernel_reproduction.kernels import make_kernels
from discernel_reproduction.methods import METHODS, PAPERS
from discernel_reproduction.methods.inductive import kfd_grid
from discernel_reproduction.methods.transductive import leave_one_out
from discernel_reproduction.papers.common import auc
from discernel_reproduction.reproduce import compare, names, reproduce, reproduction, stored
from discernel_reproduction.tasks import load_split

mpl.use("Agg")

TWO = [["RBF", {"width": 2.0}], ["RBF", {"width": 8.0}]]
SIX = [
    *(["Polynomial", {"degree": degree}] for degree in (1, 2, 3, 4)),
    ["RBF", {"length_scale": 0.5}],
    ["Exponential", {"width": 0.5}],
]
FINALS = {"k-NN k=3": {"n_neighbors": 3}, "SVM C=100": {"C": 100.0}}
WIDTHS = {"squared_widths": ["mean", 5.0], "finals": FINALS}

#: One case a kind: a data set, options, and the accuracy below which something is wrong.
CASES = {
    "akfd": ("wdbc", {"kernels": TWO, "nu": 1.0}, 0.9),
    "aligned": ("wdbc", {"kernels": TWO, "method": "greedy"}, 0.9),
    "alignment_seconds": ("wdbc", {"counts": [3, 6], "repeats": 1}, 0.6),
    "boosting": ("wine", {"max_iter": 20}, 0.85),
    "conformal": ("wine", WIDTHS, 0.9),
    "discriminant": ("wdbc", {"kernels": TWO, "criterion": "fdr", "regularization": 0.1}, 0.9),
    "forest": ("wine", {"n_estimators": 30}, 0.9),
    "kfd_grid": ("wdbc", {"kernels": TWO, "nus": [0.1, 1.0], "folds": 3}, 0.9),
    "lda": ("wine", {}, 0.9),
    "logistic": ("wine", {}, 0.9),
    "majority": ("wine", {}, 0.3),
    "margin": ("wdbc", {"kernels": TWO, "kind": "SM2"}, 0.9),
    "plain": ("wine", WIDTHS, 0.9),
    "separability": ("wine", WIDTHS, 0.9),
    "single": ("wdbc", {"kernels": TWO, "regularizations": [0.1], "cv": 3}, 0.9),
    "svc_grid": ("wine", {"n_widths": 3, "C": [1.0, 10.0]}, 0.9),
    "timed": ("wdbc", {"kernels": TWO, "norm": 2.0}, 0.9),
}


def case(kind, options=None, repetition=0):
    data, chosen, _ = CASES[kind]
    return Cell(
        Data(data, options={"rows": 150}),
        Method(kind, kind, chosen if options is None else options),
        Splits(train_size=0.4),
        repetition,
    )


def outcome(kind, options=None):
    cell = case(kind, options)
    return METHODS[kind](load_split(cell), dict(cell.method.options)), load_split(cell)


# ---- every kind ----------------------------------------------------------------------------------


def test_every_kind_of_method_has_a_case_and_is_in_some_plan():
    assert set(CASES) == set(METHODS) - {method.kind for method in COMPARED if method.package}
    plans = [simplemkl.PLAN, *(plan for name in names() for plan in reproduction(name).plans)]
    compared = {method.kind for method in COMPARED}
    assert {m.kind for plan in plans for m in plan.methods} | compared == set(METHODS)
    assert all(cell.key for plan in plans for cell in plan.cells()[:1])  # digests plain data only


@pytest.mark.parametrize("kind", sorted(CASES))
def test_each_kind_classifies_and_can_be_stored(kind, tmp_path):
    cell, result = run_cell(case(kind), PAPERS)
    assert result.error is None
    assert CASES[kind][2] <= result.metrics["accuracy"] <= 1.0
    with Store(tmp_path / "results.sqlite") as store:
        store.add(cell, result, {})
        (found,) = store.records([cell], predictions=True)
    assert found.result == result
    assert len(found.result.predictions["y_pred"]) == 90


@pytest.mark.parametrize("kind", ["akfd", "kfd_grid", "single", "discriminant"])
def test_weights_and_scores_are_kept_where_there_are_any(kind):
    found, split = outcome(kind)
    assert list(found.weights) == [RBF(width=2.0).name, RBF(width=8.0).name]
    assert sum(found.weights.values()) == pytest.approx(1.0)
    second = np.unique(split.y_train)[1]
    np.testing.assert_array_equal(
        found.predictions["y_pred"] == second, found.predictions["scores"] > 0
    )


def test_options_that_mean_nothing_are_an_error():
    with pytest.raises(InvalidInputError, match=r"no options \['widths'\]"):
        outcome("plain", {"widths": [1.0]})


def test_an_unknown_way_to_align_is_an_error():
    with pytest.raises(InvalidInputError, match="gradient"):
        outcome("aligned", {"kernels": TWO, "method": "newton"})


# ---- Fung 2004 -----------------------------------------------------------------------------------


def test_kfd_grid_is_the_best_pair_by_plain_normal_equations():
    """Fung04, Eq. (14): (HᵀH + I/ν)[v; γ] = Hᵀd with H = [K, −e], sign(K(x)v − γ)."""
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    split = TrainTestSplit(X[:120], X[120:200], y[:120], y[120:200], seed=3)
    kernels, nus = [Linear(), RBF(gamma=0.01)], [1e-3, 1.0, 1e3]

    def predict(kernel, nu, A, labels, B):
        H = np.column_stack([kernel(A), -np.ones(len(A))])
        positive = labels == 1
        d = np.where(positive, len(A) / positive.sum(), -len(A) / (~positive).sum())
        solution = np.linalg.solve(H.T @ H + np.eye(H.shape[1]) / nu, H.T @ d)
        return np.column_stack([kernel(B, A), -np.ones(len(B))]) @ solution

    folds = list(StratifiedKFold(3, shuffle=True, random_state=3).split(X[:120], y[:120]))
    accuracy = {
        (k, nu): np.mean(
            [np.mean((predict(kernels[k], nu, X[a], y[a], X[b]) > 0) == y[b]) for a, b in folds]
        )
        for k in (0, 1)
        for nu in nus
    }
    best, nu = max(accuracy, key=accuracy.get)
    spec = [["Linear", {}], ["RBF", {"gamma": 0.01}]]
    found = kfd_grid(split, {"kernels": spec, "nus": nus, "folds": 3})
    assert found.details["nu"] == nu
    assert found.weights[kernels[best].name] == 1.0
    expected = predict(kernels[best], nu, X[:120], y[:120], X[120:200])
    np.testing.assert_allclose(found.predictions["scores"], expected, rtol=1e-6, atol=1e-8)


def test_fung_table1_on_one_split(paper_data, tmp_path):
    found = one_data_set(reproduction("fung2004-table1").with_splits(1), "bupa")
    with Store(tmp_path / "results.sqlite") as store:
        cells = {each.cell.column: each for each in reproduce(found, store)}
        assert all(
            each.ours > 0.0
            for each in compare(
                one_data_set(reproduction("fung2004-table2"), "bupa"), stored(found, store)
            )
        )
    assert all(55.0 < cells[method].ours < 80.0 for method in ("A-KFD", "KFD + kernel tuning"))
    assert cells["p-value"].verdict == "not run"  # of one split there is none


def one_data_set(found, name):
    """Return a reproduction with one of its data sets only."""
    plans = tuple(
        replace(plan, datasets=tuple(data for data in plan.datasets if data.name == name))
        for plan in found.plans
    )
    links = tuple(link for link in found.links if link.data == name)
    return replace(found, plans=plans, links=links)


# ---- Kim 2006 ------------------------------------------------------------------------------------


def test_kim_table1_and_figure1_on_two_splits(paper_data, tmp_path):
    table = one_data_set(reproduction("kim2006-table1").with_splits(2), "sonar")
    curves = reproduction("kim2006-figure1").with_splits(2)
    with Store(tmp_path / "results.sqlite") as store:
        cells = reproduce(table, store)
        n_cells = len(store.finished())
        areas = reproduce(curves, store)
        assert len(store.finished()) == n_cells  # the same cells
        records = stored(curves, store)
    assert [each.n for each in cells] == [2, 2]
    assert all(each.ours > 70.0 for each in cells)
    by_method = [[r for r in records if r.cell.method.name == m] for m in ("K*", "K_cv")]
    for comparison, ours in zip(areas, by_method, strict=True):
        assert comparison.ours == pytest.approx(np.mean([auc(each) for each in ours]))
        # The area under the mean curve is the mean of the areas, up to the grid.
        curve = mean_roc(ours)
        assert curve.area == pytest.approx(comparison.ours)
        assert area(curve.false, curve.true) == pytest.approx(comparison.ours, abs=0.005)
    (ax,) = curves.figure(records).axes
    assert [text.get_text()[:4] for text in ax.get_legend().get_texts()] == ["K*: ", "K_cv"]


# ---- Pothin 2006 ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unit_rows():
    """A split of wdbc with features in [0, 1]."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return TrainTestSplit(X[:150], X[150:250], y[:150], y[150:250])


def aligned(kernel, X, y):
    """Pothin06, Eq. (4)."""
    K, signs = kernel(X), np.where(y == 1, 1.0, -1.0)
    return signs @ K @ signs / (len(y) * np.linalg.norm(K))


def test_alignments_are_those_of_the_definition(unit_rows):
    options = {"kernels": SIX, "method": "first", "losses": ["l1", "l2"], "C": [1.0, 10.0]}
    found = METHODS["aligned"](unit_rows, dict(options))
    (name,) = [name for name, weight in found.weights.items() if weight > 0]
    kernels = {kernel.name: kernel for kernel in align_kernels_of(SIX)}
    values = {n: aligned(k, unit_rows.X_train, unit_rows.y_train) for n, k in kernels.items()}
    assert name == max(values, key=values.get)
    assert found.metrics["alignment, training"] == pytest.approx(values[name])
    test = aligned(kernels[name], unit_rows.X_test, unit_rows.y_test)
    assert found.metrics["alignment, test"] == pytest.approx(test)
    assert found.metrics["kernels"] == 1
    wrong = 100.0 * np.mean(found.predictions["y_pred"] != unit_rows.y_test)
    assert found.metrics["l1, C=1"] == pytest.approx(wrong)
    assert {"l1, C=10", "l2, C=1", "l2, C=10"} < set(found.metrics)


def align_kernels_of(spec):
    return make_kernels(spec, TrainTestSplit(*[np.zeros((1, 1))] * 4))


def test_the_ways_to_align_come_in_the_order_of_the_paper(unit_rows):
    ways = {
        way: METHODS["aligned"](unit_rows, {"kernels": SIX, "method": way})
        for way in ("first", "greedy", "qp", "gradient")
    }
    reached = {way: found.metrics["alignment, training"] for way, found in ways.items()}
    assert reached["first"] < reached["greedy"] <= reached["qp"] + 1e-9
    assert reached["greedy"] < reached["gradient"]
    path = np.array(ways["gradient"].details["path"])
    assert path[0, 1] == pytest.approx(reached["greedy"])
    assert path[-1, 1] == pytest.approx(reached["gradient"])
    assert path[-1, 2] == pytest.approx(ways["gradient"].metrics["alignment, test"])
    assert np.all(np.diff(path[:, 1]) >= -1e-12)
    history = align_kernels(
        align_kernels_of(SIX), unit_rows.X_train, unit_rows.y_train, centered=False
    ).history
    np.testing.assert_allclose(path[:, 1], [history[int(i)] for i in path[:, 0]])


def test_pothin_table2_and_figures_on_few_splits(paper_data, tmp_path):
    table2, figure1, figure2 = (
        reproduction(f"pothin2006-{place}").with_splits(1)
        for place in ("table2", "figure1", "figure2")
    )
    with Store(tmp_path / "results.sqlite") as store:
        cells = {(each.cell.row, each.cell.column): each for each in reproduce(table2, store)}
        reproduce(figure2, store)
        reproduce(figure1, store)
        (lines,) = figure2.figure(stored(figure2, store)).axes
        (times,) = figure1.figure(stored(figure1, store)).axes
    assert cells["alignment (greedy)", "kernels"].ours == 2
    first = cells["alignment (greedy), first kernel", "training"].ours
    assert first < cells["alignment (greedy)", "training"].ours
    assert len(lines.get_lines()) == 2
    assert [line.get_label() for line in times.get_lines()] == ["QP", "greedy"]
    assert all(np.all(line.get_ydata() > 0) for line in times.get_lines())


def test_pothin_table3_takes_the_least_error_of_cross_validation(tmp_path):
    """On the public wdbc in place of the paper's set, with some of its kernels."""
    full = reproduction("pothin2006-table3")
    (plan,) = full.plans
    small = replace(
        plan,
        datasets=(Data("wdbc", "minmax", options={"rows": 100}),),
        methods=(*plan.methods[2:6], plan.methods[-2]),  # four single kernels, QP
    )
    links = tuple(replace(link, data="wdbc") for link in full.links)
    found = replace(full, plans=(small,), links=links)
    with Store(tmp_path / "results.sqlite") as store:
        cells = {(each.cell.row, each.cell.column): each for each in reproduce(found, store)}
        records = stored(found, store)
    single = {}
    for each in records:
        if each.cell.method.name.startswith("single"):
            for name, value in each.result.metrics.items():
                if name.startswith("l2, "):
                    single.setdefault((each.cell.method.name, name), []).append(value)
    least = min(np.mean(errors) for errors in single.values())
    assert cells["ℓ2-SVM, κ_opt", "error"].ours == pytest.approx(least)
    assert cells["ℓ2-SVM, κ_opt", "error"].n == 5
    qp = [r.result.metrics["alignment, training"] for r in records if r.cell.method.name == "QP"]
    assert cells["ℓ1-SVM, κ_μ (QP)", "alignment"].ours == pytest.approx(np.mean(qp))
    assert cells["ℓ1-SVM, κ_μ (greedy)", "error"].verdict == "not run"


# ---- Yeung 2006 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_leave_one_out_by_support_vectors_is_leave_one_out(C):
    X, y = load_wine(return_X_y=True)
    gram = RBF(width=4.0)(scale(X)[::3])
    machine = SVC(kernel="precomputed", C=C, tol=1e-6)
    slow = cross_val_score(machine, gram, y[::3], cv=LeaveOneOut()).mean()
    assert leave_one_out(machine, gram, y[::3]) == pytest.approx(slow)


def transductive(kind, **options):
    cell = Cell(Data("wine", "none"), Method(kind, kind), Splits(train_size=0.2), 0)
    split = load_split(cell)
    X = scale(np.concatenate([split.X_train, split.X_test]))
    return METHODS[kind](split, options), split, X


def test_widths_are_in_units_of_squares_and_the_mean_is_that_of_all_pairs():
    found, _, X = transductive("plain", finals={"k-NN k=1": {"n_neighbors": 1}})
    mean = np.mean(np.sum((X[:, None] - X[None]) ** 2, axis=2))
    assert found.details["width"]["k-NN k=1"] ** 2 == pytest.approx(mean)


@pytest.mark.parametrize("method", ["closed_form", "alignment"])
def test_machines_have_the_share_that_validates_best(method):
    """The slow way: every share re-weighed from the matrix itself, in every fold."""
    finals = {"SVM C=100": {"C": 100.0}}
    found, split, X = transductive(
        "separability", method=method, squared_widths=[25.0], finals=finals
    )
    K, y, n = RBF(width=5.0)(X), split.y_train, len(split.y_train)

    def marked(rows):
        labels = np.full(len(X), -1)
        labels[rows] = y[rows]
        return labels

    def learned(rows, share):
        return reweigh_spectrum(K, marked(rows), method=method, share=share).matrix

    n_folds = min(10, np.bincount(y).min())
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=split.seed).split(y, y))
    right = []
    for share in SHARES:
        hits = 0
        for a, b in folds:
            matrix = learned(a, share)
            svm = SVC(kernel="precomputed", C=100.0).fit(matrix[np.ix_(a, a)], y[a])
            hits += np.sum(svm.predict(matrix[np.ix_(b, a)]) == y[b])
        right.append(hits)
    matrix = learned(np.arange(n), SHARES[int(np.argmax(right))])
    svm = SVC(kernel="precomputed", C=100.0).fit(matrix[:n, :n], y)
    np.testing.assert_array_equal(found.predictions["y_pred"], svm.predict(matrix[n:, :n]))


def test_a_conformal_kernel_on_all_rows_is_that_of_the_transformer():
    finals = {"SVM C=100": {"C": 100.0}}
    found, split, X = transductive("conformal", squared_widths=[25.0], finals=finals)
    n, y = len(split.y_train), split.y_train
    slow = ConformalKernelTransformer(RBF(width=5.0), random_state=split.seed).fit(X[:n], y)
    svm = SVC(kernel="precomputed", C=100.0).fit(slow.transform(X[:n]), y)
    np.testing.assert_array_equal(found.predictions["y_pred"], svm.predict(slow.transform(X[n:])))


def with_options(methods, **options):
    return tuple(replace(method, options={**method.options, **options}) for method in methods)


def test_yeung_table4_on_one_split(tmp_path):
    full = reproduction("yeung2006-table4").with_splits(1)
    finals = {"k-NN k=1": {"n_neighbors": 1}, "k-NN k=3": {"n_neighbors": 3}}
    plan = full.plans[0]
    methods = with_options(plan.methods, finals=finals, squared_widths=["mean", 5.0])
    links = tuple(link for link in full.links if link.column.startswith("20%, k-NN"))
    found = replace(full, plans=(replace(plan, methods=methods),), links=links)
    with Store(tmp_path / "results.sqlite") as store:
        cells = reproduce(found, store)
    assert len(cells) == 6
    assert all(each.n == 1 and 85.0 < each.ours <= 100.0 for each in cells)


def test_yeung_figure1_groups_the_classes(tmp_path):
    full = reproduction("yeung2006-figure1")
    (plan,) = full.plans
    methods = with_options(plan.methods, squared_widths=["mean", 1.0])  # the two it might choose
    found = replace(full, plans=(replace(plan, methods=methods),))
    with Store(tmp_path / "results.sqlite") as store:
        assert reproduce(found, store) == []
        records = stored(found, store)
    figure = found.figure(records)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert [title[:3] for title in titles] == ["(a)", "(b)", "(c)", "(d)"]
    for ax in figure.axes:
        assert sum(len(points.get_offsets()) for points in ax.collections) == 500
    # The paper's claim: only the learned matrix puts both groups of a class together. Distance of
    # the two groups of a class, as a share of that between the classes.
    apart = {each.cell.method.name: spread(each.result.details) for each in records}
    assert apart["Ours"] < 0.5 < min(apart["RBF"], apart["Xiong's"])


def spread(details):
    rows, points = np.array(details["rows"]), np.array(details["embedding"])
    side = [rows[:, 1] > 1, rows[:, 1] < -1, rows[:, 0] < -1, rows[:, 0] > 1]
    up, down, left, right = (points[rows_of].mean(axis=0) for rows_of in side)
    within = np.linalg.norm(up - down) + np.linalg.norm(left - right)
    return within / (2.0 * np.linalg.norm((up + down - left - right) / 2.0) + within)


def test_the_toy_has_the_sizes_that_the_paper_states():
    split = load_split(Cell(Data("five_groups", "none"), Method("", "lda"), Splits(1, 0.1), 0))
    y = np.concatenate([split.y_train, split.y_test])
    assert np.bincount(y).tolist() == [200, 200, 100]
    assert np.bincount(split.y_train).tolist() == [20, 20, 10]


def test_nothing_is_compared_before_it_is_run():
    found = reproduction("yeung2006-table1")
    assert {each.verdict for each in compare(found, [])} == {"not run"}
