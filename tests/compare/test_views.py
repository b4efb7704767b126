"""Sources and kernels from views.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discernel import MultipleKernelDiscriminant
from discernel.exceptions import InvalidInputError
from discernel.kernels import RBF, Laplace, Lookup, NGram, Spectrum, Standardized, WhereKnown
from discernel.rows.views_file import build_kernels, join_files, read_views
from discernel.views import source_weights

N = 40
TEXT = """\
# three sources
[sources.scan]
columns = ["scan_*", "weight"]
kernels = ["rbf", {kind = "laplace", width = 2.0, standardize = false}]

[sources.sequence]
file = "sequences.csv"
key = "patient"
columns = ["prom*"]
kernels = [{kind = "spectrum", k = 4}, {kind = "ngram", n = [2, 3]}]

[sources.note]
columns = "note"

[sources.molecule]
columns = ["drug"]
kernels = {kind = "lookup", file = "similar.csv"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    (tmp_path / "views.toml").write_text(TEXT)
    genes = ["".join(rng.choice(list("ACGT"), 12)) for _ in range(N)]
    sequences = pd.DataFrame({"patient": np.arange(N)[::-1], "promoter": genes, "other": 1})
    sequences[: N - 5].to_csv(tmp_path / "sequences.csv", index=False)
    similar = pd.DataFrame(np.eye(3) + 0.5, columns=[1, 2, 3], index=[1, 2, 3])
    similar.to_csv(tmp_path / "similar.csv")
    return tmp_path


def patients() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "patient": np.arange(N),
            "scan_1": rng.normal(size=N),
            "scan_2": rng.normal(size=N) + np.arange(N) % 2,
            "weight": rng.normal(size=N),
            "note": [f"patient {i} feels {'well' if i % 2 else 'ill'}" for i in range(N)],
            "drug": rng.integers(1, 4, N),
        }
    )


def test_a_file_becomes_kernels_of_all_sources(folder: Path) -> None:
    views = read_views(folder / "views.toml")
    table = join_files(views, patients())
    kernels = build_kernels(views, table)
    inner = [kernel.kernel.kernel for kernel in kernels.values()]
    assert inner[:2] == [WhereKnown(Standardized(RBF())), WhereKnown(Laplace(width=2.0))]
    assert inner[2:4] == [WhereKnown(Spectrum(4)), WhereKnown(NGram((2, 3)))]
    assert inner[4] == WhereKnown(NGram())
    assert isinstance(inner[5].kernel, Lookup)
    assert next(iter(kernels.values())).kernel.columns == ("scan_1", "scan_2", "weight")
    y = np.arange(N) % 2
    clf = MultipleKernelDiscriminant(kernels).fit(table[:30], y[:30])
    assert list(source_weights(clf)) == ["scan", "sequence", "note", "molecule"]
    assert clf.predict(table[30:]).shape == (10,)


def test_rows_of_another_file_are_found_by_their_key(folder: Path) -> None:
    views = read_views(folder / "views.toml")
    table = patients()[::-1]
    joined = join_files(views, table)
    assert list(joined.columns) == [*table.columns, "sequence[promoter]"]
    assert joined.index.equals(table.index)
    sequences = pd.read_csv(folder / "sequences.csv").set_index("patient")["promoter"]
    for patient, promoter in zip(joined["patient"], joined["sequence[promoter]"], strict=True):
        assert promoter == sequences[patient] if patient in sequences else pd.isna(promoter)
    assert joined["sequence[promoter]"].isna().sum() == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sources.a\n", r"not valid TOML: .*line 1"),
        ("", "views.toml: sources is None; write a table"),
        ("[a]\nx = 1\n", "line 1: a is unknown"),
        ("[sources.a]\n", "line 1: sources.a has no columns; write a list of names"),
        ("[sources.a]\ncolumns = [1]\n", r"line 2: sources.a.columns\[0\] is 1; write"),
        ("[sources.a]\ncolumns = ['x']\nkernel = 'rbf'\n", "line 3: sources.a.kernel is unknown"),
        (
            "[sources.a]\ncolumns = ['x']\n\nkernels = ['rbf', 'gauss']\n",
            r"line 4: sources.a.kernels\[1\] is of kind 'gauss'; it must be one of rbf, laplace",
        ),
        (
            "[sources.a]\ncolumns = ['x']\nkernels = [{kind = 'rbf', wdith = 1}]\n",
            r"line 3: sources.a.kernels\[0\].wdith is unknown; rbf takes .*width",
        ),
        (
            "[sources.a]\ncolumns = ['x']\nkernels = [{kind = 'spectrum', k = 0}]\n",
            r"line 3: sources.a.kernels\[0\]: The k of Spectrum must be an integer",
        ),
        (
            "[sources.a]\ncolumns = ['x']\nkernels = [{k = 0}]\n",
            r"line 3: sources.a.kernels\[0\] is of kind None; it must be one of",
        ),
        (
            "[sources.a]\ncolumns = ['x']\nkernels = ['lookup']\n",
            r"line 3: sources.a.kernels\[0\].file is None; name the file",
        ),
        ("[sources.a]\ncolumns = ['x']\nfile = 'b.csv'\n", "line 1: sources.a has file but no key"),
        ("[sources.a]\ncolumns = ['x']\nfile = 3\nkey = 'x'\n", "line 3: sources.a.file is 3"),
        ("sources = 3\n", "sources is 3; write a table"),
        ("[sources]\n", "sources is empty; write a table"),
        ("[sources]\na = 3\n", "line 2: sources.a is 3; write a table"),
    ],
)
def test_errors_name_the_line_and_the_key(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "views.toml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        read_views(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="It cannot be read"):
        read_views(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.drop(columns="patient"),
            "the key 'patient' of .* must be a column of the table",
        ),
        (
            lambda t: t.drop(columns="weight"),
            "must be columns of the table. Got 'weight'",
        ),
    ],
)
def test_tables_that_do_not_suit(folder: Path, change: Any, message: str) -> None:
    views = read_views(folder / "views.toml")
    with pytest.raises(InvalidInputError, match=message):
        build_kernels(views, join_files(views, change(patients())))


def test_a_key_that_stands_twice(folder: Path) -> None:
    sequences = pd.read_csv(folder / "sequences.csv")
    pd.concat([sequences, sequences[:1]]).to_csv(folder / "sequences.csv", index=False)
    with pytest.raises(InvalidInputError, match="Got 39 more than once"):
        join_files(read_views(folder / "views.toml"), patients())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "must be a CSV file with a matrix"),
        ("name,1,2\n1,a,b\n2,c,d\n", "must be a CSV file with a matrix"),
        ("name,1,2\n2,1,0\n1,0,1\n", "the same names for rows and columns"),
    ],
)
def test_a_matrix_that_is_none(folder: Path, text: str | None, message: str) -> None:
    (folder / "similar.csv").unlink()
    if text is not None:
        (folder / "similar.csv").write_text(text)
    views = read_views(folder / "views.toml")
    with pytest.raises(InvalidInputError, match=message):
        build_kernels(views, join_files(views, patients()))
