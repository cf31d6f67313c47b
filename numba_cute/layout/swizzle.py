# SPDX-License-Identifier: Apache-2.0
"""Swizzles: permutations of offsets that spread rows over the banks of shared memory."""

from __future__ import annotations

import functools
import re
from typing import Any

from ..seam import CuteError, InIR, frozen, traced
from ..seam.ground.records import dataclass
from .int_tuple import static_int, whole

__all__ = ["Swizzle", "make_swizzle"]


@frozen
@dataclass(frozen=True)
class Swizzle(InIR):
    """S<bits,base,shift>: bit field Z of `bits` bits from bit `base` is xored with field Y, `shift` bits above it
    (below it if `shift` is negative, and then Y is what changes).

        0bxxxxYYYxxxZZZxx -> 0bxxxxYYYxxxAAAxx with AAA = ZZZ ^ YYY
                      ^^ base   ^^^^^^ shift

    >>> cute.Swizzle(3, 4, 3)(128)
    144
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for name in ("bits", "base", "shift"):
            object.__setattr__(self, name, static_int(getattr(self, name), name))
        if self.bits < 0 or self.base < 0:
            raise CuteError(f"{self}: bits and base must be 0 or more")
        if max(self.bits, self.base, abs(self.shift)) > 64:
            raise CuteError(f"{self}: bits, base and shift are of numbers of 64 bits: give at most 64")
        if self.bits == 0:  # one identity, so that equal functions are equal
            object.__setattr__(self, "base", 4)
            object.__setattr__(self, "shift", 3)
        if abs(self.shift) < self.bits:
            raise CuteError(f"{self}: the two bit fields overlap: |shift| must be at least bits={self.bits}")

    @property
    def num_bits(self) -> int:
        """Return the number of bits that are xored: the same as `bits`."""
        return self.bits

    @property
    def num_base(self) -> int:
        """The lowest bit that may change: the same as `base`."""
        return self.base

    @property
    def num_shift(self) -> int:
        """Return the distance from the bits that change up to the bits that are read: the same as `shift`."""
        return self.shift

    @staticmethod
    @traced
    def from_name(name: str) -> Swizzle:
        """Make the swizzle of a name: "S<3,4,3>" as one is printed, or a mode of shared memory, whose swizzle is of
        byte addresses: "INTER" (none), "SW32", "SW64" or "SW128", perhaps after "K_" or "MN_". CuteError: another
        name."""
        found = _PRINTED.fullmatch(str(name))
        if found:
            return Swizzle(*map(int, found.groups()))
        mode = str(name).removeprefix("MN_").removeprefix("K_")
        if mode not in _MODES:
            raise CuteError(f"Swizzle.from_name: name={name!r} is neither like 'S<3,4,3>' nor one of {list(_MODES)}")
        return make_swizzle(_MODES[mode], 4, 3)

    @functools.cached_property
    def y_mask(self) -> int:
        """The bits that are read."""
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    @functools.cached_property
    def z_mask(self) -> int:
        """The bits that change."""
        return ((1 << self.bits) - 1) << (self.base - min(0, self.shift))

    @functools.cached_property
    def period(self) -> int:
        """Offsets that are multiples of this pass unchanged: S(x + k period) = S(x) + k period."""
        return 1 << (self.base + self.bits + abs(self.shift))

    @traced
    def __call__(self, offset: Any) -> Any:
        """Return the place to which `offset` is swizzled. A swizzle is its own inverse."""
        if isinstance(offset, tuple):
            raise CuteError(f"{self} maps integer offsets, not {offset!r}")
        bits = whole(offset, "offset")
        if self.bits == 0:
            return bits
        y = bits & self.y_mask
        return bits ^ (y >> self.shift if self.shift >= 0 else y << -self.shift)

    def __repr__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"


_PRINTED = re.compile(r"S[Ww]?<(\d+),\s*(\d+),\s*(-?\d+)>")
_MODES = {"INTER": 0, "SW32": 1, "SW64": 2, "SW128": 3}
"""By the names of SmemLayoutAtomKind, the bits that each xors, from bit 4 on with those 3 above."""

IDENTITY = Swizzle(0, 4, 3)


@traced
def make_swizzle(b: int, m: int, s: int) -> Swizzle:
    """Make S<b,m,s>: `b` bits, from bit `m` on, xored with those `s` bits above (below if `s` is negative). No bits, or
    fields that would overlap (|s| < b), give the identity S<0,4,3>, as in the CuTe DSL.

    >>> cute.make_swizzle(3, 4, 3)
    S<3,4,3>
    """
    b, m, s = static_int(b, "b"), static_int(m, "m"), static_int(s, "s")
    return IDENTITY if b == 0 or abs(s) < b else Swizzle(b, m, s)


def swizzle_of_masks(y_mask: int, z_mask: int) -> Swizzle | None:
    """Return the swizzle that reads the bits of `y_mask` and changes those of `z_mask`; None where there is none."""
    if y_mask == 0 or z_mask == 0:
        return IDENTITY
    y_low, z_low = (y_mask & -y_mask).bit_length() - 1, (z_mask & -z_mask).bit_length() - 1
    bits = y_mask.bit_count()
    if y_mask >> y_low != (1 << bits) - 1 or z_mask >> z_low != (1 << bits) - 1 or abs(y_low - z_low) < bits:
        return None
    return Swizzle(bits, min(y_low, z_low), y_low - z_low)
