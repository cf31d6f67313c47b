# SPDX-License-Identifier: Apache-2.0
"""Say which numba-cuda this package is written for, and refuse another in words that say what to do."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import PackageNotFoundError, version

from ...seam import CuteError
from ...seam.ground.packages import site
from ...seam.ground.records import dataclass


def tested() -> str:
    """Name the page that says which versions were tried together."""
    base = site()
    return f"{base}/tested_versions/" if base else "docs/tested_versions.md"


@dataclass(frozen=True)
class Package:
    """A package whose inside is leant on. name: as it is installed. tried: the versions of whose code patches.py has
    digests, the newest last."""

    name: str
    tried: tuple[str, ...]

    def installed(self) -> str:
        """Give the version that is installed."""
        return version(self.name)

    def _what_to_do(self, found: str) -> str:
        other = f"pip install {self.name}=={self.tried[-1]}"
        if found in self.tried:
            return (
                "that is the one here, so something has changed it: a library that was imported before numba_cute, or "
                f"a file of it ({other} --force-reinstall --no-deps)"
            )
        if _number(found) > max(map(_number, self.tried)):
            return f"{other}, or a newer numba-cute, if there is one: pip install -U numba-cute ({tested()})"
        return f"{other} ({tested()})"

    def refused(self, differs: str, leans: str) -> CuteError:
        """Make the error of a package that is not as it was. differs: what of it, as a sentence. leans: what this
        library does with that, as a part of one."""
        found, known = self.installed(), ", ".join(self.tried)
        return CuteError(
            f"{self.name} {found}: {differs}. numba-cute, which {leans}, is written for {self.name} {known}: "
            f"{self._what_to_do(found)}"
        )


NUMBA_CUDA = Package("numba-cuda", ("0.30.4",))
NUMBA_CUDA_MLIR = Package("numba-cuda-mlir", ("0.6.0",))


def _number(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:3]))


def broken(error: Exception) -> Exception:
    """Make the error of a `numba.cuda` that cannot be imported by itself, whoever does it."""
    found = {}
    for name in ("numba", NUMBA_CUDA.name, "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            if name == "numba":
                return error
    held = ", ".join(f"{name} {number}" for name, number in found.items())
    return CuteError(
        f"`from numba import cuda` fails without numba_cute too, with {held}: {type(error).__name__}: {error}. Install "
        f"versions that go together: pip install -U numba-cute ({tested()} lists some)"
    )


def check() -> None:
    """Import all that is taken of numba-cuda. CuteError: something of it is not there."""
    try:
        importlib.import_module(".numba_cuda", __package__)
    except ImportError as e:
        said = str(e).partition(" (")[0]
        raise NUMBA_CUDA.refused(said, "takes its names from one file (compiler/ground/numba_cuda.py)") from e
