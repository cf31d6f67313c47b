# SPDX-License-Identifier: Apache-2.0
"""The launches that a file makes by itself, on a GPU or by `cute.simulate`: it is run as a program, and each launch is
taken before it is made."""

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
from ..seam.ground.replaced import replaced
from ..seam.marks.constexpr import static_arguments
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
    """A signal that the kernel asked for was launched: the rest of the file need not run."""


def launches_of(file: str, name: str, arch: str) -> list[Launched]:
    """Run a file as a program, with nothing launched, and give the launches that it makes: the first of the kernel of
    that name, or where that is "", of each kernel, once for each type of its arguments. A file that does not end well
    so, as it looks at results, is run again with its launches simulated. What it prints is not shown. CuteError: it
    launches no such kernel; what it raised before it did."""
    taken: dict[Any, Launched] = {}
    space, raised = _ran(file, _Taking(taken, name, arch))
    if raised is not None and not (name and taken):
        again: dict[Any, Launched] = {}
        space, raised = _ran(file, _Taking(again, name, arch, performs=True))
        taken = again or taken
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


def _ran(file: str, taking: _Taking) -> tuple[dict[str, Any], BaseException | None]:
    """Run a file while launches are taken; gives its globals, and what it raised. CuteError: what it raised, if that is
    one and nothing was taken."""
    try:
        with taking.all(), contextlib.redirect_stdout(io.StringIO()):
            return run_program(file), None
    except _Enough:
        return {}, None
    except CuteError as e:
        if not taking.taken:
            raise
        return {}, e
    except SystemExit as e:
        return {}, e if e.code else None
    except Exception as e:  # the file's own
        folded(e)
        return {}, e


def called(spec: str, arch: str) -> tuple[Any, list[Launched]]:
    """Evaluate the KERNEL of a spec, a call, with nothing launched; gives its value, and the launches that it made."""
    file, name = split(spec)
    module, taken = module_of(file), {}  # type: ignore[var-annotated]
    with _Taking(taken, "", arch).all(), contextlib.redirect_stdout(io.StringIO()):
        value = evaluated(name, module, spec)
    return value, list(taken.values())


class _Taking:
    """Takes launches, on a GPU and simulated ones. taken: where they go, each kernel once for each type of its
    arguments. name: of the kernel whose first launch alone is taken, and ends the program; "" for all. performs: have
    them simulated, with no checks, so that results are right."""

    def __init__(self, taken: dict[Any, Launched], name: str, arch: str, performs: bool = False) -> None:
        self.taken, self.name, self.arch, self.performs = taken, name, arch, performs

    @contextlib.contextmanager
    def all(self) -> Iterator[None]:
        """Take them while the context lasts."""
        from ..sim.launch import Simulated, simulate

        own: Any = Simulated._launch

        def simulated(of: Any, grid: Any, block: Any, smem: int, *args: Any, **named: Any) -> None:
            given = static_arguments(of.kernel, args, named)
            cluster = of.cluster if of.clustered else None
            self.take(of.kernel, given, {"grid": grid, "block": block, "cluster": cluster, "smem": smem})
            if self.performs:
                own(of, grid, block, smem, *args, **named)

        def launched(kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
            self.take(kernel, args, options)
            if self.performs:
                made = simulate(kernel, cluster=options.get("cluster"), arch=self.arch, checks=False)
                own(made, *made.configured((options["grid"], options["block"], 0, options.get("smem", 0))), *args)

        with launching(launched), replaced(Simulated, {"_launch": simulated}), answering_for(self.arch):
            yield

    def take(self, kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Take one, if it is asked for."""
        made = Launched(kernel, args, options)
        if self.name in ("", made.name):
            self.taken.setdefault((kernel, *map(_type_of, args)), made)
            if self.name:
                raise _Enough


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
