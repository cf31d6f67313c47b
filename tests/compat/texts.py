# SPDX-License-Identifier: Apache-2.0
"""Texts as files of the CuTe DSL, run in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numba_cute.compat import uninstall
from numba_cute.compat.running import run_file
from numba_cute.compat.runs import Run


def ran(folder: Path, text: str, arch: str = "sm_90a", **options: Any) -> Run:
    """Run a text as a file in `folder`, for a GPU of `arch`; gives the run. options: of the Run."""
    file, run = folder / "file_of_the_dsl.py", Run(arch, **{"compiles": False, **options})
    file.write_text(text)
    try:
        run_file(file, (), run)
    finally:
        uninstall()
    return run
