# SPDX-License-Identifier: Apache-2.0
"""What Numba makes of random plain kernels, one line a kernel: for comparing with and without `import numba_cute`.

python -m tests.fuzz.ptx 0 100            without the import
python -m tests.fuzz.ptx 0 100 --import   with it
"""

from __future__ import annotations

import argparse
import hashlib
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import cuda
from numba.cuda import dispatcher
from numba.cuda.codegen import CUDACodeLibrary

from .build import arguments, kernel_of
from .choices import Seeded
from .mistakes import MISTAKES
from .plain import Writer

CC = (9, 0)
ADDRESSES = re.compile(r"0x[0-9a-f]{6,}")


def made(source: str) -> str:
    """The PTX of a module's kernel, or the error that Numba raises."""
    args = arguments()
    try:
        kernel = kernel_of(source)
        types = tuple(kernel.typeof_pyval(a) for a in args)
        ptx, _ = cuda.compile_ptx(kernel.py_func, types, cc=CC)
        return ptx
    except Exception as e:
        return ADDRESSES.sub("0x", f"{type(e).__name__}: {e}")


class InOrder(dict[Any, None]):
    """A set that keeps the order in which things came."""

    def add(self, x: Any) -> None:
        self[x] = None


def make_repeatable() -> None:
    """Device functions are compiled for the current device, and there may be none here. Numba links them in the order of
    a set of objects, which is that of their addresses."""
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CC)
    original = CUDACodeLibrary.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self._linking_libraries = InOrder()

    CUDACodeLibrary.__init__ = init


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--import", dest="imported", action="store_true")
    args = parser.parse_args()
    if args.imported:
        import numba_cute  # noqa: F401
    make_repeatable()
    np.seterr(all="ignore")
    sources = {f"mistake {name}": text for name, text in MISTAKES.items()}
    sources |= {f"seed {s}": Writer(Seeded(s)).source() for s in range(args.first, args.end)}
    for name, source in sources.items():
        text = made(source)
        kind = "PTX" if ".version" in text else text.split("\n")[0][:80]
        print(f"{name}: {kind} {hashlib.sha256(text.encode()).hexdigest()[:16]}", flush=True)


if __name__ == "__main__":
    main()
