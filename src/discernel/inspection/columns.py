"""What columns add to the score of a row: Shapley values between it and a typical row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discernel.arrays import FloatArray, n_rows
from discernel.inspection.forms import Form, ProductForm, SumForm, kernel_forms
from discernel.inspection.games import product_values, sampled_values
from discernel.inspection.reference import dense, mixed_rows, moved_columns
from discernel.inspection.scoring import KernelPart, Part
from discernel.kernels import Kernel
from discernel.kernels.weighted import slices

__all__ = ["column_values", "seen_columns"]

#: Factors of columns and training rows that are made at a time.
_BLOCK_ENTRIES = 2**20


def column_values(
    parts: list[Part], X: Any, references: Any, player: NDArray[np.intp], n_players: int
) -> tuple[FloatArray, bool]:
    """Return what each player adds to the scores of rows, averaged over some references.

    Parameters
    ----------
    parts : list of KernelPart or FeaturePart
        What scores are a sum of.
    X : array, CSR or Table of shape (n_rows, n_columns)
        The rows to explain, as the kernels take them.
    references : array, CSR or Table of shape (n_references, n_columns)
        What they are compared with.
    player : ndarray of shape (n_columns,)
        Which player each column belongs to: the column that was given.
    n_players : int
        How many there are.

    Returns
    -------
    values : ndarray of shape (n_rows, n_outputs, n_players)
        SumPass to the score of a row less the mean of those of the references.
    exact : bool
        Whether all are exact; False where orders of columns were drawn.
    """
    n, n_references, n_outputs = n_rows(X), n_rows(references), parts[0].coef.shape[1]
    values, exact = np.zeros((n, n_players, n_outputs)), True
    for game in (game for part in parts for game in _games(part, player)):
        for i in range(n):
            for k in range(n_references):
                exact &= game.add(values[i], X[i : i + 1], references[k : k + 1])
    values /= n_references
    return np.ascontiguousarray(values.transpose(0, 2, 1)), exact


class _Game(ABC):
    """What a part of the scores is, player by player."""

    @abstractmethod
    def add(self, out: FloatArray, x: Any, reference: Any) -> bool:
        """Add the values between two rows to ``out``; return whether they are exact.

        Parameters
        ----------
        out : ndarray of shape (n_players, n_outputs)
            Where to add.
        x, reference : array, CSR or Table of shape (1, n_columns)
            The row, and what it is compared with.
        """


def _games(part: Part, player: NDArray[np.intp]) -> Iterator[_Game]:
    forms = kernel_forms(part.kernel, len(player))
    if isinstance(part, KernelPart):
        yield from (_game(form, part, player) for form in forms)
    elif all(isinstance(form, SumForm) for form in forms):
        n = len(player)
        yield _Line(part(np.eye(n)) - part(np.zeros((1, n))), player)
    else:
        yield _Other(part, player)


def _game(form: Form, part: KernelPart, player: NDArray[np.intp]) -> _Game:
    if isinstance(form, ProductForm):
        return _Product(form, part, player)
    if isinstance(form, SumForm):
        slopes = sum(
            (dense(part.rows[rows]) - form.origin).T @ part.coef[rows]
            for rows in _blocks(len(part.coef), len(player))
        )
        return _Line(form.factor * form.weights[:, None] * slopes, player)
    whole = KernelPart(form.kernel, part.rows, part.coef, part.centered)
    return _Other(whole, player)


def _blocks(n: int, n_columns: int) -> list[slice]:
    return slices(slice(0, n), max(1, _BLOCK_ENTRIES // max(1, n_columns)))


class _Line(_Game):
    """Σ_l slopes_l x_l, which needs no orders."""

    def __init__(self, slopes: FloatArray, player: NDArray[np.intp]) -> None:
        self._slopes, self._player = slopes, player

    def add(self, out: FloatArray, x: Any, reference: Any) -> bool:
        np.add.at(out, self._player, (dense(x) - dense(reference)).T * self._slopes)
        return True


class _Product(_Game):
    """Σ_j coef_j Π_l k_l(x_l, z_jl), in closed form."""

    def __init__(self, form: ProductForm, part: KernelPart, player: NDArray[np.intp]) -> None:
        columns = form.columns
        self._columns, self._player = columns, player[columns]
        self._form = ProductForm(form.factor, form.squares[columns], form.absolutes[columns])
        self._rows, self._coef = part.rows, part.coef

    def add(self, out: FloatArray, x: Any, reference: Any) -> bool:
        here, there = dense(x)[0, self._columns], dense(reference)[0, self._columns]
        players = np.unique(self._player[here != there])
        moves = np.isin(self._player, players)
        if not len(players):
            return True
        for rows in _blocks(len(self._coef), len(self._columns)):
            Z = dense(self._rows[rows])[:, self._columns]
            now, then = (self._form.exponents(row, Z) for row in (here, there))
            coef = self._coef[rows] * np.exp(-now[~moves].sum(axis=0))[:, None]
            a, b = (
                np.exp(-_sums_by_player(each[moves], self._player[moves])) for each in (now, then)
            )
            out[players] += self._form.factor * product_values(a, b, coef)
        return True


def _sums_by_player(values: FloatArray, player: NDArray[np.intp]) -> FloatArray:
    """Return the sums of rows of the same player, in the order of the players.

    Parameters
    ----------
    values : ndarray of shape (n_columns, ...)
        One row per column.
    player : ndarray of shape (n_columns,)
        Which player each belongs to.
    """
    order = np.argsort(player, kind="stable")
    starts = np.flatnonzero(np.diff(player[order], prepend=-1))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0)) if len(order) else values


class _Other(_Game):
    """A function of rows of which nothing is known: some columns are replaced, and it is asked."""

    def __init__(self, part: Part, player: NDArray[np.intp]) -> None:
        self._part, self._player = part, player
        self._seen = seen_columns(part.kernel, len(player))

    def add(self, out: FloatArray, x: Any, reference: Any) -> bool:
        players = np.unique(self._player[moved_columns(x, reference) & self._seen])
        if not len(players):
            return True

        def value(taken: NDArray[np.bool_]) -> FloatArray:
            present = np.ones((len(taken), len(out)), dtype=np.bool_)
            present[:, players] = taken
            return self._part(mixed_rows(x, reference, present[:, self._player]))

        found, exact = sampled_values(value, len(players))
        out[players] += found
        return exact


def seen_columns(kernel: Kernel, n_columns: int) -> NDArray[np.bool_]:
    """Return the columns that a kernel may see: those it was put on, or all."""
    atoms = (atom for term in kernel.terms() for atom in term.atoms)
    found = [atom.view.seen(n_columns).columns for atom in atoms]
    return np.isin(np.arange(n_columns), np.concatenate(found))
