# SPDX-License-Identifier: Apache-2.0
"""Listings of a kernel. `inspect_ptx`: its CuTe operations and the PTX of each; `inspect_layouts`: its layouts and
tensors, and the registers that they take."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from ...seam.ground.drawing import brief
from ...seam.ground.records import dataclass
from ...seam.guards.kinds import UserFunction
from ..bridge.leaf_types import Registers, Vector
from ..bridge.object_types import Value
from ..ground.numba_cuda import ir, types
from ..ground.target import compiling_for
from ..host.offline import frontend, ptx_of, taken
from .operations import Operation, Recorder, recording
from .ptx_lines import Placed, placed_instructions
from .spelled import spelling
from .type_descriptions import description_of_type


@dataclass(frozen=True)
class Inspection:
    """A kernel as CuTe operations. kernel, file, arch: its name, source and target. arguments: (name, type) of each.
    operations: in the order of the source lines; within a line those of the library first, in the order in which they
    run, then its ordinary Numba code. Every PTX instruction of the kernel belongs to one of them; those that the
    compiler made for no line in particular are in a last one of line 0."""

    kernel: str
    file: str
    arch: str
    arguments: tuple[tuple[str, str], ...]
    operations: tuple[Operation, ...]

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def __len__(self) -> int:
        return len(self.operations)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        """Write the listing's first lines."""
        return brief(self.text())

    def text(self, limit: int | None = 8) -> str:
        """Write the listing: each source line, under it its operations, under each its PTX, of which `limit`
        instructions are shown (None: all). What an unrolled loop repeats is shown once and counted."""
        out = [f"kernel {self.kernel} for {self.arch}, {self.file}"]
        out += [f"  {name} : {ty}" for name, ty in self.arguments]
        for line, operations in groupby(self.operations, key=lambda o: o.line):
            source = linecache.getline(self.file, line).strip() if line else "(made by the compiler for no one line)"
            out += ["", f"{line or '-':>5} | {source}"]
            for alike in _alike(list(operations)):
                out += _shown(alike, limit)
        return "\n".join(out) + "\n"


def _alike(operations: list[Operation]) -> list[list[Operation]]:
    """Group the operations of a line, those that differ only in their results' and operands' numbers together."""
    kinds: dict[Any, list[Operation]] = {}
    for o in operations:
        kinds.setdefault((o.name, o.type, o.operand_types), []).append(o)
    return list(kinds.values())


_LIST = re.compile(r"\{([^{}]*)\}")


def _shortened(registers: re.Match[str]) -> str:
    """Shorten a long list of registers to its ends."""
    names = registers[1].split(", ")
    return registers[0] if len(names) <= 8 else f"{{{names[0]}, {names[1]}, ... {names[-1]}}}"


def _shown(alike: list[Operation], limit: int | None) -> list[str]:
    first = alike[0]
    out = [f"        {first}"]
    instructions = first.ptx if limit is None else [_LIST.sub(_shortened, text) for text in first.ptx[:limit]]
    out += [f"            | {text}" for text in instructions]
    if len(instructions) < len(first.ptx):
        out.append(f"            | ... {len(first.ptx) - len(instructions)} more")
    if len(alike) > 1:
        count = sum(len(o.ptx) for o in alike[1:])
        out.append(f"          and {len(alike) - 1} more like it, {count} instruction{'s' * (count != 1)}")
    return out


def inspect_ptx(kernel: Any, signature: Any, arch: str = "sm_90a") -> Inspection:
    """List a kernel's CuTe operations with their types, and beside each the PTX that it became.

    kernel: a ``@cuda.jit`` kernel, or a plain function. signature: example arguments as a tuple, or a Numba signature.
    arch: the target, as "sm_90a". CuteError: for what `compile` refuses, but for the assembler's part.

    Nothing is assembled or run, and no GPU is needed. The PTX is that of the optimised kernel: an operation without any
    was folded away while the kernel was compiled, and what several share belongs to one of them.

        print(cute.inspect_ptx(kernel, (a, b)))
        [o.ptx for o in cute.inspect_ptx(kernel, (a, b)) if o.name == "cute.gemm"]

    >>> def kernel(x):
    ...     arch.sync_threads()
    >>> [op.name for op in cute.inspect_ptx(kernel, (np.zeros(1, np.int32),)) if op.name]
    ['cute.arch.sync_threads']
    """
    function, argtypes, options = taken(kernel, signature, arch, "inspect_ptx")
    recorder = Recorder(function)
    with compiling_for(arch) as cc, recording(recorder):
        name, ptx = ptx_of(function, argtypes, {**options, "lineinfo": True, "debug": False}, cc)
    file = function.__code__.co_filename
    ptx = ptx.replace(f"{name}_param", f"{function.__name__}_param")  # as a person would call it
    operations = _with_ptx(recorder, placed_instructions(ptx, name), file)
    return Inspection(function.__name__, file, arch, tuple(recorder.arguments), operations)


