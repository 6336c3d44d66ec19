"""What NVML says a GPU's utilisation is while a region runs: the number that nvidia-smi prints."""

from __future__ import annotations

import threading
from importlib import import_module
from types import TracebackType
from typing import Any

EVERY = 0.05
"""[s] between two questions; the driver itself averages over 1/6 s to 1 s."""
MISSING = "nvidia-ml-py is not installed (pip install nvidia-ml-py)"


class Watch:
    """Asks NVML again and again, in a thread, from entering to leaving; never raises.

    >>> with Watch(None) as seen:
    ...     pass
    >>> seen.as_dict()
    {'samples': [], 'reason': 'no GPU is used'}
    """

    def __init__(self, uuid: str | None) -> None:
        self.samples: list[int] = []
        self.reason = "" if uuid is not None else "no GPU is used"
        self._uuid = uuid
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        if self._uuid is not None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the samples [%], or why there are none, as JSON data."""
        return {"samples": list(self.samples), "reason": self.reason}

    def _watch(self) -> None:
        try:
            nvml = import_module("pynvml")
            nvml.nvmlInit()
        except ImportError:
            self.reason = MISSING
            return
        except Exception as error:  # NVMLError and its kin, differently named by version
            self.reason = f"NVML: {error}"
            return
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(self._uuid)
            while not self._done.wait(EVERY):
                self.samples.append(int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu))
        except Exception as error:
            self.reason = f"NVML: {error}"
        finally:
            nvml.nvmlShutdown()
