# SPDX-License-Identifier: Apache-2.0
"""Descriptors as records that encode and decode: one description of the bits serves the compiler and the simulator.

A record is a frozen dataclass whose fields are made by `bits`. Adding a descriptor is adding such a class.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, TypeVar

from ...seam import CuteError
from ...seam.ground.records import dataclass

R = TypeVar("R", bound="Record")


@dataclass(frozen=True)
class BitField:
    """`width` bits from bit `lo`. A value is stored divided by `unit`, or, with `codes`, as the code given there."""

    lo: int
    width: int
    unit: int = 1
    codes: dict[int, int] | None = None

    def code(self, owner: str, value: int) -> int:
        if self.codes is not None:
            if value not in self.codes:
                raise CuteError(f"{owner} is {value}: it must be one of {sorted(self.codes)}")
            return self.codes[value]
        if value % self.unit:
            raise CuteError(f"{owner} is {value}: it must be a multiple of {self.unit}")
        limit = ((1 << self.width) - 1) * self.unit
        if not 0 <= value <= limit:
            raise CuteError(f"{owner} is {value}: it must be from 0 to {limit}, for it has {self.width} bits")
        return value // self.unit

    def value(self, owner: str, word: int) -> int:
        code = word >> self.lo & ((1 << self.width) - 1)
        if self.codes is None:
            return code * self.unit
        for value, c in self.codes.items():
            if c == code:
                return value
        raise CuteError(f"{owner} has code {code}: the known codes are {sorted(self.codes.values())}")


def bits(lo: int, width: int, *, unit: int = 1, codes: dict[int, int] | None = None, default: int = 0) -> Any:
    """A field of a `Record`."""
    return dataclasses.field(default=default, metadata={"bits": BitField(lo, width, unit, codes)})


@dataclass(frozen=True)
class Record:
    """A word of named bit fields, checked when it is made."""

    WIDTH: ClassVar[int] = 64

    @classmethod
    def fields(cls) -> dict[str, BitField]:
        return {f.name: f.metadata["bits"] for f in dataclasses.fields(cls)}

    def __post_init__(self) -> None:
        self.encode()

    def __str__(self) -> str:
        """The word, and a line for each field: its bits, its name and its value."""
        fields = sorted(self.fields().items(), key=lambda item: item[1].lo)
        wide = max(len(name) for name, _ in fields)
        lines = [f"{type(self).__name__} {self.encode():#0{2 + self.WIDTH // 4}x}"]
        for name, field in fields:
            last = field.lo + field.width - 1
            where = f"bits {field.lo} to {last}" if field.width > 1 else f"bit {field.lo}"
            lines.append(f"  {where:<14} {name:<{wide}} {getattr(self, name)}")
        return "\n".join(lines)

    def encode(self) -> int:
        """The word."""
        word = 0
        for name, field in self.fields().items():
            word |= field.code(f"{type(self).__name__}.{name}", getattr(self, name)) << field.lo
        return word

    @classmethod
    def decode(cls: type[R], word: int) -> R:
        """The record that a word stands for; bits outside all fields must be zero."""
        unused = (1 << cls.WIDTH) - 1
        for field in cls.fields().values():
            unused &= ~(((1 << field.width) - 1) << field.lo)
        if word & unused or word >> cls.WIDTH:
            raise CuteError(f"{word:#x} is no {cls.__name__}: it sets bits that no field has")
        return cls(**{name: field.value(f"{cls.__name__}.{name}", word) for name, field in cls.fields().items()})


@dataclass(frozen=True)
class WgmmaDescriptor(Record):
    """A wgmma operand in shared memory (PTX ISA, "Matrix Descriptor Format"); all in bytes.

    start: the shared::cta address, a multiple of 16. leading, stride: the leading-dimension and stride-dimension
    byte offsets, whose meaning depends on the major-ness (see `canonical.chunk_offsets`). base_offset: 0 when the
    swizzle's pattern starts at multiples of its period, as it does where addresses are swizzled, wherever the tile
    starts. swizzle: 0 (none), 32, 64 or 128.
    """

    start: int = bits(0, 14, unit=16)
    leading: int = bits(16, 14, unit=16)
    stride: int = bits(32, 14, unit=16)
    base_offset: int = bits(49, 3)
    swizzle: int = bits(62, 2, codes={0: 0, 128: 1, 64: 2, 32: 3})


def encode_address(address: Any) -> Any:
    """The `start` bits of a descriptor for a shared::cta address (an int or a run-time 32-bit leaf): the PTX ISA's
    matrix-descriptor-encode. Adding it to an encoded descriptor with start 0 sets its start."""
    return (address & 0x3FFFF) >> 4
