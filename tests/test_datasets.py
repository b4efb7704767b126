"""Data sets by name: each source, what is checked on load, and every way to fail."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from discernel import MultipleKernelDiscriminant
from discernel.datasets import (
    DataUnavailableError,
    load,
    make_waveform,
    names,
    private_names,
)
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF
from discernel.rows.catalog import CATALOG, PRIVATE
from discernel.rows.generators import WAVES_OF_CLASS, base_waves, make_monks

IN_FOLDER = [name for name, entry in CATALOG.items() if entry.file]
AT_HAND = [name for name, entry in CATALOG.items() if not entry.file and name != "olivetti"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder; nothing beyond it can be reached, and nothing is cached."""
    monkeypatch.setenv("DISCERNEL_DATA", str(tmp_path))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # a port where nobody listens
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def paper_folder():
    named = os.environ.get("DISCERNEL_DATA")
    if not named or not Path(named).is_dir():
        pytest.skip("DISCERNEL_DATA names no folder with the papers' data sets")
    return Path(named)


def labels_of(entry):
    return [label for label, count in entry.classes.items() for _ in range(count)]


def csv_lines(name, seed=0):
    """Lines of a file of the right shape and class counts, with random features."""
    entry = CATALOG[name]
    n_samples, n_features = entry.shape
    X = np.random.default_rng(seed).standard_normal((n_samples, n_features)).round(3)
    header = ",".join([*(f"x{index}" for index in range(n_features)), "target"])
    rows = zip(X.tolist(), labels_of(entry), strict=True)
    return [header, *(",".join(map(str, [*row, label])) for row, label in rows)], X


def write_csv(folder, name, lines):
    (folder / CATALOG[name].file).write_text("\n".join(lines) + "\n")


# ---- at hand ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AT_HAND)
def test_bundled_sets_need_nothing(name, folder):
    data = load(name)
    assert data.X.shape == CATALOG[name].shape
    assert data.X.dtype == np.float64
    assert len(data.feature_names) == data.X.shape[1]
    assert data.source in ("scikit-learn", "rule")
    assert data.name == name
    assert data.views == {}
    assert data.train is None


def test_names_are_sorted_and_apart():
    assert names() == sorted(set(names()))
    assert not set(names()) & set(private_names())


def test_every_stand_in_exists():
    assert all(other in names() for private in PRIVATE.values() for other in private["instead"])


def test_the_catalogue_agrees_with_itself():
    for name, entry in CATALOG.items():
        assert not entry.views or sum(entry.views.values()) == entry.shape[1], name
        assert not entry.features or len(entry.features) == entry.shape[1], name
        assert entry.classes is None or sum(entry.classes.values()) == entry.shape[0], name
        assert not entry.openml or list(entry.openml) == list(entry.views or ["all"]), name


def test_monks_rules_by_loops():
    for problem in (1, 2, 3):
        X, y = make_monks(problem)
        assert len(np.unique(X, axis=0)) == 432
        for (a1, a2, a3, a4, a5, a6), label in zip(X.tolist(), y.tolist(), strict=True):
            rules = {
                1: a1 == a2 or a5 == 1,
                2: [a1, a2, a3, a4, a5, a6].count(1) == 2,
                3: (a5 == 3 and a4 == 1) or (a5 != 4 and a2 != 3),
            }
            assert label == int(rules[problem])


def test_a_frame_has_names_and_the_same_numbers():
    plain, framed = load("wdbc"), load("wdbc", as_frame=True)
    assert list(framed.X.columns) == list(framed.feature_names)
    assert framed.y.name == "target"
    np.testing.assert_array_equal(framed.X.to_numpy(), plain.X)
    np.testing.assert_array_equal(framed.y.to_numpy(), plain.y)


