# SPDX-License-Identifier: Apache-2.0
"""The words that tcgen05.mma takes: descriptors of operands in shared memory, of the multiply itself, and of columns
of B that count as zero (PTX ISA, "Matrix Descriptors")."""

from __future__ import annotations

from ...seam.ground.records import dataclass
from .bits import Record, bits
from .canonical import SWIZZLE_128B_BASE32B

RELATIVE, ABSOLUTE = 0, 1
"""The kinds of `leading` of a `Tcgen05Descriptor`: an offset, or (sm_103a, 48 bytes of K) an address."""


@dataclass(frozen=True)
class Tcgen05Descriptor(Record):
    """An operand of tcgen05.mma in shared memory (PTX ISA, "tcgen05 shared memory descriptor"); all in bytes.

    start, leading, stride: as in `bits.WgmmaDescriptor`. version: always 1. mode: ABSOLUTE where `leading` is the
    address at which a K of 48 bytes goes on that leaves its row of 128 bytes. swizzle: 0, 32, 64, 128 or
    SWIZZLE_128B_BASE32B.
    """

    start: int = bits(0, 14, unit=16)
    leading: int = bits(16, 14, unit=16)
    stride: int = bits(32, 14, unit=16)
    version: int = bits(46, 3, codes={1: 1}, default=1)
    base_offset: int = bits(49, 3)
    mode: int = bits(52, 1)
    swizzle: int = bits(61, 3, codes={0: 0, SWIZZLE_128B_BASE32B: 1, 128: 2, 64: 4, 32: 6})


@dataclass(frozen=True)
class Tcgen05Instruction(Record):
    """The instruction descriptor of the kinds f16, tf32, f8f6f4 and i8 (PTX ISA, "Instruction descriptor").

    selector: of sparse f16 and tf32 the column of metadata, from the one that is named. sparse: 1 if half of A is
    stored. saturate: 1 keeps s32 results in range. d: 0 for f16, 1 for f32, 2 for s32. a, b: the element type's code
    among those of its kind. negate_a, negate_b: 1 multiplies by -1 (not i8). major_a, major_b: 0 if K-major, 1 if
    MN-major. n, m: the shape (m of both CTAs with cta_group 2). max_shift: how many columns of B a `ZeroColumnMask` may
    shift by, 0, 8, 16 or 32 (.ws).
    """

    WIDTH = 32
    selector: int = bits(0, 2)
    sparse: int = bits(2, 1)
    saturate: int = bits(3, 1)
    d: int = bits(4, 2, default=1)
    a: int = bits(7, 3)
    b: int = bits(10, 3)
    negate_a: int = bits(13, 1)
    negate_b: int = bits(14, 1)
    major_a: int = bits(15, 1)
    major_b: int = bits(16, 1)
    n: int = bits(17, 6, unit=8, default=64)
    m: int = bits(24, 5, unit=16, default=128)
    max_shift: int = bits(30, 2, codes={0: 0, 8: 1, 16: 2, 32: 3})


@dataclass(frozen=True)
class Tcgen05ScaledInstruction(Record):
    """The instruction descriptor of the kinds mxf8f6f4, mxf4 and mxf4nvf4 (PTX ISA, "Instruction descriptor").

    sparse: 1 if half of A is stored. id_a, id_b: the byte of a word of tensor memory at which the scale factors begin.
    a, b: the element type's code among those of its kind. negate_a, negate_b: 1 multiplies by -1. major_a, major_b: 0
    if K-major, 1 if MN-major (mxf8f6f4). n, m: the shape (m of both CTAs with cta_group 2). e8m0: whether the factors
    are ue8m0, not ue4m3. k96: 1 if k is 96, not what the kind has else (mxf4, mxf4nvf4; sm_103a).
    """

    WIDTH = 32
    sparse: int = bits(2, 1)
    id_b: int = bits(4, 2)
    a: int = bits(7, 3)
    b: int = bits(10, 3)
    negate_a: int = bits(13, 1)
    negate_b: int = bits(14, 1)
    major_a: int = bits(15, 1)
    major_b: int = bits(16, 1)
    n: int = bits(17, 6, unit=8, default=64)
    e8m0: int = bits(23, 1, default=1)
    m: int = bits(27, 2, unit=128, default=128)
    id_a: int = bits(29, 2)
    k96: int = bits(31, 1)


@dataclass(frozen=True)
class ZeroColumnMask(Record):
    """Columns of B that count as zero in tcgen05.mma.ws (PTX ISA, "Zero-Column Mask Descriptor").

    Of m 128 the n columns are one stretch, of m 64 two, of m 32 four. In each, columns that count and columns of zeros
    alternate. start0 to start3: how many columns of that pattern have passed when a stretch begins. zero_first0 to
    zero_first3: 1 if the pattern begins with zeros. enable: 0 lets all columns count. zeros, used: how many columns
    there are of each in turn, less one. shift: the column of B that is taken for column 0.

    The PTX ISA's table has `zeros` and `used` the other way round than its examples, which are meant here.
    """

    start0: int = bits(0, 8)
    start1: int = bits(8, 8)
    start2: int = bits(16, 8)
    start3: int = bits(24, 8)
    zero_first0: int = bits(32, 1)
    zero_first1: int = bits(33, 1)
    zero_first2: int = bits(34, 1)
    zero_first3: int = bits(35, 1)
    enable: int = bits(39, 1)
    zeros: int = bits(40, 8)
    used: int = bits(48, 8)
    shift: int = bits(56, 6)

    def columns(self, m: int, n: int) -> list[bool]:
        """Return of each of n columns whether it counts as zero in a multiply of m rows."""
        if not self.enable:
            return [False] * n
        stretch, period, found = n * m // 128, self.zeros + self.used + 2, []
        for i in range(128 // m):
            zero_first, start = getattr(self, f"zero_first{i}"), getattr(self, f"start{i}")
            first = self.zeros + 1 if zero_first else self.used + 1
            found += [((c + start) % period < first) == bool(zero_first) for c in range(stretch)]
        return found
