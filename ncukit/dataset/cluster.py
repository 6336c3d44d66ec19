"""Tasks on a Dask cluster: workers see the reports and the dataset under the same paths as here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TypeVar

from ncukit.errors import NcukitError

_PATIENCE = "30s"

T = TypeVar("T")
R = TypeVar("R")


def run(work: Callable[[T], R], tasks: Sequence[T], address: str, lost: Callable[[T, str], R]) -> Iterator[R]:
    """Yield ``work(task)`` of every task, in the order in which they end.

    A task whose worker dies is done again elsewhere; ``lost(task, how)`` is the result of one that took
    as many workers with it as Dask allows.

    Raises:
        NcukitError: Dask is not installed, nothing answers at ``address``, or its workers lack ncukit.
        Exception: what ``work`` raised; the tasks that are left are cancelled.
    """
    try:
        distributed = import_module("distributed")  # an extra: not there where types are checked
    except ImportError as error:
        raise NcukitError("Dask is not installed", "pip install 'ncukit[cluster]'") from error
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise NcukitError(
            f"no Dask scheduler answers at {address}: {error}", "start one with: dask scheduler"
        ) from error
    with client:
        futures = {client.submit(work, task, pure=False): task for task in tasks}
        try:
            for future in distributed.as_completed(futures, loop=client.loop):
                try:
                    yield future.result()
                except distributed.KilledWorker:
                    yield lost(futures[future], "with it several Dask workers")
                except (ImportError, AttributeError) as error:
                    raise NcukitError(
                        f"the Dask workers cannot run ncukit: {error}",
                        "install the same version of ncukit where they run",
                    ) from error
                future.release()
        finally:
            client.cancel(list(futures))
