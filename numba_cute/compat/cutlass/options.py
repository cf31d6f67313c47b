# SPDX-License-Identifier: Apache-2.0
"""`cute.compile` with the CuTe DSL's options: `cute.compile[GenerateLineInfo(True)](…)`, `options="--opt-level 2"`."""

from __future__ import annotations

import dataclasses
import functools
import os
import shlex
from collections.abc import Sequence
from typing import Any

import numba_cute as cute

from ...isa.form.targets import asked
from ...seam.marks.constexpr import in_order, is_host, parameters_of
from ...seam.marks.host_objects import python_of
from ..runs import compiled

__all__ = [
    "DumpDir", "EnableAssertions", "EnableTVMFFI", "GPUArch", "GenerateLineInfo", "KeepCUBIN", "KeepPTX",
    "LinkLibraries",    "OptLevel", "PtxasOptions", "compile",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of `compile`. value: what it is set to."""

    value: Any = True


class OptLevel(Option):
    """The compiler's effort: here libNVVM's own."""


class GenerateLineInfo(Option):
    """Lines in the machine code: `@cuda.jit(lineinfo=True)` here."""


class EnableAssertions(Option):
    """Assertions of kernels: judged while they are compiled, and in the simulator."""


class EnableTVMFFI(Option):
    """Launches through TVM's interface: launches here are as fast."""


class PtxasOptions(Option):
    """Options of the assembler."""


class KeepPTX(Option):
    """The PTX in a file: it is `.kernels[0].ptx` of the result here."""


class KeepCUBIN(Option):
    """The machine code in a file: it is `.kernels[0].cubin` of the result here."""


class DumpDir(Option):
    """The folder for files: none are written here."""


class LinkLibraries(Option):
    """Libraries of device code: `@cuda.jit(link=…)` here."""


class GPUArch(Option):
    """The target: "sm_90a"."""


_FLAGS = {
    "opt-level": OptLevel, "generate-line-info": GenerateLineInfo, "enable-assertions": EnableAssertions,
    "enable-tvm-ffi": EnableTVMFFI, "ptxas-options": PtxasOptions, "keep-ptx": KeepPTX, "keep-cubin": KeepCUBIN,
    "dump-dir": DumpDir, "link-libraries": LinkLibraries, "gpu-arch": GPUArch,
}  # fmt: skip
_REFUSED = (LinkLibraries,)
"""Options without which the code would be another."""


def _read(text: str) -> list[Option]:
    """Return the options that a text gives, as "--opt-level 2 --generate-line-info"."""
    found: list[Option] = []
    words = shlex.split(text.replace("=", " "))
    while words:
        word = words.pop(0)
        kind = _FLAGS.get(word.removeprefix("--"))
        if kind is None or not word.startswith("--"):
            known = ", ".join(f"--{n}" for n in _FLAGS)
            raise cute.CuteError(
                f"compile: options {text!r}: {word!r} is not an option of the CuTe DSL; known are {known}"
            )
        valued = words and not words[0].startswith("--")
        found.append(kind(words.pop(0)) if valued else kind())
    return found


class _Compile:
    """`cute.compile` as the CuTe DSL has it. options: set for all calls of this object."""

    def __init__(self, options: Sequence[Option] = ()) -> None:
        self.options = tuple(options)

    def __getitem__(self, options: Any) -> _Compile:
        """Return this function with options set: instances, or their classes for those that are switches."""
        given = options if isinstance(options, tuple) else (options,)
        return _Compile([*self.options, *(o() if isinstance(o, type) else o for o in given)])

    def __call__(self, func: Any, *args: Any, options: str | None = None, no_cache: bool = False, **named: Any) -> Any:
        """Compile a host function, or a kernel, for the GPU that is here or the target that a run names.

        func: what `cute.jit` or `cute.kernel` made, or a partial function of the former, whose arguments calls leave
        out. args, named: example arguments. options: as text, "--opt-level 2".
        no_cache: taken; what is kept is never stale. CuteError: an option that is none, or one of what would be another
        program here (`--link-libraries`).
        """
        given = [*self.options, *_read(options or "")]
        for option in given:
            if isinstance(option, _REFUSED):
                raise cute.CuteError(f"compile: {type(option).__name__}: {type(option).__doc__}")
        if hasattr(func, "__cute_tuned__"):
            func, named = func.__cute_tuned__(args, named)
        arch = next((o.value for o in reversed(given) if isinstance(o, GPUArch)), None) or target_here()
        held = frozenset[str]()
        if isinstance(func, functools.partial) and is_host(func.func):
            args, named = (*func.args, *args), {**func.keywords, **named}
            held |= {*parameters_of(func.func)[: len(func.args)], *func.keywords}
            func = func.func
        return compiled(func, _in_order(func, args, named), arch, held)


def _in_order(func: Any, args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return a call's arguments in the order of the parameters, with defaults."""
    if not is_host(func):
        return tuple(args)
    marked = getattr(func, "__cute_host__", False)
    fn = python_of(func if marked else type(func).__call__)
    bound = getattr(func, "__self__", None) if marked else func
    return in_order(fn, args if bound is None else (bound, *args), named)[0 if bound is None else 1 :]


def target_here() -> str:
    """Return the target to compile for: a run's, the one that CUTE_DSL_ARCH names, that of the GPU, or sm_90a."""
    found = asked()
    if found is not None:
        return found.name
    named = os.environ.get("CUTE_DSL_ARCH")
    if named:
        return named
    try:
        major, minor = cute.utils.HardwareInfo().device.compute_capability
    except cute.CuteError:  # no GPU
        return "sm_90a"
    suffix = "a" if (major, minor) >= (9, 0) else ""
    return f"sm_{major}{minor}{suffix}"


compile = _Compile()
