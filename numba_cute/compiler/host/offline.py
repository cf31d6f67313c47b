# SPDX-License-Identifier: Apache-2.0
"""`compile`: a kernel for any target, with no GPU."""

from __future__ import annotations

import dataclasses
from typing import Any

from ... import seam
from ...isa.form.limits import (
    check_cluster,
    check_launch,
    check_made,
    check_options,
    check_smem,
)  # fmt: skip
from ...isa.form.targets import Target, answering_for, named
from ...seam import CuteError
from ...seam.ground.counterparts import counterpart
from ...seam.ground.stack import with_room
from ...seam.guards.kinds import UserFunction
from ...seam.marks.constexpr import LAUNCHER, is_host, static_arguments
from ...seam.source.language import no_argument
from ..bridge.typeofs import type_of_argument
from ..ground.building import building
from ..ground.faults import is_numbas
from ..ground.memory import memory
from ..ground.numba import cuda
from ..ground.numba_cuda import dispatcher as cuda_dispatcher, sigutils, types
from ..ground.target import arch_name, compiling_for, parse_arch
from . import disk_cache, linking, losses, ptxas
from .facts import required_smem, static_smem
from .lowering import lowered
from .mapped import mapped
from .result import LIKELY_WRONG, Compiled, CompiledHost, warn_of
from .roles import check_roles
from .toolchain import check_toolchain


def compile(kernel: UserFunction, *args: Any, arch: str = "sm_90a", notes: str = "keep") -> Any:
    """Compile a kernel for a target, whatever GPU is here or none.

    kernel: a ``@cuda.jit`` kernel, or a plain function. args: example arguments (arrays, CuTe tensors and TMA atoms,
    numbers), one by one or as one tuple, or a Numba signature. arch: the target, as "sm_90a" (`cute.target`). Of a host
    function (`cute.jit`, or an object whose `__call__` is one), which is run for that, all kernels that it launches are
    compiled, and a `CompiledHost` is returned, which is called as the function is; a kernel's `Compiled` is launched as
    the kernel is: `compiled[grid, block](*args)`, or `compiled(*args).launch(grid=…, block=…)`. notes: "keep" lists in
    the result's `notes` what costs speed: float64 arithmetic because of a literal, spilled registers, local memory,
    wgmmas that run one after the other, a little too much shared memory for another CTA of an SM, copies that fall to
    single elements, bank conflicts of tiled copies, and what is likely a mistake in the use of pipelines; "error"
    refuses a kernel of which there is such a note.

    CuteError: an unknown target, an instruction that the target lacks, whatever the kernel does against this library's
    rules (with the kernel's line), or the assembler's refusal. PerformanceWarning: a note of the assembler that means
    lost speed. MistakeWarning: a note of a likely mistake.

    >>> def kernel(x):
    ...     x[0] = 1
    >>> cute.compile(cuda.jit(kernel), (np.zeros(1),), arch="sm_90a").resources.local
    0
    """
    if notes not in ("keep", "error"):
        raise CuteError(f'notes={notes!r}: "keep" or "error"')
    if len(args) > 1 and isinstance(args[-1], str) and not is_host(kernel):  # the target, by its place
        *args, arch = args  # type: ignore[assignment]
    if is_host(kernel):
        return _compile_host(kernel, args, arch, notes)
    if len(args) == 1 and (isinstance(args[0], (tuple, list)) or sigutils.is_signature(args[0])):
        args = args[0]
    with building(_function_of(kernel, "compile")):
        py_func, argtypes, options = taken(kernel, args, arch, "compile")
        check_options(named(arch), options)
        check_cluster(named(arch), getattr(py_func, "__cute_cluster__", (1,)))
    with compiling_for(arch) as cc:
        result = disk_cache.compiled(
            py_func, argtypes, options, arch, lambda: _compile(py_func, argtypes, options, arch, cc)
        )
    refused = [n for n in result.notes if losses.is_loss(n) or n.startswith(LIKELY_WRONG)] if notes == "error" else []
    if refused:
        raise CuteError("\n".join(refused))
    warn_of(py_func.__name__, result.notes)
    return dataclasses.replace(result, kernel=kernel if hasattr(kernel, "py_func") else cuda.jit(kernel))


def _compile_host(host: Any, args: Any, arch: str, notes: str) -> CompiledHost:
    """Run a host function, and compile the kernels that it would launch."""
    target = named(arch)
    kernels: list[Compiled] = []

    def take(kernel: Any, given: tuple[Any, ...], options: dict[str, Any]) -> None:
        shape = {name: value for name, value in options.items() if name != "pdl"}
        check_launch(target, getattr(kernel, "targetoptions", {}), **shape)
        made = compile(kernel, given, arch=arch, notes=notes)
        check_made(made, options["grid"], options["block"], options["smem"], options["cooperative"])
        kernels.append(made)

    token = LAUNCHER.set(take)
    try:
        with answering_for(arch), seam.trying():
            host(*args)
    finally:
        LAUNCHER.reset(token)
    return CompiledHost(host, args, tuple(kernels))