def _with_ptx(recorder: Recorder, placed: list[Placed], file: str) -> tuple[Operation, ...]:
    """Return the recorded operations and the ordinary code, each with its instructions, by line."""
    became: list[list[str]] = [[] for _ in recorder.operations]
    ordinary: dict[int, list[str]] = {}
    for p in placed:
        index = recorder.columns.get(p.column) if p.file == file else None
        if index is not None and recorder.operations[index].line == p.line:
            became[index].append(p.text)
        else:
            ordinary.setdefault(p.line if p.file == file else 0, []).append(p.text)
    out = [replace(o, ptx=tuple(texts)) for o, texts in zip(recorder.operations, became)]
    out += [Operation(line, "", ptx=tuple(texts)) for line, texts in ordinary.items()]
    return tuple(sorted(out, key=lambda o: (o.line == 0, o.line, not o.name)))


@dataclass(frozen=True)
class Inspected:
    """One variable. name, line: as in the source. type: as the CuTe IR writes it, ? for what is known only at run time.
    registers: how many of 32 bits its run-time parts take, before the compiler drops those that are not used."""

    name: str
    line: int
    type: str
    registers: int

    def __str__(self) -> str:
        return f"line {self.line}: {self.name}: {self.type}, {self.registers} register{'s' * (self.registers != 1)}"


class Listing(tuple[Inspected, ...]):
    """The variables in the order of the source; printed, one a line."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def __repr__(self) -> str:
        """Write its first lines."""
        return brief(str(self))


def inspect_layouts(kernel: UserFunction, signature: Any, arch: str = "sm_90a") -> Listing:
    """List the layouts, swizzles, pointers, tensors, register vectors and atoms that a kernel's variables hold, as
    `Inspected` entries.

    kernel: a ``@cuda.jit`` kernel, or a plain function. signature: example arguments as a tuple, or a Numba signature.
    arch: the target, as "sm_90a". CuteError: for what `compile` refuses while it types and lowers. A variable
    that is assigned several times is listed once for each type. Nothing is assembled or run.

        for v in cute.inspect_layouts(kernel, (a, b)):
            print(v.name, v.type, v.registers)   # sA !cute.layout<"(64,128):(1,64)"> 0

    >>> def kernel(x):
    ...     tile = cute.make_layout((4, 8), stride=(8, 1))
    ...     x[0] = tile((1, 2))
    >>> for found in cute.inspect_layouts(kernel, (np.zeros(1, np.int32),)):
    ...     print(found.name, found.type)
    tile !cute.layout<"(4,8):(8,1)">
    """
    annotation = frontend(kernel, signature, arch).type_annotation
    found = set()
    for variable, line in _assigned(annotation.blocks):
        ty = annotation.typemap.get(variable)
        if isinstance(ty, Value) and spelling().has_form(held := description_of_type(ty)):
            text = spelling().spell(held)
            found.add(Inspected(variable.split(".")[0], line, text, sum(map(_registers, ty.leaves))))
    return Listing(sorted(found, key=lambda v: (v.line, v.name, v.type)))


def _assigned(blocks: Any) -> list[tuple[str, int]]:
    """Return the variables that the source names, and where they are assigned."""
    return [
        (inst.target.name, inst.loc.line)
        for block in blocks.values()
        for inst in block.body
        if isinstance(inst, ir.Assign) and not inst.target.name.startswith(("$", "arg."))
    ]


def _registers(leaf: types.Type) -> int:
    """Count how many 32-bit registers a leaf takes."""
    if isinstance(leaf, (Registers, Vector)):
        return -(-leaf.count * leaf.dtype.width // 32)
    return 2 if getattr(leaf, "bitwidth", 64 if not isinstance(leaf, types.Boolean) else 1) > 32 else 1
