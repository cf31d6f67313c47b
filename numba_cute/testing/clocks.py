# SPDX-License-Identifier: Apache-2.0
"""The GPU's clock, power and temperature while something runs: by NVML, by nvidia-smi, or not known."""

from __future__ import annotations

import contextlib
import importlib
import statistics
import subprocess
import threading
import time
from typing import Any

from ..seam import CuteError

__all__ = ["Monitor"]

_PERIOD = 0.05
_QUERY = "clocks.sm,power.draw,temperature.gpu"


class Monitor:
    """Samples of a GPU's clock, power and temperature, taken beside what runs, inside of a `with`.

    uuid: the GPU's, as the driver says it; None for the first. source: "nvml" (the package nvidia-ml-py), "nvidia-smi",
    or None for the first of them that there is. Where there is neither, nothing is known, and that is no error.

    >>> with cute.testing.Monitor() as monitor:
    ...     pass
    >>> monitor.between(0.0, 0.0) is None
    True
    """

    def __init__(self, uuid: str | None = None, source: str | None = None) -> None:
        if source not in (None, "nvml", "nvidia-smi"):
            raise CuteError(f'Monitor: source {source!r} must be "nvml", "nvidia-smi" or None')
        self.uuid = uuid
        self.source: str | None = None
        self._samples: list[tuple[float, float, float, float]] = []
        self._stop = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._asked = source

    def __enter__(self) -> Monitor:
        read = None
        if self._asked in (None, "nvml"):
            read = _nvml(self.uuid)
        if read is not None:
            self.source = "nvml"
            self._start(self._poll, read)
        elif self._asked in (None, "nvidia-smi") and self._spawn():
            self.source = "nvidia-smi"
            self._start(self._read_lines)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        if self._thread is not None:
            self._thread.join()

    def between(self, start: float, end: float) -> dict[str, float] | None:
        """Return the mean SM clock, power and temperature from `start` to `end` (seconds of time.perf_counter); None if
        nothing was sampled then."""
        inside = [s for s in list(self._samples) if start <= s[0] <= end]
        if not inside:
            return None
        names = ("sm_mhz", "watts", "celsius")
        return {name: statistics.fmean(s[i] for s in inside) for i, name in enumerate(names, 1)}

    def _start(self, target: Any, *args: Any) -> None:
        self._thread = threading.Thread(target=target, args=args, daemon=True)
        self._thread.start()

    def _poll(self, read: Any) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(Exception):  # a sample that NVML does not give is left out
                self._samples.append((time.perf_counter(), *read()))
            self._stop.wait(_PERIOD)

    def _spawn(self) -> bool:
        command = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits", "-lms", "100"]
        command += ["-i", self.uuid or "0"]
        try:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            return False
        return True

    def _read_lines(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                clock, power, heat = (float(x) for x in line.split(","))
                self._samples.append((time.perf_counter(), clock, power, heat))


def _nvml(uuid: str | None) -> Any:
    """Return a function that reads a sample by NVML; None if that is not installed, or does not know the GPU."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid) if uuid else nvml.nvmlDeviceGetHandleByIndex(0)
        nvml.nvmlDeviceGetPowerUsage(handle)
    except Exception:  # NVML's own errors are known only where it is installed
        return None

    def read() -> tuple[float, float, float]:
        return (
            float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            nvml.nvmlDeviceGetPowerUsage(handle) * 1e-3,
            float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        )

    return read


def driver_version() -> str | None:
    """Return the version of the GPU's driver, as "580.95.05"; None where neither NVML nor nvidia-smi says it."""
    with contextlib.suppress(Exception):
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        said = nvml.nvmlSystemGetDriverVersion()
        return str(said.decode() if isinstance(said, bytes) else said)
    with contextlib.suppress(OSError):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        said = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
        return said[0] if said else None
    return None
