"""Tasks on a Dask cluster, whose workers see the files of a task under the same paths as here."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from importlib import import_module
from typing import Any, TypeVar

from ncukit.errors import NcukitError
from ncukit.run.tools.locate import install_command

GPU = "GPU"
"""The resource that workers with a GPU declare: ``dask worker ADDRESS --resources GPU=1``."""
PATIENCE = 30.0
"""[s] for a scheduler to answer, and without a worker for the tasks that are left."""

T = TypeVar("T")
R = TypeVar("R")


def run(
    work: Callable[[T], R],
    tasks: Sequence[T],
    address: str,
    lost: Callable[[T, str], R],
    *,
    resource: str | None = None,
) -> Generator[R, None, None]:
    """Yield ``work(task)`` of every task, in the order in which they end.

    A task whose worker dies is done again elsewhere; ``lost(task, how)`` is the result of one that took
    as many workers with it as Dask allows.  With ``resource`` each task takes one of what a worker declares
    by that name.

    Raises:
        NcukitError: Dask is not installed, nothing answers at ``address``, no worker declares ``resource``,
            the last worker or the scheduler went away, or the workers lack ncukit.
        Exception: what ``work`` raised; the tasks that are left are cancelled.
    """
    try:
        distributed = import_module("distributed")  # an extra: not there where types are checked
    except ImportError as error:
        raise NcukitError("Dask is not installed", install_command("cluster")) from error
    try:
        client = distributed.Client(address, timeout=f"{PATIENCE}s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise NcukitError(
            f"no Dask scheduler answers at {address}: {error}", "start one with: dask scheduler"
        ) from error
    with client:
        if resource is not None and not _able(client, resource):
            raise _nobody(address, resource, "no worker declares")
        needs = {} if resource is None else {"resources": {resource: 1}}
        futures = {client.submit(work, task, pure=False, **needs): task for task in tasks}
        try:
            for future in _ended(distributed, client, set(futures), address, resource):
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
        except CancelledError as error:
            raise NcukitError(
                f"the Dask scheduler at {address} went away",
                "start it again, and do the same: what is done stays",
            ) from error
        finally:
            client.cancel(list(futures))


def _ended(
    distributed: Any, client: Any, left: set[Any], address: str, resource: str | None
) -> Iterator[Any]:
    """Yield futures as they end; give up when nobody is there for them any more."""
    alone = False
    while left:
        try:
            with client.as_current():
                ended = distributed.wait(left, timeout=PATIENCE, return_when="FIRST_COMPLETED").done
        except (TimeoutError, distributed.TimeoutError):
            if _able(client, resource):
                alone = False
            elif alone:
                raise _nobody(address, resource, "no worker is left of those that declare") from None
            else:
                alone = True
            continue
        alone = False
        yield from sorted(ended, key=lambda future: str(future.key))
        left -= ended


def _able(client: Any, resource: str | None) -> bool:
    """Return whether a worker is there that declares ``resource``; any worker where none is asked for."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return any(
        resource is None or worker.get("resources", {}).get(resource, 0) >= 1 for worker in workers.values()
    )


def _nobody(address: str, resource: str | None, what: str) -> NcukitError:
    declared = f" --resources {resource}=1 --nthreads 1" if resource else ""
    said = f"{what} a {resource}" if resource else "no worker is left"
    return NcukitError(
        f"{said} on the cluster at {address}", f"start workers with: dask worker {address}{declared}"
    )
