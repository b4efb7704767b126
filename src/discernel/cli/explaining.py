"""`discernel explain`: importances of columns, and explanations of predictions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import typer

from discernel.cli import fusing, learning
from discernel.cli.shared import (
    AsJson,
    ModelFile,
    RowNumbers,
    data_files,
    one_line_errors,
    out,
    read_predictor,
)
from discernel.exceptions import InvalidInputError
from discernel.inspection import Contributions, contributions, similar_rows
from discernel.inspection.source_weights import sum_by
from discernel.inspection.words import RowScore, cell_text
from discernel.persistence import SavedModel, read_model
from discernel.report import RowExplanation
from discernel.show.terminal import print_blocks
from discernel.show.words import percent

#: The numbers of rows explained by default, and of contributions and classes of each row.
FIRST_ROWS, _MOST_TERMS, _MOST_CLASSES = 3, 8, 4
#: The blocks of facts shown for a model.
_SHOWN = ("data", "importances", "sources")


def explain_command(
    model: ModelFile,
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="Rows to explain: a file, or - for standard input."),
    ] = None,
    row: RowNumbers = None,
    similar: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Show N training rows that support each prediction, and half as many against it.",
        ),
    ] = 5,
    views: fusing.ViewsOption = None,
    as_json: AsJson = False,
) -> None:
    """Show importances of columns and sources, or explain the predictions for rows.

    Without DATA, the importances of columns are shown. With DATA, the score of a row is the score
    of a typical row plus a contribution of each column. With --json there is one line per row, for
    all rows unless --row is given.
    """
    with one_line_errors():
        if data is None:
            if row:
                raise InvalidInputError("--row needs DATA. Name a file: explain MODEL DATA --row N")
            _explain_model(read_model(model), as_json)
            return
        data_files(data)  # refuses a model
        loaded = read_predictor(model)
        rows = learning.read_rows(loaded, data, join=fusing.joiner(views))
        chosen = choose_rows(row, len(rows.X), len(rows.X) if as_json else FIRST_ROWS)
        found = explain_rows(loaded, rows, chosen, similar)
        for each in found:
            if as_json:
                typer.echo(json.dumps(each, ensure_ascii=False, default=str))
            else:
                typer.echo()
                print_blocks(out, row_explanation(each).blocks(_MOST_TERMS))
        if not row and not as_json and len(chosen) < len(rows.X):
            typer.echo(f"\nThe first {len(chosen)} of {len(rows.X):,} rows; --row N for others.")


def choose_rows(wanted: Sequence[int] | None, n_rows: int, n_first: int) -> list[int]:
    """Return the positions of chosen rows, by default of the first ones; check the numbers."""
    if not wanted:
        return list(range(min(n_first, n_rows)))
    if max(wanted) > n_rows:
        raise InvalidInputError(f"A row must be one of 1 to {n_rows:,}. Got {max(wanted)}.")
    return [number - 1 for number in dict.fromkeys(wanted)]


def _explain_model(model: SavedModel, as_json: bool) -> None:
    facts = model.describe()
    if as_json:
        plain = facts.as_plain()
        wanted = ("importances", "sources", "kernels")
        typer.echo(json.dumps({name: plain[name] for name in wanted}, indent=1))
        return
    print_blocks(out, [each for each in facts.blocks() if each.id in _SHOWN])
    if not facts.importances and not facts.sources:
        typer.echo("This model has no importances of columns. To explain rows, name their file.")


# ---- rows --------------------------------------------------------------------------------------


def explain_rows(
    model: SavedModel, rows: learning.Rows, chosen: Sequence[int], n_similar: int = 5
) -> list[dict[str, Any]]:
    """Return explanations of the scores of rows, as plain data.

    Parameters
    ----------
    model : SavedModel
        The model.
    rows : Rows
        All rows.
    chosen : sequence of int
        The positions of the rows to explain.
    n_similar : int, default=5
        The maximum number of training rows that support each prediction; half as many against it.
    """
    X = rows.X.iloc[list(chosen)]
    found = contributions(model.pipeline, X)
    names, values = _by_column(model, found)
    labels, classes = model.pipeline.predict(X), model.pipeline[-1].model_.classes
    predicted, names_of, shares = labels.tolist(), [], np.empty((len(X), 0))
    if classes is not None:
        names_of, shares = [str(label) for label in classes], model.pipeline.predict_proba(X)
    alike = _similar(model, X, n_similar)
    explained = []
    for i, position in enumerate(chosen):
        score = RowScore.of(found, i, None if classes is None else labels[i])
        terms = {} if values is None else _named(names, score.added(values))
        explained.append(
            {
                "row": position + 1,
                "identifiers": _named(rows.kept.columns, rows.kept.iloc[position]),
                "predicted": predicted[i],
                "probabilities": _named(names_of, shares[i]),
                "score": score.value,
                "score_is": score.kind + score.suffix,
                "baseline": score.baseline,
                "baseline_is": found.compared_with,
                "columns": terms,
                "cells": _cells(model, rows.X.iloc[position]),
                "sources": _named(found.source_names, score.added(found.sources)),
                "exact": found.exact,
                "similar": alike[i],
            }
        )
    return explained


def _named(names: Any, values: Any) -> dict[str, Any]:
    """Return plain values by name; None for missing values."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    missing = [value is None or value != value for value in plain]
    pairs = zip(names, plain, missing, strict=True)
    return {str(name): None if absent else value for name, value, absent in pairs}