def frontend(kernel: Any, args: Any, arch: str) -> Any:
    """Return Numba's result for a kernel, typed and lowered to LLVM IR; arguments as for `compile`."""
    py_func, argtypes, options = taken(kernel, args, arch, "inspect_layouts")
    with compiling_for(arch) as cc, building(py_func):
        return lowered(py_func, argtypes, options, cc)


def taken(kernel: Any, args: Any, arch: str, what: str) -> tuple[Any, tuple[types.Type, ...], dict[str, Any]]:
    """Take a kernel and arguments; gives its function, the arguments' types and its options."""
    parse_arch(arch)
    kernel = counterpart(kernel)
    py_func = _function_of(kernel, what)
    if isinstance(args, (tuple, list)):
        args = type(args)(_given(kernel, args))
    return py_func, types_of(kernel, args, arch), dict(getattr(kernel, "targetoptions", {}))


def _function_of(kernel: Any, what: str) -> Any:
    py_func = getattr(kernel, "py_func", kernel)
    if not hasattr(py_func, "__code__"):
        raise CuteError(f"kernel={kernel!r}: {what} takes a @cuda.jit kernel or a function")
    return py_func


def types_of(kernel: Any, args: Any, arch: str) -> tuple[types.Type, ...]:
    """Return the types of all of a kernel's arguments, with the tensor maps that it asks for."""
    return _argument_types(mapped(kernel, args, arch))


def _given(kernel: Any, args: Any) -> Any:
    """Return a kernel's arguments, or the types of them that a signature gives."""
    return args if any(isinstance(a, types.Type) for a in args) else static_arguments(kernel, args)


def _argument_types(args: Any) -> tuple[types.Type, ...]:
    is_types = isinstance(args, tuple) and args and all(isinstance(a, types.Type) for a in args)
    if is_types or (not isinstance(args, tuple) and sigutils.is_signature(args)):
        try:
            return tuple(sigutils.normalize_signature(args)[0])
        except Exception as e:  # a signature's text is Python, which may do anything
            raise CuteError(f"args={args!r:.90}: no signature that Numba understands: {e}") from e
    if not isinstance(args, (tuple, list)):
        raise CuteError(f"args={args!r}: compile takes a tuple of example arguments, or a Numba signature")
    return tuple(map(_type, args))


def _type(value: Any) -> types.Type:
    try:
        return type_of_argument(value)
    except ValueError as e:
        if not is_numbas(e):
            raise
        raise CuteError(no_argument(value)) from e


def ptx_of(py_func: Any, argtypes: Any, options: dict[str, Any], cc: Any) -> tuple[str, str]:
    """Compile a kernel; gives its symbol and its PTX."""
    name, ptx, *_ = _code(py_func, argtypes, options, cc)
    return name, ptx


@with_room
def _code(py_func: Any, argtypes: Any, options: dict[str, Any], cc: Any) -> tuple[str, str, list[Any], tuple[str, ...]]:
    """Compile a kernel; gives its symbol, its PTX, what it is linked with, and notes of its lines."""
    target = named(arch_name(cc))
    with building(py_func, options.get("launch_bounds")):
        check_toolchain(target)
        cres = lowered(py_func, argtypes, options, cc)
        function = cres.library.get_function(cres.fndesc.llvm_func_name)
        cuda_dispatcher.kernel_fixup(function, options.get("debug", False))
        cuda_dispatcher.nvvm.set_launch_bounds(function, options.get("launch_bounds"))
        ptx = "\n".join(cres.library.get_asm_strs(cc=cc))
        _check_limits(ptx, options, target)
        found = losses.of_lines(py_func, memory().losses_in(cres.library), ptx)
        return function.name, ptx, linking.parts_of(cres, ptx, options), found


def _compile(py_func: Any, argtypes: Any, options: dict[str, Any], arch: str, cc: Any) -> Compiled:
    name, ptx, parts, found = _code(py_func, argtypes, options, cc)
    most = options.get("max_registers")
    cubin, said = ptxas.assemble(ptx, arch, most, relocatable=bool(parts))
    cubin = linking.link(cubin, parts, arch, cc, most) if parts else cubin
    used = ptxas.resources(said, required_smem(ptx), ptx)
    notes = (*found, *losses.of_memory(py_func, used, ptx, named(arch)), *ptxas.notes(said))
    return Compiled(name, arch, ptx, cubin, used, notes)


def _check_limits(ptx: str, options: dict[str, Any], target: Target) -> None:
    """Raise a CuteError if a kernel asks for more than its target has, which the assembler may accept."""
    check_smem(target, required_smem(ptx), static_smem(ptx))
    if "setmaxnreg" in ptx:
        check_roles(ptx, target, options.get("launch_bounds"))
