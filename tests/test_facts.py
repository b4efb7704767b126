"""One set of facts: the terminal, notebooks, pages and JSON say the same in the same words."""

import dataclasses
import html
import io
import json
import re
import typing

import pytest
from rich.console import Console
from sklearn.datasets import load_diabetes, load_wine
from typer.testing import CliRunner

from discernel import MultipleKernelDiscriminant, MultipleKernelRidge, load
from discernel.cli import app as commands
from discernel.cli import shared
from discernel.inspection.facts import model_facts
from discernel.kernels import RBF, Linear
from discernel.report import write_model_report
from discernel.show.facts import (
    CandidateFacts,
    ExpectedFacts,
    ImportanceFacts,
    ModelFacts,
    Origin,
    SourceFacts,
    facts_schema,
)
from discernel.show.terminal import print_blocks


def classifier():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return MultipleKernelDiscriminant().fit(X.iloc[:, 4:], y)


def regression():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return MultipleKernelRidge().fit(X[::2], y[::2])


def of_sources():
    X, y = load_wine(return_X_y=True)
    kernels = [
        kernel.on(part, name)
        for part, name in (([0, 1, 2], "acids"), ([5, 6, 7], "phenols"))
        for kernel in (RBF(), Linear())
    ]
    return MultipleKernelDiscriminant(kernels, criterion="rkda").fit(X, y)


@pytest.fixture(
    scope="module", params=[classifier, regression, of_sources], ids=lambda f: f.__name__
)
def model(request):
    return request.param()


def shown_on_a_terminal(facts):
    console = Console(width=250, file=io.StringIO(), highlight=False)
    print_blocks(console, facts.blocks())
    return console.file.getvalue()


def shown_on_a_page(model, folder):
    return plain(write_model_report(model, folder / "m.html").read_text(encoding="utf-8"))


def plain(page):
    """Return the text of HTML."""
    text = re.sub(r"<(style|script)>.*?</\1>", " ", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", text))


def test_every_figure_is_the_same_everywhere(model, tmp_path):
    facts = model_facts(model)
    shown = {
        "terminal": shown_on_a_terminal(facts),
        "notebook": plain(model._repr_html_()),
        "page": shown_on_a_page(model, tmp_path),
    }
    n_numbers = 0
    for block in facts.blocks():
        for row in block.shortened(10).rows:
            for cell in row.cells:
                n_numbers += bool(re.search(r"\d", cell))
                for where, text in shown.items():
                    # A page has all rows, and so no sum of the rest.
                    if where != "page" or "other " not in row.cells[0]:
                        assert cell in text, (where, block.id, cell)
        for words in (block.title, block.aside, *block.sentences):
            for where, text in shown.items():
                if block.id != "data" or where != "page":
                    assert words.lower() in text.lower(), (where, block.id, words)
    assert n_numbers > 20


def facts_from_json(plain):
    """Return the facts that the JSON of a model has."""
    kinds = {
        "importances": ImportanceFacts,
        "sources": SourceFacts,
        "candidates": CandidateFacts,
    }
    made = {name: tuple(kind(**each) for each in plain[name]) for name, kind in kinds.items()}
    made["expected"] = ExpectedFacts(**plain["expected"])
    made["origin"] = Origin(**plain["origin"])
    return ModelFacts(**plain | made)


def test_fit_its_page_the_notebook_and_the_json_of_info_have_the_same_figures(
    tmp_path, monkeypatch
):
    def run(*words):
        result = CliRunner().invoke(commands.app, [str(word) for word in words])
        assert result.exit_code == 0, result.output
        return result.stdout

    monkeypatch.setattr(shared.out, "width", 250)
    X, y = load_wine(return_X_y=True, as_frame=True)
    table = X.iloc[:, 4:].assign(colour=["red", "white"] * 89, grape=y.map("grape {}".format))
    table.to_csv(tmp_path / "wine.csv", index=False)
    model = tmp_path / "wine.skops"
    shown = {
        "fit": run("fit", tmp_path / "wine.csv", "--target", "grape", "-o", model),
        "info": run("info", model),
        "notebook": plain(load(model)[-1]._repr_html_()),
    }
    run("report", model, "-o", tmp_path / "wine.html")
    shown["page"] = plain((tmp_path / "wine.html").read_text(encoding="utf-8"))
    facts = facts_from_json(json.loads(run("info", model, "--json")))
    # A fit leaves out three tables, which `info` has; a notebook knows no file.
    absent = {"fit": {"confusion", "origin", "columns"}, "notebook": {"origin", "columns"}}
    n_compared = 0
    for block in facts.blocks():
        for row in block.shortened(10).rows:
            for where, text in shown.items():
                if block.id in absent.get(where, ()) or row.cells[0].startswith("versions"):
                    continue
                if where != "page" or "other " not in row.cells[0]:
                    figures = [cell for cell in row.cells if re.search(r"\d", cell)]
                    assert all(figure in text for figure in figures), (where, block.id, row)
                    n_compared += len(figures)
    assert n_compared > 150


def test_numbers_are_those_of_the_estimator_and_of_the_json(model):
    facts = model_facts(model)
    stored = json.loads(json.dumps(facts.as_plain()))
    assert list(stored["kernels"].values()) == model.kernel_weights_.tolist()
    shares = {each["column"]: each["importance"] for each in stored["importances"]}
    assert sorted(shares.values()) == sorted(model.feature_importances_.tolist())
    names = getattr(model, "feature_names_in_", None)
    if names is not None:  # a column has the name that it was given
        assert set(shares) == set(names)
    assert stored["regularization"] == model.regularization_
    assert len(stored["candidates"]) == len(model.learned_kernel_.considered)
    if hasattr(model, "classes_"):
        assert stored["expected"]["accuracy"] == model.expected_.accuracy
        assert sum(stored["classes"].values()) == stored["n_rows"]
        right = sum(row[i] for i, row in enumerate(stored["confusion"].values()))
        assert right / stored["n_rows"] == pytest.approx(model.expected_.accuracy)
    else:
        assert 0.3 < stored["expected"]["r2"] < 0.7
        assert stored["expected"]["accuracy"] is None


def test_facts_follow_their_schema(model):
    plain_facts = json.loads(json.dumps(model_facts(model).as_plain()))
    check(plain_facts, facts_schema(), facts_schema()["$defs"])


def test_the_schema_has_every_field():
    schema = facts_schema()
    fields = [field.name for field in dataclasses.fields(ModelFacts)]
    assert schema["required"] == fields
    assert set(schema["properties"]) == {*fields, "model"}
    hints = typing.get_type_hints(ModelFacts)
    for name in ("importances", "sources", "candidates"):
        made = typing.get_args(hints[name])[0]
        described = schema["$defs"][made.__name__]
        assert described["required"] == [field.name for field in dataclasses.fields(made)]


TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
    "null": type(None),
}


def check(value, schema, definitions):
    """Raise where plain data do not follow a schema, of the words that ours has."""
    if "$ref" in schema:
        check(value, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        found = schema["anyOf"][1 if value is None else 0]
        check(value, found, definitions)
    if "type" in schema:
        allowed = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert any(isinstance(value, TYPES[each]) for each in allowed)
    if isinstance(value, list):
        for entry in value:
            check(entry, schema.get("items", {}), definitions)
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        assert set(schema.get("required", ())) <= set(value)
        for key, entry in value.items():
            assert key in known or others is not False
            check(entry, known.get(key, others), definitions)
