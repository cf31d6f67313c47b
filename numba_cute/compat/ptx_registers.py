# SPDX-License-Identifier: Apache-2.0
"""The registers of a text of PTX that is run in the simulator."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import isa
from ..dtypes import (
    BFloat16,
    DType,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
)  # fmt: skip
from ..seam import current
from ..tensor.pointer import AddressSpace, make_ptr
from ..tensor.ssa import bitcast

TYPES = {
    "s8": Int8, "u8": Uint8, "b8": Uint8,
    "s16": Int16, "u16": Uint16, "b16": Uint16, "f16": Float16, "bf16": BFloat16, "s32": Int32, "u32": Uint32,
    "b32": Uint32, "f32": Float32, "s64": Int64, "u64": Uint64, "b64": Uint64, "f64": Float64,
}  # fmt: skip
NARROW = {"e4m3x2": Float8E4M3FN, "e5m2x2": Float8E5M2, "f16x2": Float16, "bf16x2": BFloat16}
UNSIGNED: dict[int, Any] = {8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}


class Step(NamedTuple):
    """An instruction. words: its name, taken apart at the dots. operands: as they stand in the text. guard: the
    predicate before it, as "p" or "!p"; None for none."""

    words: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str | None = None


def as_type(x: Any, dtype: DType) -> Any:
    """Return the bits of a number as one of a type of the same width; a predicate as 0 or 1."""
    if isinstance(x, (int, float)):
        return dtype(x)
    kind = current().type_of(x)
    if kind == dtype:
        return x
    return bitcast(x, kind, dtype) if kind.width == dtype.width else dtype(x)


class _Held(dict[str, Any]):
    """The numbers of registers, by name. own: those of the text alone; others stay with the thread."""

    def __init__(self, given: dict[str, Any], own: frozenset[str]) -> None:
        super().__init__(given)
        self._own = own

    def stays(self, name: str) -> bool:
        """Say whether a name is of a register that stays."""
        return name not in self._own and not name.startswith("$") and _IS_NAME.match(name) is not None

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and self.stays(name))

    def __missing__(self, name: str) -> Any:
        return current().read(current().text_register(name))  # type: ignore[attr-defined]

    def __setitem__(self, name: str, value: Any) -> None:
        if self.stays(name):
            wide = value if isinstance(value, int) else as_type(value, UNSIGNED[max(8, current().type_of(value).width)])
            current().write(current().text_register(name), Uint64(wide))  # type: ignore[attr-defined]
        else:
            super().__setitem__(name, value)


_IS_NAME = re.compile(r"[A-Za-z_][\w$]*$")


class Registers:
    """The registers of a text. held: their numbers, by name."""

    def __init__(self, held: dict[str, Any], own: frozenset[str] = frozenset()) -> None:
        self.held = _Held(held, own)

    def read(self, name: str, kind: str) -> Any:
        """Return an operand as a number of a type, as "s32"."""
        x = _special(name[1:]) if name[0] == "%" and name not in self.held else self.number(name)
        return as_type(x, TYPES[kind])

    def number(self, name: str) -> Any:
        """Return an operand as it is held, or as it is written."""
        return self.held[name] if name in self.held else _literal(name)

    def halves(self, operand: str, kind: str) -> list[Any]:
        """Return the two numbers of a type that an operand holds, the lower one first."""
        dtype = TYPES[kind]
        word, part = self.read(operand, f"b{2 * dtype.width}"), UNSIGNED[dtype.width]
        return [as_type(part((word >> (dtype.width * i)) & ((1 << dtype.width) - 1)), dtype) for i in range(2)]

    def joined(self, parts: list[Any]) -> Any:
        """Return the bits of some numbers of one width as one number, the first in the lowest bits."""
        width = current().type_of(parts[0]).width
        whole, part = UNSIGNED[width * len(parts)], UNSIGNED[width]
        words = (whole(as_type(x, part)) << (width * i) for i, x in enumerate(parts))
        return functools.reduce(lambda a, b: a | b, words)

    def several(self, operand: str) -> list[str]:
        """Return the names of a vector, as `{a, b}`, or the one name that stands alone."""
        return [n.strip() for n in operand.strip("{}").split(",")]

    def predicate(self, name: str) -> Any:
        """Return a predicate, as "p", "!p", "0" or "1"."""
        x = self.held[name.lstrip("!")] if name.lstrip("!") in self.held else int(name, 0) != 0
        return current().compare("==", x, 0) if name.startswith("!") else x

    def address(self, operand: str, kind: str = "u32") -> Any:
        """Return the address that an operand in brackets is, as `[a + 0x20]`."""
        first, *rest = (self.read(part.strip(), kind) for part in operand.strip("[] ").split("+"))
        return functools.reduce(lambda a, b: a + b, rest, first)

    def pointer(self, operand: str, dtype: DType, space: AddressSpace) -> Any:
        """Return the pointer that an operand in brackets is."""
        wide = "u32" if space is AddressSpace.smem else "u64"
        return make_ptr(dtype, self.address(operand, wide), space)


Operation = Callable[[Registers, Step], bool]


def _special(name: str) -> Any:
    """Return a special register: one of a thread, of a cluster, or one that may change."""
    other: dict[str, Any] = {
        "clock": isa.clock32, "clock64": isa.clock64, "globaltimer": isa.globaltimer,
        "globaltimer_lo": isa.globaltimer_lo, "gridid": isa.gridid,
    }  # fmt: skip
    if name in other:
        return other[name]()
    if name.startswith("lanemask_"):
        return isa.lanemask(lanes=name.removeprefix("lanemask_"))
    row: Any = isa.sreg_cluster if "cluster" in name else isa.sreg_volatile if name in _CHANGING else isa.sreg
    return row(register=name)


_CHANGING = ("warpid", "nwarpid", "smid", "nsmid")


def _literal(name: str) -> Any:
    if name[:2] in ("0f", "0F"):
        return bitcast(Uint32(int(name[2:], 16)), Uint32, Float32)
    if name[:2] in ("0d", "0D"):
        return bitcast(Uint64(int(name[2:], 16)), Uint64, Float64)
    return float(name) if re.fullmatch(r"-?\d+\.\d*(e[-+]?\d+)?", name) else int(name.rstrip("U"), 0)
