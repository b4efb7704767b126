"""`discernel fit --groups COLUMN`."""

import pandas as pd
import pytest
from typer.testing import CliRunner

from discernel.cli import app as commands
from discernel.persistence import read_model
from tests.groups.test_fit import patients


@pytest.fixture
def table():
    X, y, groups = patients(0, 40, 5)
    names = [f"p{group}" for group in groups]
    return pd.DataFrame(X[:, :3], columns=list("abc")).assign(patient=names, y=y)


def run(*arguments):
    return CliRunner().invoke(commands.app, list(map(str, arguments)))


def expected_of(path):
    return read_model(path).pipeline[-1].expected_


def test_a_column_of_groups_is_not_a_feature(table, tmp_path):
    path, model = tmp_path / "visits.csv", tmp_path / "visits.skops"
    table.to_csv(path, index=False)
    found = run("fit", path, "--groups", "patient", "--output", model, "--criterion", "uniform")
    assert found.exit_code == 0, found.output
    assert "patient" not in read_model(model).schema.columns
    assert expected_of(model).accuracy < 0.65
    assert expected_of(model).where.endswith("of 40 groups")
    assert "40 groups" in " ".join(found.output.split())
    predicted = run("predict", model, path, "--output", tmp_path / "predicted.csv")
    assert predicted.exit_code == 0, predicted.output


def test_files_in_chunks_have_groups(table, tmp_path):
    (tmp_path / "rows").mkdir()
    for part in range(2):
        table[part::2].to_csv(tmp_path / "rows" / f"{part}.csv", index=False)
    model = tmp_path / "rows.skops"
    found = run("fit", tmp_path / "rows", "--groups", "patient", "--target", "y", "--output", model)
    assert found.exit_code == 0, found.output
    assert "groups" in expected_of(model).where
    assert expected_of(model).accuracy < 0.65


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--groups", "person"], "Did you mean"),
        (["--groups", "y"], "must not be in drop, categorical, numeric or groups"),
    ],
)
def test_wrong_columns_are_refused(options, message, table, tmp_path):
    table = table.rename(columns={"patient": "persons"}) if "person" in options else table
    table.to_csv(tmp_path / "visits.csv", index=False)
    found = run("fit", tmp_path / "visits.csv", *options)
    assert found.exit_code != 0
    assert message in " ".join(found.output.split())


def test_a_data_set_by_name_has_no_groups(tmp_path):
    found = run("fit", "wine", "--groups", "alcohol", "--output", tmp_path / "wine.skops")
    assert found.exit_code != 0
    assert "--groups needs a file" in found.output


def test_sources_have_groups(table, tmp_path):
    path, views, model = (tmp_path / name for name in ("visits.csv", "v.toml", "visits.skops"))
    table.to_csv(path, index=False)
    views.write_text("[sources.first]\ncolumns = ['a', 'b']\n[sources.second]\ncolumns = ['c']\n")
    options = ["--views", views, "--target", "y", "--criterion", "uniform", "--output", model]
    found = run("fit", path, *options, "--groups", "patient")
    assert found.exit_code == 0, found.output
    assert expected_of(model).where.endswith("of 40 groups")
    assert run("predict", model, path, "--output", tmp_path / "new.csv").exit_code == 0
    wrong = run("fit", path, *options, "--groups", "person")
    assert "must be in visits.csv. Got 'person'" in " ".join(wrong.output.split())
    used = run("fit", path, *options, "--groups", "a")
    assert "must not be a column of a source" in " ".join(used.output.split())
