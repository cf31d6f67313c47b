# SPDX-License-Identifier: Apache-2.0
"""`info`: what is here, what is missing, and the command that installs it."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import NamedTuple

HELP = "list the GPU, the driver, the toolkit and all versions; what is missing, and the command that installs it"
EXAMPLE = """\
examples:
  python -m numba_cute info
  python -m numba_cute info --strict       exits with 1 if something that a GPU needs is missing
"""
_PACKAGES = ("numba-cute", "numba-cuda", "numba", "llvmlite", "numpy", "ml_dtypes", "cuda-bindings", "cuda-core")
_OPTIONAL = {
    "xdsl": ("the CuTe IR (`ir`, `opt`, cute.inspect)", 'pip install "numba-cute[ir]"'),
    "torch": ("cute.kernels and cute.torch_op", "pip install torch"),
}


class Fact(NamedTuple):
    """A fact about this machine. missing: the command that installs what is missing, if anything."""

    name: str
    text: str
    missing: str = ""
    needed: bool = False


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--strict", action="store_true", help="exit with 1 if what compiling or a GPU needs is missing")


def run(given: argparse.Namespace) -> int:
    """Run it; gives the exit code."""
    found = list(facts())
    for fact in found:
        print(f"{fact.name:<14} {fact.text}")
    lacking = [fact for fact in found if fact.missing]
    if lacking:
        print("\nmissing:")
    for fact in lacking:
        print(f"  {fact.name:<12} {fact.missing}")
    return int(given.strict and any(fact.needed for fact in lacking))


def facts() -> Iterator[Fact]:
    """Find out what is here."""
    yield Fact("Python", f"{platform.python_version()}, {sys.executable}")
    yield Fact("system", f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} processors")
    yield from _gpu()
    yield from _tools()
    for name in _PACKAGES:
        version = _version(name)
        yield Fact(name, version or "not installed", "" if version else f"pip install {name}", True)
    for name, (use, command) in _OPTIONAL.items():
        version = _version(name)
        yield Fact(name, version or f"not installed: {use} need it", "" if version else command)
    yield from _kept()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        if name == "numba-cute":  # run from its sources
            import numba_cute

            return f"{numba_cute.__version__}, from {os.path.dirname(numba_cute.__file__)}"
        return None


def _gpu() -> Iterator[Fact]:
    from ..compiler.host.gpus import driver_version, gpus_here

    version, why = driver_version()
    if version is None:
        hint = "install NVIDIA's driver (https://www.nvidia.com/drivers); with none, cute.simulate runs kernels"
        yield Fact("GPU", f"none: {why}", hint, True)
        return
    yield Fact("driver", f"CUDA {version[0]}.{version[1]}")
    found = gpus_here()
    for name, capability, nbytes, sms in found:
        yield Fact("GPU", f"{name}: sm_{capability[0]}{capability[1]}, {sms} SMs, {nbytes / 2**30:.0f} GiB")
    if not found:
        yield Fact("GPU", "none", "look with nvidia-smi, and at CUDA_VISIBLE_DEVICES", True)


def _tools() -> Iterator[Fact]:
    from ..compiler.host import ptxas
    from ..compiler.host.gpus import nvvm_version
    from ..seam import CuteError

    command = 'pip install "numba-cute[cu13]"'
    version, why = nvvm_version()
    yield Fact("libNVVM", why if version is None else ".".join(map(str, version)), "" if version else command, True)
    for name in ("ptxas", "nvdisasm"):
        try:
            path = ptxas.tool(name)
            of = "{}.{}".format(*ptxas.version()) if name == "ptxas" else ""
            yield Fact(name, f"{of}, {path}".lstrip(", "))
        except (CuteError, OSError) as e:
            yield Fact(name, f"not found: {str(e).splitlines()[0][:60]}", command, name == "ptxas")


def _kept() -> Iterator[Fact]:
    from .. import config
    from ..compiler.host import store

    if not config.current().cache:
        yield Fact("cache", "off (NUMBA_CUTE_CACHE=0)")
        return
    entries = [size for _, _, size, _ in store.entries()]
    yield Fact("cache", f"{len(entries)} kernels, {sum(entries):,} bytes, in {store.folder()}")
    named = sorted(name for name in os.environ if name.startswith("NUMBA_CUTE_"))
    yield Fact("environment", ", ".join(f"{name}={os.environ[name]}" for name in named) or "nothing is set")