def _cells(model: SavedModel, row: Any) -> dict[str, Any]:
    """Return the cells of a row; dates as text."""
    cells = _named(row.index, row)
    for name in model.schema.dates:
        if cells[name] is not None:
            cells[name] = str(cells[name]).removesuffix(" 00:00:00")
    return cells


def _by_column(model: SavedModel, found: Contributions) -> tuple[list[str], Any]:
    """Return the columns of the table and their contributions, summed over encoded columns."""
    if found.columns is None:
        return list(model.schema.columns), None
    return sum_by(model.columns, found.columns)


def _similar(model: SavedModel, X: Any, n: int) -> list[list[dict[str, Any]]]:
    """Return similar training rows for each prediction: at most n for it, n / 2 against it.

    The lists are empty if the model does not keep training rows.
    """
    rows: list[list[dict[str, Any]]] = [[] for _ in range(len(X))]
    found_model = model.pipeline[-1].model_
    whole = found_model.facts.streamed is None
    what = "class" if found_model.classes is not None else "number"
    for side, most in (("for", n), ("against", n // 2)):
        if most == 0:
            continue
        try:
            found = similar_rows(model.pipeline, X, most, side=side)
        except InvalidInputError:
            return rows
        labels = np.full(found.indices.shape, None) if found.labels is None else found.labels
        for row, *each in zip(
            rows, found.indices, found.similarity, found.support, labels.tolist(), strict=True
        ):
            row += [
                {
                    "training_row": int(index) + 1 if whole else None,
                    "similarity": float(alike),
                    what: label,
                    "speaks": side,
                    "support": float(support),
                }
                for index, alike, support, label in zip(*each, strict=True)
                if (support > 0) == (side == "for") and support != 0
            ]
    return rows


# ---- on a terminal or a page -------------------------------------------------------------------


def row_explanation(found: Mapping[str, Any]) -> RowExplanation:
    """Return an explanation for a terminal or a page, from one of `explain_rows`."""
    cells, shares = found["cells"], found["probabilities"]
    columns, sources = found["columns"], found["sources"]
    listed = sorted(shares.items(), key=lambda pair: -pair[1])[:_MOST_CLASSES]
    known = ", ".join(f"{label} {percent(share)} %" for label, share in listed)
    names = [f"{name} {value}" for name, value in found["identifiers"].items()]
    similar = []
    for each in found["similar"]:
        place, label = each["training_row"], each.get("class", each.get("number"))
        name = "a row" if place is None else f"row {place:,}"  # rows of a sample have no number
        text = "" if label is None else _prediction_text(label)
        similar.append((name, text, each["similarity"], each["support"]))
    return RowExplanation(
        row=", ".join([f"row {found['row']:,}", *names]),
        predicted=_prediction_text(found["predicted"]),
        baseline=found["baseline"],
        contributions={
            f"{name} = {cell_text(cells[name])}" if name in cells else name: value
            for name, value in (columns or sources).items()
        },
        probability=shares.get(str(found["predicted"])),
        similar=similar,
        words=f"Probabilities: {known}.\n" * bool(known) + _score_words(found["score_is"]),
        sources=sources if columns and len(sources) > 1 else {},
        baseline_is=found["baseline_is"],
    )


def _prediction_text(predicted: Any) -> str:
    """Return a predicted class, or a predicted number with seven digits."""
    return f"{predicted:.7g}" if isinstance(predicted, float) else str(predicted)


def _score_words(score_is: str) -> str:
    """Return a sentence that defines the score, for numbers, for two or for more classes."""
    name, _, label = score_is.partition(" for ")
    if not label:
        return "The score is the predicted number."
    if name == "log-odds":
        return f"The score is the log-odds of {label}."
    return f"The score is the score of {label} minus the mean over the classes."
