# SPDX-License-Identifier: Apache-2.0
"""`python -m numba_cute run FILE.py`: run a file that is written for the CuTe DSL."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ..seam import CuteError
from .classes import element_classes
from .importing import install
from .on_host import on_host
from .runs import Run, running


def run_file(file: str | Path, arguments: Sequence[str] = (), run: Run | None = None) -> None:
    """Run a Python file as `python FILE ARGUMENTS` does, with `import cutlass` answered by this library.

    file: its path. arguments: what it finds in sys.argv. run: of a run on the CPU, what is compiled and simulated;
    None: on the GPU. CuteError: there is no such file. What the file raises passes.
    """
    path = Path(file)
    if not path.is_file():
        raise CuteError(f"run: {str(file)!r} is not a file")
    install()
    argv, before = sys.argv, list(sys.path)
    sys.argv, sys.path[:] = [str(path), *arguments], [str(path.resolve().parent), *sys.path]
    try:
        with ExitStack() as stack:
            stack.enter_context(element_classes())
            if run is not None:
                stack.enter_context(running(run))
                stack.enter_context(on_host())
                if importlib.util.find_spec("torch") is not None:
                    from .on_cpu import on_cpu

                    stack.enter_context(on_cpu(run.arch))
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv, sys.path[:] = argv, before
