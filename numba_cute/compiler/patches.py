# SPDX-License-Identifier: Apache-2.0
"""Everything that this library changes in Numba, and why.

Each change is checked against the numba-cuda that is installed: what it replaces, and what it leans on, must read as it
did in the versions that it was written for. A function that has nothing of this library goes through all of them as
through Numba's own (see `ground.ownership`).
"""

from __future__ import annotations

import dis
import hashlib
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..seam.ground.records import dataclass
from . import pipeline
from .bridge import devices, registries, typeofs
from .emit import entry, ranges
from .ground import nvvm, places, target
from .ground.numba_cuda import (
    analysis,
    base,
    bytecode,
    byteflow,
    codegen,
    compiler,
    context,
    debuginfo,
    dispatcher,
    inline_closurecall,
    interpreter,
    ir,
    ir_utils,
    lowering,
    nvvmutils,
    postproc,
    targetconfig,
    typed_passes,
    typeinfer,
    types,
    untyped_passes,
)
from .ground.versions import NUMBA_CUDA, Package
from .host import backend, debugging, disk_cache, kernel, kernels, refused
from .host.native import sites
from .passes import closure_calls, frequent, inlining, lower, methods, reading, rewrites, rounds, running, ssa, uses
from .passes.comprehensions import HANDLERS


@dataclass(frozen=True)
class Patch:
    """One attribute of Numba that is replaced.

    owner, name: the module or class that holds it, and its name there. make: given what stands there, makes what shall
    stand there. digest: of the source that stands there and that of `reads`, other code of Numba that the replacement
    leans on (see `digest_of`). why: the reason, as a part of a sentence. added: nothing of that name stands there.
    """

    owner: Any
    name: str
    make: Callable[[Any], Any]
    digest: str
    why: str
    reads: tuple[Any, ...] = ()
    added: bool = False

    def __str__(self) -> str:
        return f"{self.owner.__name__}.{self.name}"


def digest_of(code: Sequence[Any]) -> str:
    """Give the first 16 digits of the SHA-256 of some functions' source."""
    return hashlib.sha256("".join(map(_source, code)).encode()).hexdigest()[:16]


def _source(code: Any) -> str:
    """Give the source of a function or a class as `inspect.getsource` does, which parses whole files: from its first
    line on, as far as its indentation says. OSError: there is none."""
    lines, first = _begins(inspect.unwrap(code))
    margin = len(lines[first]) - len(lines[first].lstrip())
    last, inside, quoted = first, False, False
    for at, line in enumerate(lines[first:], first):
        text, was_quoted = line.strip(), quoted
        quoted ^= line.count('"""') % 2 == 1
        if was_quoted:  # its lines may begin anywhere
            last = at
        if was_quoted or not text:
            continue
        outside = len(line) - len(line.lstrip()) <= margin and text[0] != ")"
        if inside and outside:
            break
        last, inside = at, inside or not outside
    return "".join(lines[first : last + 1])


def _begins(code: Any) -> tuple[list[str], int]:
    """Give the lines of the file that has a function or a class, and the index of its first."""
    if isinstance(code, type):
        lines = linecache.getlines(getattr(sys.modules[code.__module__], "__file__", None) or "")
        heads = [at for at, line in enumerate(lines) if re.match(rf"\s*class {code.__name__}\b", line)]
        if len(heads) != 1:
            raise OSError(f"{len(heads)} classes {code.__name__} in {code.__module__}")
        while heads[0] and lines[heads[0] - 1].lstrip().startswith("@"):
            heads[0] -= 1
        return lines, heads[0]
    made = code.__code__
    lines = [] if made.co_filename == "<string>" else linecache.getlines(made.co_filename)  # or `python -c` is read
    if len(lines) < made.co_firstlineno:
        raise OSError("no source")
    return lines, made.co_firstlineno - 1


def difference(patch: Patch, of: Package = NUMBA_CUDA) -> str | None:
    """Say how the package that is installed differs from the one that a patch was written for; None if it does not."""
    held = vars(patch.owner)
    if patch.added:
        if patch.name in held:
            return "is there, and was not"
    elif patch.name not in held:
        return "is not there"
    code = patch.reads if patch.added else (held[patch.name], *patch.reads)
    try:
        same = digest_of(code) == patch.digest
    except (OSError, TypeError):  # there is no source to read: no file, or no function
        same = of.installed() in of.tried and all(map(callable, code))
    return None if same else "has another source, or what works with it has"


def check(patches: Sequence[Patch], of: Package = NUMBA_CUDA) -> None:
    """Refuse a package that the patches were not written for, before any is applied. CuteError: names the first
    attribute that differs, the versions, and what to do."""
    for patch in patches:
        found = difference(patch, of)
        if found is not None:
            raise of.refused(f"{patch} {found}", f"replaces it {patch.why}")


def apply(patches: Sequence[Patch], of: Package = NUMBA_CUDA) -> None:
    """Check all patches, then put each in its place."""
    check(patches, of)
    for patch in patches:
        setattr(patch.owner, patch.name, patch.make(getattr(patch.owner, patch.name, None)))


