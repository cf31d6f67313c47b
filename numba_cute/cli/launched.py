# SPDX-License-Identifier: Apache-2.0
"""The launches that a file makes by itself: it is run as a program, and each launch is taken before it is made."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..isa.form.targets import answering_for
from ..seam import CuteError
from ..seam.ground.folding import folded
from ..seam.marks.launches import launching
from .naming import evaluated, kernels_in, module_of, split


class Launched(NamedTuple):
    """A launch of a file's. kernel: what `cuda.jit` made. arguments: its own. options: grid, block, cluster, smem."""

    kernel: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def name(self) -> str:
        return str(getattr(self.kernel, "py_func", self.kernel).__name__)


class _Enough(BaseException):
    """What was asked for was launched: the rest of the file need not run."""


def launches_of(file: str, name: str, arch: str) -> list[Launched]:
    """Run a file as a program, with nothing launched, and give the launches that it makes: the first of the kernel of
    that name, or where that is "", of each kernel, once for each type of its arguments. What the file prints is not
    shown, and results stay as they were before. CuteError: it launches no such kernel; what it raised before it did."""
    taken: dict[Any, Launched] = {}
    raised: Exception | None = None
    space: dict[str, Any] = {}
    try:
        with _taking(taken, name), answering_for(arch), contextlib.redirect_stdout(io.StringIO()):
            space = run_program(file)
    except _Enough:
        pass
    except CuteError:
        if not taken:
            raise
    except Exception as e:  # the file's own: it may not like results that nobody computed
        folded(e)
        raised = e
    if taken:
        return list(taken.values())
    known = kernels_in(space)
    if known and name and name not in known:
        raise CuteError(f"{file} has no kernel {name!r}; it has {', '.join(known)}")
    what = f"kernel {name!r}" if name else "kernel of this library"
    if raised is not None:
        raise CuteError(f"{file} raised {type(raised).__name__} before it launched a {what}: {raised}") from raised
    example = f"{file}:{name or next(iter(known), 'kernel')} 'float32[64, 128]' 5"
    raise CuteError(f"{file} launches no {what} when it is run: give the arguments, as {example}")


def called(spec: str, arch: str) -> tuple[Any, list[Launched]]:
    """Evaluate the KERNEL of a spec, a call, with nothing launched; gives its value, and the launches that it made."""
    file, name = split(spec)
    module, taken = module_of(file), {}  # type: ignore[var-annotated]
    with _taking(taken, ""), answering_for(arch), contextlib.redirect_stdout(io.StringIO()):
        value = evaluated(name, module, spec)
    return value, list(taken.values())


@contextlib.contextmanager
def _taking(taken: dict[Any, Launched], name: str) -> Iterator[None]:
    """Take each launch: of the kernel of that name the first alone, which ends the program."""

    def take(kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        made = Launched(kernel, args, options)
        if name in ("", made.name):
            taken.setdefault((kernel, *map(_type_of, args)), made)
            if name:
                raise _Enough

    with launching(take):
        yield


def _type_of(value: Any) -> Any:
    return type(value), getattr(value, "dtype", None), getattr(value, "ndim", None)


def run_program(file: str) -> dict[str, Any]:
    """Run a file, or a module by its name, as a program; gives its globals. CuteError: there is no such file. What it
    raises passes."""
    if not file.endswith(".py"):
        return runpy.run_module(file, run_name="__main__")
    if not Path(file).is_file():
        raise CuteError(f"there is no file {file!r}")
    argv, path = sys.argv, list(sys.path)
    sys.argv, sys.path[:] = [file], [str(Path(file).resolve().parent), *path]
    try:
        return runpy.run_path(str(Path(file).resolve()), run_name="__main__")
    finally:
        sys.argv, sys.path[:] = argv, path