def test_without_pandas_only_frames_are_missing():
    code = """
import sys
sys.modules["pandas"] = None
from discernel.datasets import load
from discernel.exceptions import MissingExtraError
print(load("wine").X.shape)
try:
    load("wine", as_frame=True)
except MissingExtraError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.startswith("(178, 13)\nas_frame=True needs pandas")


# ---- waveforms -------------------------------------------------------------------------------


def test_base_waves_are_the_triangles_of_the_definition():
    def h1(i):
        return max(6 - abs(i - 11), 0)

    points = range(1, 22)
    expected = [[h1(i) for i in points], [h1(i - 4) for i in points], [h1(i + 4) for i in points]]
    np.testing.assert_array_equal(base_waves(), expected)


def test_waveform_moments():
    """Class mean (h_a + h_b)/2, covariance I + (h_a − h_b)(h_a − h_b)ᵀ/12, equal classes."""
    X, y = make_waveform(60_000, n_noise_features=2, random_state=0)
    assert np.abs(np.bincount(y) / len(y) - 1 / 3).max() < 0.01
    for label, pair in enumerate(WAVES_OF_CLASS):
        first, second = base_waves()[list(pair)]
        rows = X[y == label, :21]
        assert np.abs(rows.mean(axis=0) - (first + second) / 2).max() < 0.06
        covariance = np.eye(21) + np.outer(first - second, first - second) / 12
        assert np.abs(np.cov(rows.T) - covariance).max() < 0.15
    noise = X[:, 21:]
    assert np.abs(noise.mean(axis=0)).max() < 0.02
    assert np.abs(np.cov(noise.T) - np.eye(2)).max() < 0.03


def test_waveform_is_seeded():
    np.testing.assert_array_equal(
        make_waveform(5, random_state=1)[0], make_waveform(5, random_state=1)[0]
    )
    assert not np.array_equal(
        make_waveform(5, random_state=1)[0], make_waveform(5, random_state=2)[0]
    )


@pytest.mark.parametrize("given", [-1, 2.5, True, "5"])
@pytest.mark.parametrize("parameter", ["n_samples", "n_noise_features"])
def test_waveform_needs_counts(parameter, given):
    with pytest.raises(InvalidInputError, match=f"{parameter} must be an integer of at least"):
        make_waveform(**{parameter: given})


# ---- the folder ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sonar", "bupa"])
def test_a_file_is_read_as_it_is(name, folder):
    lines, X = csv_lines(name)
    write_csv(folder, name, lines)
    data = load(name)
    np.testing.assert_array_equal(data.X, X)
    assert data.y.tolist() == labels_of(CATALOG[name])
    assert data.y.dtype.kind == ("U" if name == "sonar" else "i")
    assert data.source == f"folder, {name}.csv"


def test_boston_housing_as_numbers_and_as_classes(folder):
    lines, _ = csv_lines("boston_housing_binary")
    medv = np.r_[np.full(257, 21.1), np.full(249, 21.0)]
    rows = [line.rsplit(",", 1)[0] for line in lines[1:]]
    lines[1:] = [f"{row},{value}" for row, value in zip(rows, medv, strict=True)]
    write_csv(folder, "boston_housing", lines)
    np.testing.assert_array_equal(load("boston_housing").y, medv)
    assert load("boston_housing_binary").y.tolist() == ["above 21"] * 257 + ["up to 21"] * 249
    lines[7] = lines[7].rsplit(",", 1)[0] + ",nan"
    write_csv(folder, "boston_housing", lines)
    with pytest.raises(InvalidInputError, match=r"finite targets .* 506\. Got 505"):
        load("boston_housing")


def test_a_word_for_a_number_to_predict(folder):
    lines, _ = csv_lines("boston_housing_binary")  # its labels are words
    write_csv(folder, "boston_housing", lines)
    with pytest.raises(InvalidInputError, match=r"column 'target' must hold numbers.* in row 1 of"):
        load("boston_housing")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00x0", b'"' + b"x" * 200_000])
def test_a_file_that_is_no_csv(folder, content):
    (folder / "sonar.csv").write_bytes(content)
    with pytest.raises(
        InvalidInputError, match=r"sonar\.csv must be (a valid CSV file|encoded in UTF-8)"
    ):
        load("sonar")


def spoil(lines, row, change):
    cells = lines[row - 1].split(",")
    lines[row - 1] = ",".join(change(cells))


@pytest.mark.parametrize(
    ("row", "change", "message"),
    [
        (1, lambda c: [*c[:3], "x", *c[4:]], r"sonar\.csv must have .* Missing: 'x3'"),
        (1, lambda c: [*c[:-1], "y"], r"sonar\.csv must have .* Missing: 'target'"),
        (1, lambda c: c[:-1], r"sonar\.csv: line 2 must have 60 cells, like line 1\. Got 61"),
        (5, lambda c: [*c[:7], "seven", *c[8:]], r"'x7' must hold .* Got 'seven' in row 4"),
        (9, lambda c: c[:12], r"sonar\.csv: line 9 must have 61 cells, like line 1\. Got 12"),
        (9, lambda c: [*c, "1"], r"line 9 must have 61 cells, like line 1\. Got 62"),
        (4, lambda c: [*c[:-1], ""], r"column 'target' is empty in row 3 of sonar\.csv"),
        (4, lambda c: ["", *c[1:]], r"number of missing values of .*'sonar' must be 0\. Got 1"),
        (4, lambda c: ["inf", *c[1:]], r"column 'x0' has inf in row 3 of"),
        (4, lambda c: [*c[:-1], "X"], r"members of the classes .*\{'M': 111, 'R': 97\}\. Got"),
    ],
)
def test_a_broken_file_is_named_with_row_and_column(folder, row, change, message):
    lines, _ = csv_lines("sonar")
    spoil(lines, row, change)
    write_csv(folder, "sonar", lines)
    with pytest.raises(InvalidInputError, match=message):
        load("sonar")


def test_a_file_cut_off_between_rows_has_the_wrong_shape(folder):
    lines, _ = csv_lines("sonar")
    write_csv(folder, "sonar", lines[:100])
    with pytest.raises(InvalidInputError, match=r"shape .* must be \(208, 60\)\. Got \(99, 60\)"):
        load("sonar")
    write_csv(folder, "sonar", lines[:1])
    with pytest.raises(InvalidInputError, match=r"Got \(0, 60\) from folder, sonar.csv"):
        load("sonar")
    (folder / "sonar.csv").write_text("")
    with pytest.raises(InvalidInputError, match=r"sonar\.csv must not be empty\. Got 0 bytes"):
        load("sonar")


def mfeat_arrays():
    entry, random = CATALOG["mfeat"], np.random.default_rng(0)
    views = {view: random.standard_normal((2000, size)) for view, size in entry.views.items()}
    return views | {"target": np.repeat(np.arange(10), 200)}


def test_views_are_columns(folder):
    arrays = mfeat_arrays()
    np.savez(folder / "mfeat.npz", **arrays)
    data = load("mfeat")
    assert data.X.shape == (2000, 649)
    for view in data.views:
        np.testing.assert_array_equal(data.view(view), arrays[view])
    framed = load("mfeat", as_frame=True)
    assert list(framed.view("mor").columns) == [f"mor{index}" for index in range(6)]
    with pytest.raises(InvalidInputError, match="view of the data set 'mfeat' must be one of"):
        data.view("ears")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("kar"), r"mfeat\.npz must have .* Missing: 'kar0'"),
        (
            lambda a: a.update(zer=a["zer"][:, 1:]),
            r"mfeat\.npz must .* Missing: 'zer46'",
        ),
        (lambda a: a.update(zer=np.array([{}])), r"mfeat\.npz must be an NPZ file"),
        (lambda a: a.update(target=a["target"] + 1), "members of the classes of .*'mfeat'"),
    ],
)
def test_broken_views(folder, change, message):
    arrays = mfeat_arrays()
    change(arrays)
    np.savez(folder / "mfeat.npz", **arrays)
    with pytest.raises(InvalidInputError, match=message):
        load("mfeat")


def test_a_truncated_npz_file(folder):
    np.savez(folder / "mfeat.npz", **mfeat_arrays())
    whole = (folder / "mfeat.npz").read_bytes()
    (folder / "mfeat.npz").write_bytes(whole[:5000])
    with pytest.raises(InvalidInputError, match=r"mfeat\.npz must be an NPZ file"):
        load("mfeat")


def test_the_variable_must_name_a_folder(folder, monkeypatch):
    monkeypatch.setenv("DISCERNEL_DATA", str(folder / "nowhere"))
    with pytest.raises(InvalidInputError, match="DISCERNEL_DATA must name an existing folder"):
        load("sonar")


# ---- OpenML ----------------------------------------------------------------------------------


def fill_cache(folder, data_id, name, attributes, rows, target):
    """Write what scikit-learn would have kept of a set on OpenML.

    Parameters: attributes are pairs of a name and a type of ARFF.
    """
    cache = folder / "cache" / "openml" / "openml.org"
    types = {column: "numeric" if kind == "REAL" else "nominal" for column, kind in attributes}
    arff = [f"@relation {name}", *(f"@attribute {c} {kind}" for c, kind in attributes), "@data"]
    content = "\n".join([*arff, *(",".join(map(str, row)) for row in rows)]) + "\n"
    description = {
        "id": str(data_id),
        "name": name,
        "version": "1",
        "format": "ARFF",
        "status": "active",
        "file_id": str(data_id),
        "url": f"https://www.openml.org/data/v1/download/{data_id}/{name}.arff",
        "md5_checksum": hashlib.md5(content.encode()).hexdigest(),
        "default_target_attribute": target,
        "description": "made up",
    }
    features = [
        {
            "index": str(index),
            "name": column,
            "data_type": types[column],
            "is_target": str(column == target).lower(),
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for index, (column, _) in enumerate(attributes)
    ]
    quality = [{"name": "NumberOfInstances", "value": str(float(len(rows)))}]
    files = {
        f"api/v1/json/data/{data_id}": json.dumps({"data_set_description": description}),
        f"api/v1/json/data/features/{data_id}": json.dumps(
            {"data_features": {"feature": features}}
        ),
        f"api/v1/json/data/qualities/{data_id}": json.dumps(
            {"data_qualities": {"quality": quality}}
        ),
        f"data/v1/download/{data_id}/{name}.arff": content,
    }
    for path, text in files.items():
        (cache / f"{path}.gz").parent.mkdir(parents=True, exist_ok=True)
        (cache / f"{path}.gz").write_bytes(gzip.compress(text.encode()))


def cached(folder, name, column_kinds, class_kind, label, missing=()):
    """Fill the cache with random rows of a set, and return its features."""
    entry = CATALOG[name]
    random = np.random.default_rng(0)
    X = np.column_stack(
        [
            random.standard_normal(entry.shape[0])
            if kind == "REAL"
            else random.choice(
                [float(value) for value in kind.strip("{}").split(",")], entry.shape[0]
            )
            for kind in column_kinds
        ]
    )
    cells = [
        [f"{value:g}" if value.is_integer() else repr(value) for value in row] for row in X.tolist()
    ]
    for row, column in missing:
        cells[row][column], X[row, column] = "?", np.nan
    rows = [[*row, label(value)] for row, value in zip(cells, labels_of(entry), strict=True)]
    attributes = [*((f"c{i}", kind) for i, kind in enumerate(column_kinds)), ("class", class_kind)]
    (data_id,) = entry.openml.values()
    fill_cache(folder, data_id, name, attributes, rows, "class")
    return X


def test_openml_labels_become_ours_and_codes_become_numbers(folder):
    kinds = ["REAL", "{0,1}", "{1,2,5,24}", *["REAL"] * 10]
    X = cached(folder, "heart_statlog", kinds, "{absent,present}", {1: "absent", 2: "present"}.get)
    data = load("heart_statlog")
    np.testing.assert_array_equal(data.X, X)
    assert data.y.tolist() == [1] * 150 + [2] * 120
    assert data.source == "OpenML, data id 53"
    assert data.feature_names[0] == "age"


def test_openml_rows_with_missing_values_are_dropped_or_kept(folder):
    lost = [(row, 5) for row in (*range(14), *range(458, 460))]
    label = {2: "benign", 4: "malignant"}.get
    X = cached(
        folder, "breast_cancer_wisconsin_raw", ["REAL"] * 9, "{benign,malignant}", label, lost
    )
    np.testing.assert_array_equal(load("breast_cancer_wisconsin_raw").X, X)
    data = load("breast_cancer_wisconsin")
    np.testing.assert_array_equal(data.X, X[~np.isnan(X).any(axis=1)])
    assert data.y.dtype.kind == "i"


def test_openml_with_another_version_of_the_data_is_refused(folder):
    label = {1: "present", 2: "absent"}.get
    cached(folder, "heart_statlog", ["REAL"] * 13, "{absent,present}", label)
    with pytest.raises(InvalidInputError, match=r"\{1: 150, 2: 120\}. Got .* from OpenML"):
        load("heart_statlog")


def test_openml_words_as_features_are_refused(folder):
    rows = [["low", *[0.5] * 59, "Mine"]] * 111 + [["high", *[0.5] * 59, "Rock"]] * 97
    attributes = [("c0", "{low,high}"), *((f"c{i}", "REAL") for i in range(1, 60))]
    fill_cache(folder, 40, "sonar", [*attributes, ("class", "{Mine,Rock}")], rows, "class")
    with pytest.raises(InvalidInputError, match=r"must be numbers. .* has the categories .*'low'"):
        load("sonar")


def test_openml_target_can_be_another_column(folder):
    columns = [*CATALOG["bupa"].features, "selector"]
    rows = [[*[0.5] * 6, 1]] * 145 + [[*[0.5] * 6, 2]] * 200
    fill_cache(folder, 8, "liver-disorders", [(c, "REAL") for c in columns], rows, "drinks")
    data = load("bupa")
    assert data.X.shape == (345, 6)
    assert data.y.tolist() == [1] * 145 + [2] * 200


@pytest.mark.parametrize("shifted", [False, True])
def test_openml_views_must_agree(folder, shifted):
    entry = CATALOG["mfeat"]
    for view, data_id in entry.openml.items():
        labels = np.repeat(np.arange(1, 11), 200)
        if shifted and view == "mor":
            labels = labels[::-1]
        kinds = ["{0,1,5}"] * entry.views[view] if view == "mor" else ["REAL"] * entry.views[view]
        rows = [[*[5] * len(kinds), label] for label in labels]
        attributes = [*((f"c{i}", kind) for i, kind in enumerate(kinds))]
        attributes.append(("class", "{1,2,3,4,5,6,7,8,9,10}"))
        fill_cache(folder, data_id, f"mfeat-{view}", attributes, rows, "class")
    if shifted:
        with pytest.raises(InvalidInputError, match="same order of rows"):
            load("mfeat")
    else:
        data = load("mfeat")
        assert (data.X == 5).all()
        assert data.y.tolist() == np.repeat(np.arange(10), 200).tolist()


@pytest.mark.filterwarnings("ignore:A network error occurred:UserWarning")
def test_offline_the_error_says_what_to_do(folder):
    with pytest.raises(
        DataUnavailableError, match=r"'sonar' .*data id 40\) could not be reached"
    ) as info:
        load("sonar")
    assert "Set DISCERNEL_DATA to a folder with sonar.csv, or connect" in str(info.value)


@pytest.mark.filterwarnings("ignore:Retry downloading:UserWarning")
def test_olivetti_offline(folder):
    with pytest.raises(DataUnavailableError, match=r"'olivetti' could not be downloaded.*once"):
        load("olivetti")


@pytest.mark.parametrize("name", ["satimage", "waveform", "protein_fold", "heart_cleveland"])
def test_sets_without_a_copy_on_openml(name, folder, monkeypatch):
    message = f"must be the file {CATALOG[name].file} .* the file does not exist"
    with pytest.raises(DataUnavailableError, match=message) as info:
        load(name)
    assert ("make_waveform" in str(info.value)) == (name == "waveform")
    monkeypatch.delenv("DISCERNEL_DATA")
    with pytest.raises(DataUnavailableError, match="but the variable is not set"):
        load(name)


# ---- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "instead"),
    [("feret", "olivetti"), ("flyexpress", "protein_fold"), ("colon_cad", "wdbc")],
)
def test_private_sets_name_a_stand_in(name, instead):
    with pytest.raises(DataUnavailableError, match=rf"{name}.* private .*load\('{instead}'\)"):
        load(name)


def test_an_unknown_name_lists_the_known_and_the_close():
    with pytest.raises(InvalidInputError, match=r"'sonar'.* Got 'sonnar'\. Did you mean 'sonar'"):
        load("sonnar")
    with pytest.raises(InvalidInputError, match=r"must be one of .* Got 'zzz'\.$"):
        load("zzz")
    with pytest.raises(InvalidInputError, match=r"Got 3\.$"):
        load(3)


# ---- the papers' data ------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("name", IN_FOLDER)
def test_every_set_of_the_folder(name, paper_folder):
    if not (paper_folder / CATALOG[name].file).is_file():
        pytest.skip(f"the folder has no {CATALOG[name].file}")
    data = load(name)
    assert data.source == f"folder, {CATALOG[name].file}"
    assert data.X.shape == CATALOG[name].shape
    assert sum(np.asarray(data.X[:, columns]).shape[1] for columns in data.views.values()) in (
        0,
        data.X.shape[1],
    )


@pytest.mark.data
def test_monks3_follows_from_its_rule_in_the_order_of_the_file(paper_folder):
    table = np.genfromtxt(paper_folder / "monks3.csv", delimiter=",", skip_header=1)
    data = load("monks3")
    np.testing.assert_array_equal(data.X, table[:, :-1])
    np.testing.assert_array_equal(data.y, table[:, -1])


@pytest.mark.data
def test_the_stored_waveforms_are_a_draw_of_ours(paper_folder):
    data = load("waveform")
    for label, pair in enumerate(WAVES_OF_CLASS):
        first, second = base_waves()[list(pair)]
        rows = data.X[data.y == label]
        assert np.abs(rows.mean(axis=0) - (first + second) / 2).max() < 0.16
        covariance = np.eye(21) + np.outer(first - second, first - second) / 12
        assert np.abs(np.cov(rows.T) - covariance).max() < 0.4


@pytest.mark.data
def test_complete_rows_of_breast_cancer(paper_folder):
    raw, complete = load("breast_cancer_wisconsin_raw"), load("breast_cancer_wisconsin")
    keep = ~np.isnan(raw.X).any(axis=1)
    np.testing.assert_array_equal(raw.X[keep], complete.X)
    np.testing.assert_array_equal(raw.y[keep], complete.y)


@pytest.mark.data
def test_the_training_part_of_the_protein_folds(paper_folder):
    with np.load(paper_folder / "protein_fold_rank27.npz") as file:
        np.testing.assert_array_equal(load("protein_fold").train, file["is_train"])


def test_a_view_goes_into_a_kernel(folder):
    arrays = mfeat_arrays()
    arrays["mor"][:, 0] += 3 * arrays["target"]
    np.savez(folder / "mfeat.npz", **arrays)
    data = load("mfeat")
    rows = data.y < 2
    kernels = [RBF(width=10.0).on(data.views["mor"]), RBF(width=10.0).on(data.views["zer"])]
    clf = MultipleKernelDiscriminant(kernels, criterion="rkda", regularization=1e-2)
    assert cross_val_score(clf, data.X[rows], data.y[rows], cv=2).mean() > 0.8