def _adding(new: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda nothing: new


_NOTHING = digest_of(())
"""The digest of what leans on no code of Numba's."""

PATCHES: tuple[Patch, ...] = (
    Patch(
        compiler.CUDACompiler, "define_pipelines", pipeline.extending, digest="6598c5314eb6701a",
        why="to give its own functions their passes and typing context",
        reads=(*ssa.LEANS_ON, *lower.LEANS_ON, *reading.LEANS_ON, *rewrites.LEANS_ON, *running.LEANS_ON),
    ),
    Patch(
        dispatcher._Kernel, "__new__", kernel.making_kernels, digest="539a1e4b5adb8bba",
        why="to make its own kernels of a class that takes CuTe arguments, clusters and large shared memory",
        reads=(dispatcher._Kernel.launch, dispatcher._Kernel._prepare_args), added=True,
    ),
    Patch(
        dispatcher._LaunchConfiguration, "__init__", kernel.taking_streams, digest="edf3bd89af6cd238",
        why="to launch its own kernels in streams of torch, CuPy and others",
    ),
    Patch(
        dispatcher._LaunchConfiguration, "__call__", refused.launching, digest="c42044479132c610",
        why="to say how its own kernels run without a GPU, and their errors without Numba's frames",
    ),
    Patch(
        dispatcher.ForAll, "__call__", refused.folding_launches(lambda each: each.dispatcher.py_func),
        digest="b5c4473ce485eaf4", why="to do so for kernel.forall(n)",
    ),
    Patch(
        dispatcher.CUDADispatcher, "compile", disk_cache.keeping, digest="a4ebc79508a4d21e",
        why="to keep its own kernels on disk",
        reads=(dispatcher._Kernel._rebuild, dispatcher._Kernel.bind),
    ),
    Patch(
        dispatcher.CUDADispatcher, "compile_device", devices.keeping_apart, digest="4b135265017b521f",
        why="to compile device functions for each of its own kernels anew",
        reads=(dispatcher.CUDADispatcher.get_call_template,),
    ),
    Patch(
        dispatcher.CUDADispatcher, "typeof_pyval", typeofs.typing_own, digest="f9b09979582caaae",
        why="to take functions as arguments of its own kernels",
    ),
    Patch(
        dispatcher.CUDADispatcher, "recompile", sites.forgetting, digest="a5c85ff5d3b04027",
        why="to launch nothing that was compiled before",
    ),
    Patch(
        dispatcher, "get_current_device", target.naming_the_target, digest="f9da149aedd11c11",
        why="to compile for a target that is named, with no GPU",
    ),
    Patch(
        compiler.nvvm.NVVM, "__new__", nvvm.standing_in, digest="4222940a11867111",
        why="to type and lower kernels where libNVVM is not installed",
        reads=(compiler.nvvm.add_ir_version, codegen.JITCUDACodegen._create_empty_module),
    ),
    Patch(
        compiler.nvvm.CompilationUnit, "compile", nvvm.hearing_interrupts, digest="cb127374dedda007",
        why="to answer Ctrl-C while libNVVM compiles its own kernels, and to say which shape all their blocks have",
    ),
    Patch(
        codegen.CUDACodeLibrary, "get_asm_strs", backend.choosing, digest="9c13c652755ee3fb",
        why="to have its own kernels go through MLIR, where that is asked for",
        reads=(codegen.CUDACodeLibrary.get_ltoir, codegen.CUDACodeLibrary.finalize),
    ),
    Patch(
        compiler.nvvm, "set_cuda_kernel", entry.marking, digest="20c8e9dc50bd7135",
        why="to mark tensor maps that are passed by value, and a kernel's cluster shape",
    ),
    Patch(
        nvvmutils, "call_sreg", ranges.of_registers, digest="cd877934cf033501",
        why="to say which values a special register may have",
    ),
    Patch(
        base.BaseContext, "refresh", registries.refreshing, digest="7a952860def95a09",
        why="to look through the registries only if one has grown", reads=(base.BaseContext.install_registry,),
    ),
    Patch(
        context.BaseContext, "refresh", registries.refreshing, digest="5663223c5bf08c7f",
        why="to look through the registries only if one has grown", reads=(context.BaseContext.install_registry,),
    ),
    Patch(
        base, "_has_loc", frequent.having_loc, digest="35e2d21ceed768cd",
        why="to make no signature of each implementation",
    ),
    Patch(
        base.OverloadSelector, "_find", frequent.finding_by_class, digest="03c404bca0ec8dd9",
        why="to compare types of the same classes with an operator's signatures once",
        reads=(
            base.OverloadSelector.find, base.OverloadSelector._select_compatible, base.OverloadSelector._match_arglist,
            base.OverloadSelector._match, base.OverloadSelector.append,
        ),
    ),
    *(
        Patch(
            type(types.Type), name, frequent.asking_python(name), digest=_NOTHING,
            why="to ask for the bases of a type's class alone, in a fifth of the time", added=True,
        )
        for name in ("__instancecheck__", "__subclasscheck__")
    ),
    Patch(
        type(types.Type), "register", frequent.registering, digest=_NOTHING,
        why="to ask for more than the bases where somebody registers a class", added=True,
    ),
    Patch(
        untyped_passes, "fixup_var_define_in_scope", frequent.defining_once, digest="348824451ef956a0",
        why="to define a function's variables once, not for each of its blocks", reads=(ir.VarMap,),
    ),
    Patch(
        targetconfig.TargetConfig, "values", target.knowing_defaults, digest="d075623f085a201c",
        why="to list a function's options in less time, as each pass asks for", reads=(targetconfig._MetaTargetConfig,),
    ),
    Patch(
        bytecode.ByteCodePy312, "remove_build_list_swap_pattern", HANDLERS.leaving_out, digest="ec7d72a008fe891f",
        why="to know every comprehension of Python 3.12", reads=(bytecode.ByteCodePy312.__init__,),
    ),
    Patch(
        inline_closurecall, "dead_code_elimination", inlining.IN_CLOSURES.keeping_stores, digest="be0110bbcb38ae42",
        why="to keep stores through views, which it takes for dead",
        reads=(inline_closurecall.InlineClosureCallPass.run,),
    ),
    Patch(
        typed_passes, "dead_code_elimination", inlining.IN_OVERLOADS.keeping_stores, digest="7977aa3c30f839c5",
        why="to keep stores through views, which it takes for dead",
        reads=(typed_passes.InlineOverloads.run_pass,),
    ),
    Patch(
        typeinfer.ConstraintNetwork, "propagate", rounds.asking_once, digest="45c19aff05c5fc3e",
        why="to type a statement again only where a type that it asks for has changed", reads=rounds.LEANS_ON,
    ),
    Patch(
        interpreter.Interpreter, "_iter_inst", places.placing_statements, digest="83a19b5842fb4647",
        why="to know which instruction a statement comes from",
    ),
    Patch(
        interpreter.Interpreter, "_start_new_block", places.placing_blocks, digest="866ef0e19a9244c0",
        why="to know at which instruction a block begins",
    ),
    Patch(
        inline_closurecall, "inline_closure_call", closure_calls.inlining, digest="83be479aa1a8370f",
        why="to give each parameter its argument, and to know by which call a statement was inlined",
    ),
    Patch(
        compiler, "run_frontend", reading.reading_closures, digest="ad76eea1c91b3318",
        why="to read closures as the functions around them are read", reads=(ir_utils.get_ir_of_code,),
    ),
    Patch(
        ir.Inst, "_rec_list_vars", uses.listing, digest="5f5b9ac2595737e6",
        why="to list the variables of a statement in less time", reads=(ir.Stmt.list_vars, ir.Expr.list_vars),
    ),
    Patch(
        postproc.PostProcessor, "run", uses.when_asked, digest="d7a8b9b359b79ed2",
        why="to compute where the variables of its own functions live when that is asked for alone",
        reads=(postproc.PostProcessor._insert_var_dels, postproc.VariableLifetime, analysis.compute_use_defs),
    ),
    Patch(
        lowering, "get_func_def_lineno", kernels.numbering_lines, digest="3864c71fc7dad618",
        why="to number the lines of functions whose source is no Python, as with lineinfo",
        reads=(lowering.BaseLower._compute_def_location,),
    ),
    Patch(
        debuginfo.DIBuilder, "_var_type", debugging.telling_of_nothing, digest="4aa8c2c83ac00024",
        why="to compile tuples of static objects with line numbers",
    ),
)  # fmt: skip
if "LOAD_SUPER_ATTR" in dis.opmap:
    PATCHES += (
        Patch(
            byteflow.TraceRunner, "op_LOAD_SUPER_ATTR", _adding(methods.flow_super_attr), digest="05675ed21a4aeb51",
            why="to know super().name of Python 3.12", reads=(byteflow.TraceRunner.op_LOAD_ATTR,), added=True,
        ),
        Patch(
            interpreter.Interpreter, "op_LOAD_SUPER_ATTR", _adding(methods.interpret_super_attr),
            digest="4313e6924c7ec5da", why="to know super().name of Python 3.12",
            reads=(interpreter.Interpreter.op_LOAD_ATTR,), added=True,
        ),
    )  # fmt: skip
if "FORMAT_VALUE" in dis.opmap:
    PATCHES += (
        Patch(
            byteflow.TraceRunner, "op_FORMAT_VALUE", reading.flowing_formats, digest="20e54d326e454d28",
            why="to know conversions and formats in f-strings", reads=(interpreter.Interpreter.op_FORMAT_VALUE,),
        ),
    )  # fmt: skip
else:
    PATCHES += (
        Patch(
            byteflow.TraceRunner, "op_CONVERT_VALUE", _adding(reading.flow_conversion), digest="a386b8ca031811b0",
            why="to know conversions in f-strings", reads=(byteflow.TraceRunner.dispatch,), added=True,
        ),
        Patch(
            byteflow.TraceRunner, "op_FORMAT_WITH_SPEC", _adding(reading.flow_format), digest="a386b8ca031811b0",
            why="to know formats in f-strings", reads=(byteflow.TraceRunner.dispatch,), added=True,
        ),
    )  # fmt: skip
"""In the order in which they are applied."""
