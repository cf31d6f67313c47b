# SPDX-License-Identifier: Apache-2.0
"""Operands of instructions: their register (`Kind`), their meaning (`Role`), and the cases that have them.

A body's parameter is annotated with a kind (`u32`, `mbar`, …), a vector of one (`u32[4]`, `f32["regs"]`), or one of
these through `out`, `inout`, `optional`, `only`, `same`, or `choice` where a static parameter says which kind it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from ...seam.ground.records import dataclass


class Role(Enum):
    """The role of an operand in an instruction."""

    VALUE = "a value that results are made of"
    ADDRESS = "the address of memory that is accessed"
    BARRIER = "the address of an mbarrier"
    TENSOR_MAP = "the address of a tensor map"
    DESCRIPTOR = "a word that describes a matrix operand or a multiply"
    COORDINATES = "where in a tensor a box begins, innermost first"
    OFFSETS = "im2col offsets"
    BYTES = "a number of bytes"
    COUNT = "a number of arrivals, threads, columns or the like"
    PARITY = "the parity of a barrier's phase"
    PREDICATE = "whether it is done"
    ACCUMULATOR = "what a multiply adds to"
    ACCUMULATE = "whether a multiply reads its accumulator"
    METADATA = "where the stored elements of a sparse operand lie"
    SELECTOR = "which of several lanes, bytes or words is meant"
    LANES = "the lanes of a warp that take part, a bit each"
    CTAS = "the CTAs of a cluster that are meant, a bit each"
    BYTE_MASK = "the bytes that are written, a bit each"
    POLICY = "an L2 cache policy"


MEMORY = frozenset({Role.ADDRESS, Role.BARRIER, Role.TENSOR_MAP})
"""Roles that point to memory."""
CONTROL = frozenset({Role.ACCUMULATE, Role.METADATA, Role.SELECTOR, Role.LANES, Role.PREDICATE})
"""Roles that control the operation, and are no part of the result."""


@dataclass(frozen=True)
class Kind:
    """A register: its LLVM inline-assembly constraint, its PTX register type and its LLVM type. role: what it means
    unless an annotation says otherwise."""

    name: str
    constraint: str
    ptx: str
    llvm: str
    role: Role = Role.VALUE

    def __getitem__(self, count: int | str) -> Operand:
        """A vector of `count` of these: a number, or the name of a static parameter."""
        return annotation(self)[count]

    def means(self, role: Role) -> Operand:
        """The same register with another role."""
        return replace(annotation(self), role=role)


@dataclass(frozen=True)
class Operand:
    """One operand; without a name it is an annotation of one.

    kind: its register; where the static parameter `by` chooses, the first of `kinds`, (its value, the kind) each: see
    `in_case`. count: how many make a vector `{a, b, …}` (a number or a static parameter, which may be 0: then it is
    not there), or None for a scalar. optional: whether it may be left out. where: (a static parameter, the values with
    which alone it is there). unless: operands with which it may not be given. target: what it needs. same: whether
    all who issue the instruction together must give the same."""

    kind: Kind
    role: Role
    name: str = ""
    count: int | str | None = None
    writes: bool = False
    reads: bool = True
    optional: bool = False
    same: bool = False
    target: str | None = None
    where: tuple[str, tuple[Any, ...]] | None = None
    unless: tuple[str, ...] = ()
    by: str | None = None
    kinds: tuple[tuple[Any, Kind], ...] = ()

    def __getitem__(self, count: int | str) -> Operand:
        return replace(self, count=count)

    def means(self, role: Role) -> Operand:
        return replace(self, role=role)

    def size(self, case: dict[str, Any]) -> int:
        """Return the number of registers that it takes."""
        if self.count is None:
            return 1
        return int(case[self.count] if isinstance(self.count, str) else self.count)

    def in_case(self, case: dict[str, Any]) -> Operand:
        """The operand with the kind that the case chooses."""
        return self if self.by is None else replace(self, kind=dict(self.kinds)[case[self.by]], by=None, kinds=())

    def allowed(self, case: dict[str, Any]) -> bool:
        """Say whether an instruction of this case can have it."""
        return self.size(case) > 0 and (self.where is None or case[self.where[0]] in self.where[1])


def annotation(of: Kind | Operand) -> Operand:
    return of if isinstance(of, Operand) else Operand(of, of.role)


def out(of: Kind | Operand) -> Operand:
    """An operand that the instruction writes."""
    return replace(annotation(of), writes=True, reads=False)


def inout(of: Kind | Operand) -> Operand:
    """An operand that the instruction reads and writes."""
    return replace(annotation(of), writes=True)


def accumulator(of: Kind | Operand) -> Operand:
    """Make the accumulator of a multiply: `inout`."""
    return inout(annotation(of).means(Role.ACCUMULATOR))


def same(of: Kind | Operand) -> Operand:
    """An operand that all who issue the instruction together give alike; the body gets it once."""
    return replace(annotation(of), same=True)


def optional(of: Kind | Operand, *, target: str | None = None, unless: tuple[str, ...] = ()) -> Operand:
    """An operand that may be left out; the body then gets None. target: what it needs. unless: operands with which it
    may not be given."""
    return replace(annotation(of), optional=True, target=target, unless=unless)


def only(of: Kind | Operand, by: str, *values: Any) -> Operand:
    """An operand that is there where the static parameter `by` has one of these values alone."""
    return replace(annotation(of), where=(by, values))


def choice(by: str, kinds: Mapping[Any, Kind | Operand]) -> Operand:
    """An operand whose register depends on the static parameter `by`."""
    each = [(value, annotation(of)) for value, of in kinds.items()]
    return replace(each[0][1], by=by, kinds=tuple((value, of.kind) for value, of in each))


u16 = Kind("u16", "h", ".b16", "i16")
u32 = Kind("u32", "r", ".b32", "i32")
s32 = Kind("s32", "r", ".b32", "i32")
u64 = Kind("u64", "l", ".b64", "i64")
f32 = Kind("f32", "f", ".f32", "float")
f64 = Kind("f64", "d", ".f64", "double")
pred = Kind("pred", "r", ".b32", "i32")
"""A predicate: passed as 0 or 1, tested into a `.pred` register around the instruction (or set from one)."""
smem = Kind("smem", "r", ".b32", "i32", Role.ADDRESS)
"""An address in the shared::cta window of the issuing CTA."""
cluster_smem = Kind("cluster_smem", "r", ".b32", "i32", Role.ADDRESS)
"""An address in the shared::cluster window: a shared::cta address is one too; `mapa` makes those of peers."""
gmem = Kind("gmem", "l", ".b64", "i64", Role.ADDRESS)
"""A global (or generic) address."""
tmap = Kind("tmap", "l", ".b64", "i64", Role.TENSOR_MAP)
"""The generic address of a 128-byte tensor map."""
tmem = Kind("tmem", "r", ".b32", "i32", Role.ADDRESS)
"""A tensor-memory address."""

mbar = smem.means(Role.BARRIER)
cluster_mbar = cluster_smem.means(Role.BARRIER)
descriptor = u64.means(Role.DESCRIPTOR)
coordinates = s32.means(Role.COORDINATES)
offsets = u16.means(Role.OFFSETS)
byte_count = u32.means(Role.BYTES)
number = u32.means(Role.COUNT)
phase_parity = u32.means(Role.PARITY)
accumulate = pred.means(Role.ACCUMULATE)
metadata = u32.means(Role.METADATA)
selector = u32.means(Role.SELECTOR)
lane_mask = u32.means(Role.LANES)
cluster_mask = u16.means(Role.CTAS)
byte_mask = u16.means(Role.BYTE_MASK)
policy = u64.means(Role.POLICY)
