"""An iterative bank whose passes over the tiles are spread over the workers of a Dask cluster."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from discernel.arrays.cluster import active_client, large_graphs, saying_what_went
from discernel.bank.iterative import IterativeBank
from discernel.bank.tiled import Tile, TiledBank
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel

__all__ = ["DistributedBank"]

#: Bands of tiles for every thread of a worker, so that none waits long for the others.
_BANDS = 3
#: Products that are added at a time.
_FAN_IN = 8
#: Kinds of rows that workers hold: of double precision, and of single for some sets of kernels.
_HELD = 4


class DistributedBank(IterativeBank):
    """Kernels on rows, of which every worker has all, and computes the tiles of some bands.

    The rows are sent once; a pass sends the vectors of a product once, from worker to worker, and
    the products of bands are added along a tree. Bands and tree are fixed, so that a band that is
    done again, after a worker's death, changes nothing. The first passes, which find means and
    traces, and the preconditioner are computed here.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates, resolved.
    X : array-like of shape (n_samples, n_features)
        The training rows.
    **options
        As in `TiledBank`.

    Raises
    ------
    InvalidInputError
        If there is no active ``distributed.Client``.
    """

    def __init__(self, kernels: Sequence[Kernel], X: Any, **options: Any) -> None:
        self._workers: _Workers | None = None
        workers = _Workers(_needed_client())
        super().__init__(kernels, X, **options)
        self._workers = workers

    def _pass(self, work: Any, make: Any, active: Any = None, single: Any = None) -> Any:
        if self._workers is None:
            return super()._pass(work, make, active, single)
        self._count(single)
        rows = self._rows if single is None else single
        return [self._workers.spread((self, work, make, active, single is not None), rows)]

    def __copy__(self) -> DistributedBank:
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def __reduce__(self) -> Any:
        """Return what a band is computed with: rows and what only a client has stay behind."""
        left = ("_workers", "_rows", "_X", "workspace")
        state = {name: value for name, value in vars(self).items() if name not in left}
        return _Band, (state,)


def _needed_client() -> Any:
    client = None
    with suppress(ImportError):
        client = active_client()
    if client is None:
        raise InvalidInputError(
            "bank='distributed' needs an active distributed.Client, whose workers compute the "
            "tiles. Make one first: Client(LocalCluster()). Or use bank='iterative'."
        )
    return client


class _Workers:
    """Who computes bands, and the rows that they were sent.

    Parameters
    ----------
    client : distributed.Client
        Who has tasks done.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._held = client, list[tuple[Any, Any]]()
        self._n_bands = _BANDS * max(1, sum(client.nthreads().values()))

    def spread(self, task: Any, rows: Any) -> Any:
        """Return the sum of what all bands give.

        Parameters
        ----------
        task : tuple
            The bank, what is done with a tile, what makes a part, the kernels, the precision.
        rows : object
            Rows, prepared.
        """
        import cloudpickle

        with saying_what_went(), large_graphs():
            sent = self._once(cloudpickle.dumps(task)), self._rows(rows)
            found = [
                self._client.submit(_of_band, *sent, band, self._n_bands, pure=False)
                for band in range(self._n_bands)
            ]
            while len(found) > 1:
                groups = [found[i : i + _FAN_IN] for i in range(0, len(found), _FAN_IN)]
                found = [self._client.submit(_added_up, group, pure=False) for group in groups]
            return found[0].result()

    def _rows(self, rows: Any) -> Any:
        """Return rows as workers have them, which are sent when they are first needed."""
        for held, future in self._held:
            if held is rows:
                return future
        future = self._once(rows)
        self._held = [(rows, future), *self._held[: _HELD - 1]]
        return future

    def _once(self, value: Any) -> Any:
        # A task that gives it, not scattered: so it is there again after a worker's death.
        return self._client.submit(_Boxed, value, pure=False)


class _Boxed:
    """A value that Dask does not look into."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Band(IterativeBank):
    """The bank as a worker sees it: some of its tiles."""

    def __init__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._n_threads = 1
        self.band = 0, 1

    def _tiles(self) -> Iterator[Tile]:
        band, n_bands = self.band
        return itertools.islice(super()._tiles(), band, None, n_bands)


def _of_band(sent: _Boxed, rows: _Boxed, band: int, n_bands: int) -> Any:
    """Return what the tiles of a band give together."""
    bank, work, make, active, is_single = pickle.loads(sent.value)
    bank._rows, bank.band = rows.value, (band, n_bands)
    single = rows.value if is_single else None
    (part,) = TiledBank._pass(bank, work, make, active, single)
    # What a thread only works with stays here.
    return (part[0], None) if isinstance(part, tuple) else part


def _added_up(parts: list[Any]) -> Any:
    """Return the sum of parts, in memory of its own: a task must not change what another made."""
    if isinstance(parts[0], tuple):
        return _added_up([found for found, _ in parts]), None
    total = np.zeros_like(parts[0])
    for part in parts:
        total += part
    return total
