"""An iterative bank whose tiles are computed by the workers of a Dask cluster."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from discernel.arrays import FloatArray
from discernel.arrays.cluster import FAN_IN, active_client, explain_lost_workers, large_graphs
from discernel.bank.iterative import IterativeBank
from discernel.bank.tiled import Threads
from discernel.bank.tiles import Tile, TilePass
from discernel.exceptions import InvalidInputError
from discernel.kernels import Kernel

#: Bands of tiles per thread of a worker, for an even load.
_BANDS = 3
#: Number of prepared sets of rows kept on workers: double precision, and single precision for
#: different sets of kernels.
_HELD = 4


class DistributedBank(IterativeBank):
    """Kernels on rows. Every worker holds all rows, and computes the tiles of some bands.

    Rows are sent once. A pass sends the vectors of a product once, and the products of bands are
    added in a tree. Bands and tree are fixed, so that results do not change if a band is computed
    again after a worker was lost. Means, traces and the preconditioner are computed in this
    process. Parameters are those of `TiledBank`.
    """

    def __init__(self, kernels: Sequence[Kernel], X: Any, **options: Any) -> None:
        client = None
        with suppress(ImportError):
            client = active_client()
        if client is None:
            raise InvalidInputError(
                "bank='distributed' needs an active distributed.Client, whose workers compute the "
                "tiles. Create one first: Client(LocalCluster()). Or use bank='iterative'."
            )
        super().__init__(kernels, X, **options)
        self._engine = Workers(self._engine, client)


class Workers(Threads):
    """Engine that runs the bands of another engine on the workers of a client."""

    def __init__(self, engine: Threads, client: Any) -> None:
        self.__dict__ |= vars(engine)
        self._client, self._held = client, list[tuple[Any, Any]]()
        self._n_bands = _BANDS * max(1, sum(client.nthreads().values()))

    def run(self, task: TilePass) -> FloatArray:
        import cloudpickle

        left = ("rows", "_client", "_held")  # not needed to compute a band
        state = {name: value for name, value in vars(self).items() if name not in left}
        with explain_lost_workers(), large_graphs():
            sent = self._once(cloudpickle.dumps((state, task))), self._sent_rows()
            found = [
                self._client.submit(_of_band, *sent, band, pure=False)
                for band in range(self._n_bands)
            ]
            while len(found) > 1:
                groups = [found[i : i + FAN_IN] for i in range(0, len(found), FAN_IN)]
                found = [self._client.submit(_sum_parts, group, pure=False) for group in groups]
            return np.asarray(found[0].result())

    def _sent_rows(self) -> Any:
        """Return the future of the rows, which are sent when first needed."""
        for held, future in self._held:
            if held is self.rows:
                return future
        future = self._once(self.rows)
        self._held[:] = [(self.rows, future), *self._held[: _HELD - 1]]
        return future

    def _once(self, value: Any) -> Any:
        # A task instead of scattered data, so that it is repeated if a worker is lost.
        return self._client.submit(_Boxed, value, pure=False)


class _Boxed:
    """A value that Dask does not inspect."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Band(Threads):
    """The engine on a worker, with the tiles of one band."""

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


def _sum_parts(parts: list[FloatArray]) -> FloatArray:
    """Return the sum of parts as a new array: a task must not change results of other tasks."""
    total = np.zeros_like(parts[0])
    for part in parts:
        total += part
    return total
