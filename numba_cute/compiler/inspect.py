# SPDX-License-Identifier: Apache-2.0
"""`inspect_layouts`: what each layout and tensor of a kernel became, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numba.cuda import types
from numba.cuda.core import ir

from . import tree
from .numba_types import Registers, Value, Vector
from .offline import frontend


@dataclass(frozen=True)
class Inspected:
    """One variable. name, line: as in the source. type: in CuTe's notation, ? for what is known only at run time.
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


def inspect_layouts(kernel: Any, signature: Any, arch: str = "sm_90a") -> Listing:
    """List the layouts, swizzles, pointers and tensors that a kernel's variables hold, as `Inspected` entries.

    kernel, signature, arch: as for `compile`: the kernel, a tuple of example arguments or a Numba signature, and the
    target. A variable that is assigned several times is listed once for each type. Nothing is assembled or run.

        for v in cute.inspect_layouts(kernel, (a, b)):
            print(v.name, v.type, v.registers)   # sA !cute.layout<(64,128):(1,64)> 0
    """
    annotation = frontend(kernel, signature, arch).type_annotation
    found = set()
    for variable, line in _assigned(annotation.blocks):
        ty = annotation.typemap.get(variable)
        notation = _notation(ty)
        if notation is not None:
            found.add(Inspected(variable.split(".")[0], line, notation, sum(map(_registers, ty.leaves))))
    return Listing(sorted(found, key=lambda v: (v.line, v.name, v.type)))


def _assigned(blocks: Any) -> list[tuple[str, int]]:
    """The variables that the source names, and where they are assigned."""
    return [
        (inst.target.name, inst.loc.line)
        for block in blocks.values()
        for inst in block.body
        if isinstance(inst, ir.Assign) and not inst.target.name.startswith(("$", "arg."))
    ]


def _notation(ty: Any) -> str | None:
    """What the object of this type says that it is in CuTe's IR; None if it is nothing of the kind."""
    if not isinstance(ty, Value) or ty.spec[0] != "node":
        return None
    held = tree.unflatten(ty.spec, (tree.make_leaf(t, None) for t in ty.leaves))
    say = getattr(held, "__cute_ir__", None)
    return None if say is None else say()


def _registers(leaf: types.Type) -> int:
    """How many 32-bit registers a leaf takes."""
    if isinstance(leaf, (Registers, Vector)):
        return -(-leaf.count * leaf.dtype.width // 32)
    return 2 if getattr(leaf, "bitwidth", 64 if not isinstance(leaf, types.Boolean) else 1) > 32 else 1
