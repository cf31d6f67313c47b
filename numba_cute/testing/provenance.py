# SPDX-License-Identifier: Apache-2.0
"""The setting of a measurement: the machine, the driver, the versions, the date."""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..seam import CuteError
from ..seam.ground.naming import described
from .clocks import driver_version

__all__ = ["machine"]

PACKAGES = (
    "numba-cute", "numba", "numba-cuda", "llvmlite", "numpy", "cuda-core", "cuda-bindings", "nvidia-nvvm",
    "nvidia-cuda-nvcc", "torch", "triton", "nvidia-cublas", "nvidia-cudnn-cu13",
)  # fmt: skip


def machine(facts: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what this machine is: the processor, Python, the packages that matter with their versions, and the date
    in UTC. facts: of the GPU, which are added with its driver's version; None for a measurement without one.

    >>> sorted(cute.testing.machine())
    ['cpu', 'cpu_count', 'date', 'platform', 'python', 'versions']
    """
    found: dict[str, Any] = {}
    if not isinstance(facts, (dict, type(None))):
        raise CuteError(f"machine: facts {described(facts)} must be a dict")
    if facts is not None:
        found = {**facts, "driver": driver_version()}
    return {
        **found,
        "cpu": platform.processor() or platform.machine(),
        "cpu_count": os.cpu_count(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
