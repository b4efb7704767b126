"""An iterative bank whose passes over the tiles are spread over the workers of a Dask cluster."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from discernel.arrays import FloatArray
from discernel.arrays.cluster import active_client, explain_lost_workers, large_graphs
from discernel.bank.iterative import IterativeBank
from discernel.bank.tiled import Threads
from discernel.bank.tiles import Tile, TilePass
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel

#: Bands of tiles for every thread of a worker, so that none waits long for the others.
_BANDS = 3
#: Products that are added at a time.
_FAN_IN = 8
#: Kinds of rows that workers hold: of double precision, and of single for some sets of kernels.
_HELD = 4


class DistributedBank(IterativeBank):
    """Kernels on rows. Every worker has all rows, and computes the tiles of some bands.

    The rows are sent once; a pass sends the vectors of a product once, from worker to worker, and
    the products of bands are added along a tree. Bands and tree are fixed, so that a band that is
    done again, after a worker's death, changes nothing. The first passes, which find means and
    traces, and the preconditioner are computed here.
    Parameters are those of `TiledBank`.
    """

    def __init__(self, kernels: Sequence[Kernel], X: Any, **options: Any) -> None:
        client = None
        with suppress(ImportError):
            client = active_client()
        if client is None:
            raise InvalidInputError(
                "bank='distributed' needs an active distributed.Client, whose workers compute the "
                "tiles. Make one first: Client(LocalCluster()). Or use bank='iterative'."
            )
        super().__init__(kernels, X, **options)
        self._engine = Workers(self._engine, client)


class Workers(Threads):
    """The tiles of another engine, computed by the workers of a client, in bands."""

    def __init__(self, engine: Threads, client: Any) -> None:
        self.__dict__ |= vars(engine)
        self._client, self._held = client, list[tuple[Any, Any]]()
        self._n_bands = _BANDS * max(1, sum(client.nthreads().values()))

    def run(self, task: TilePass) -> FloatArray:
        import cloudpickle

        left = ("rows", "_client", "_held")  # what a band is not computed with
        state = {name: value for name, value in vars(self).items() if name not in left}
        with explain_lost_workers(), large_graphs():
            sent = self._once(cloudpickle.dumps((state, task))), self._sent_rows()
            found = [
                self._client.submit(_of_band, *sent, band, pure=False)
                for band in range(self._n_bands)
            ]
            while len(found) > 1:
                groups = [found[i : i + _FAN_IN] for i in range(0, len(found), _FAN_IN)]
                found = [self._client.submit(_added_up, group, pure=False) for group in groups]
            return np.asarray(found[0].result())

    def _sent_rows(self) -> Any:
        """Return rows as workers have them, which are sent when they are first needed."""
        for held, future in self._held:
            if held is self.rows:
                return future
        future = self._once(self.rows)
        self._held[:] = [(self.rows, future), *self._held[: _HELD - 1]]
        return future

    def _once(self, value: Any) -> Any:
        # A task that gives it, not scattered: so it is there again after a worker's death.
        return self._client.submit(_Boxed, value, pure=False)


class _Boxed:
    """A value that Dask does not look into."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Band(Threads):
    """The engine as a worker sees it: its state, the rows, and the tiles of one band."""

    def __init__(self, state: dict[str, Any], rows: Any, band: int) -> None:
        self.__dict__ |= state
        self.rows, self._n_threads = rows, 1
        self._band = band, state["_n_bands"]

    def tiles(self, n_alive: int = 1) -> Iterator[Tile]:
        band, n_bands = self._band
        return itertools.islice(super().tiles(n_alive), band, None, n_bands)


def _of_band(sent: _Boxed, rows: _Boxed, band: int) -> FloatArray:
    """Return the sum over the tiles of a band."""
    state, task = pickle.loads(sent.value)
    return _Band(state, rows.value, band).run(task)


def _added_up(parts: list[FloatArray]) -> FloatArray:
    """Return the sum of parts in new memory: a task must not change the result of another."""
    total = np.zeros_like(parts[0])
    for part in parts:
        total += part
    return total
