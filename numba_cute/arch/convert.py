# SPDX-License-Identifier: Apache-2.0
"""Exact conversions of small integers and 4-bit floats to wider floats, several at once, and of Float32 to the operands
of matrix instructions. Any thread.

Several elements are a `TensorSSA` (a vector in registers), which gives one, or a tuple, which gives a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import isa, layout, seam
from ..dtypes import BFloat16, DType, Float16, Float32, Int8, Uint8, Uint16, Uint32
from ..seam import CuteError, traced
from ..seam.guards.messages import how_static
from ..tensor.ssa import TensorSSA, bitcast

__all__ = [
    "cvt_f32_tf32", "cvt_f32x2_bf16x2", "cvt_f4e2m1_f16_intrinsic", "cvt_i4_bf16_intrinsic", "cvt_i8_bf16",
    "cvt_i8_bf16_intrinsic", "cvt_i8x2_to_bf16x2", "cvt_i8x2_to_f32x2", "cvt_i8x4_to_bf16x4", "cvt_i8x4_to_f32x4",
    "sext_unpacked_i4_i8_intrinsic",
]  # fmt: skip


def _words(source: Any, bits: int, what: str) -> list[Any]:
    """The Uint32 words of `bits` bits: of a vector of 8-bit or 32-bit elements, or of a tuple of Int8."""
    b = seam.current()
    if isinstance(source, tuple):
        vector, width, count = b.bitcast(b.pack(Int8, source), Uint8), 8, len(source)
    elif isinstance(source, TensorSSA) and source.dtype.width in (8, 32):
        width, count = source.dtype.width, int(layout.size(source.shape))
        vector = b.bitcast(source.vector, Uint8 if width == 8 else Uint32)
    else:
        raise CuteError(f"{what}: {source!r} must be a TensorSSA of 8-bit or 32-bit elements, or a tuple of Int8")
    if count * width != bits:
        raise CuteError(f"{what}: {source!r} has {count * width} bits, but the elements to convert have {bits}")
    lanes = [b.lane(vector, i) for i in range(count)]
    return lanes if width == 32 else [_word(lanes[i : i + 4]) for i in range(0, count, 4)]


def _word(byte: list[Any]) -> Any:
    word = Uint32(byte[0])
    for i, x in enumerate(byte[1:], 1):
        word = word | Uint32(x) << 8 * i
    return word


def _halves(words: list[Any], count: int, dtype: DType, source: Any) -> Any:
    """The first `count` 16-bit floats of words, like `source`: a vector or a tuple."""
    b = seam.current()
    cells = [Uint16(w >> shift) for w in words for shift in (0, 16)][:count]
    vector = b.bitcast(b.pack(Uint16, cells), dtype)
    if isinstance(source, tuple):
        return tuple(b.lane(vector, i) for i in range(count))
    return TensorSSA(vector, _shape(source, count), dtype)


def _shape(source: Any, count: int) -> Any:
    return source.shape if layout.size(source.shape) == count else count


def _length(length: Any, what: str) -> int:
    if type(length) is not int or length < 1:
        raise CuteError(
            f"{what}: length {length!r} must be a static number of elements, at least 1{how_static(length)}"
        )
    return length


def _floats(source: Any, count: int, what: str) -> Any:
    b = seam.current()
    values = [f for w in _words(source, 8 * count, what) for f in isa.cvt_f32x4_s8x4(w)][:count]
    if isinstance(source, tuple):
        return tuple(values)
    return TensorSSA(b.pack(Float32, values), source.shape, Float32)


@traced
def cvt_i8x4_to_f32x4(src_vec4: Any) -> Any:
    """Convert four Int8, `src_vec4`, to Float32. Any thread. PTX prmt, add.f32 (no target has one instruction for it),
    sm_70.

    >>> four = tuple(map(cute.Int8, (-128, -1, 0, 127)))
    >>> cute.simulate(lambda: print(arch.cvt_i8x4_to_f32x4(four)))[1, 1]()
    (Float32(-128.0), Float32(-1.0), Float32(0.0), Float32(127.0))
    """
    return _floats(src_vec4, 4, "cvt_i8x4_to_f32x4")


@traced
def cvt_i8x2_to_f32x2(src_vec2: Any) -> Any:
    """Convert two Int8, `src_vec2`, to Float32. Any thread. PTX prmt, add.f32, sm_70.

    >>> cute.simulate(lambda: print(arch.cvt_i8x2_to_f32x2((cute.Int8(-128), cute.Int8(127)))))[1, 1]()
    (Float32(-128.0), Float32(127.0))
    """
    return _floats(src_vec2, 2, "cvt_i8x2_to_f32x2")


def _int8(source: Any, count: int, what: str) -> Any:
    words = [h for w in _words(source, 8 * count, what) for h in isa.cvt_bf16x4_s8x4(w)]
    return _halves(words, count, BFloat16, source)


@traced
def cvt_i8x4_to_bf16x4(src_vec4: Any) -> Any:
    """Convert four Int8, `src_vec4`, to BFloat16. Any thread. PTX prmt, add.f32, sm_80.

    >>> four = tuple(map(cute.Int8, (-128, -1, 0, 127)))
    >>> cute.simulate(lambda: print(arch.cvt_i8x4_to_bf16x4(four)))[1, 1]()
    (BFloat16(-128.0), BFloat16(-1.0), BFloat16(0.0), BFloat16(127.0))
    """
    return _int8(src_vec4, 4, "cvt_i8x4_to_bf16x4")


@traced
def cvt_i8x2_to_bf16x2(src_vec2: Any) -> Any:
    """Convert two Int8, `src_vec2`, to BFloat16. Any thread. PTX prmt, add.f32, sm_80.

    >>> cute.simulate(lambda: print(arch.cvt_i8x2_to_bf16x2((cute.Int8(-128), cute.Int8(127)))))[1, 1]()
    (BFloat16(-128.0), BFloat16(127.0))
    """
    return _int8(src_vec2, 2, "cvt_i8x2_to_bf16x2")


@traced
def cvt_i8_bf16(src_i8: Any) -> Any:
    """Convert an Int8, `src_i8`, to BFloat16. Any thread. PTX prmt, add.f32, sm_80.

    >>> cute.simulate(lambda: print(arch.cvt_i8_bf16(cute.Int8(-3))))[1, 1]()
    -3.0
    """
    return _int8((Int8(src_i8),), 1, "cvt_i8_bf16")[0]


@traced
def cvt_i8_bf16_intrinsic(vec_i8: Any, length: int) -> Any:
    """Convert `vec_i8`, a vector of `length` (static) Int8, to BFloat16, four at a time. Any thread. PTX prmt, add.f32,
    sm_80.

    >>> x = cute.runtime.from_dlpack(np.array([-128, -1, 0, 127], np.int8))
    >>> cute.simulate(lambda x: print(arch.cvt_i8_bf16_intrinsic(x.load(), 4)[0]))[1, 1](x)
    -128.0
    """
    what = "cvt_i8_bf16_intrinsic"
    return _int8(vec_i8, _length(length, what), what)


def _four_bits(source: Any, length: Any, row: Callable[[Any], Any], dtype: DType, what: str) -> Any:
    count = _length(length, what)
    words = _words(source, -(-4 * count // 8) * 8, what)
    return _halves([h for w in words for h in row(w)], count, dtype, source)


@traced
def cvt_i4_bf16_intrinsic(vec_i4: Any, length: int, with_shuffle: bool = False) -> Any:
    """Convert `length` (static) signed 4-bit integers to a vector of BFloat16, in order. Any thread.

    vec_i4: a vector of Int8 with two integers in each, the first in the low bits, or of 32-bit words of eight.
    with_shuffle: each eight lie in the order 0, 2, 1, 3, 4, 6, 5, 7 (the last four of a length that is not a multiple
    of eight in 0, 2, 1, 3), which takes fewer instructions. PTX prmt, lop3, fma.bf16x2, sm_80.

    >>> x = cute.runtime.from_dlpack(np.array([0x1F, 0x32], np.uint8).view(np.int8))
    >>> def kernel(x):
    ...     v = arch.cvt_i4_bf16_intrinsic(x.load(), 4)
    ...     print(v[0], v[1], v[2], v[3])
    >>> cute.simulate(kernel)[1, 1](x)
    -1.0 1.0 2.0 3.0
    """
    if not isinstance(with_shuffle, bool):
        raise CuteError(
            f"cvt_i4_bf16_intrinsic: with_shuffle {with_shuffle!r} must be static: True or False"
            f"{how_static(with_shuffle)}"
        )
    row = isa.cvt_bf16x8_s4x8_shuffled if with_shuffle else isa.cvt_bf16x8_s4x8
    return _four_bits(vec_i4, length, row, BFloat16, "cvt_i4_bf16_intrinsic")


@traced
def cvt_f4e2m1_f16_intrinsic(vec_f4e2m1: Any, length: int) -> Any:
    """Convert `length` (static) 4-bit floats (e2m1) to a vector of Float16. Any thread.

    vec_f4e2m1: a vector of Uint8 with two floats in each, the first in the low bits, or of 32-bit words of eight. PTX
    prmt, lop3, mul.f16x2, sm_75.

    >>> x = cute.runtime.from_dlpack(np.array([0x1F, 0x32], np.uint8))
    >>> def kernel(x):
    ...     v = arch.cvt_f4e2m1_f16_intrinsic(x.load(), 4)
    ...     print(v[0], v[1], v[2], v[3])
    >>> cute.simulate(kernel)[1, 1](x)
    -6.0 0.5 1.0 1.5
    """
    return _four_bits(vec_f4e2m1, length, isa.cvt_f16x8_e2m1x8, Float16, "cvt_f4e2m1_f16_intrinsic")


@traced
def cvt_f32x2_bf16x2(src_vec2: Any) -> Any:
    """Convert two Float32, `src_vec2`, to BFloat16, rounded to nearest even. Any thread. PTX cvt.rn.bf16x2.f32,
    sm_80.

    >>> def kernel():
    ...     print(arch.cvt_f32x2_bf16x2(cute.full(2, 1.5, cute.Float32)).dtype)
    >>> cute.simulate(kernel)[1, 1]()
    BFloat16
    """
    if isinstance(src_vec2, TensorSSA) and layout.size(src_vec2.shape) == 2 and src_vec2.dtype == Float32:
        b = seam.current()
        pair = b.lane(src_vec2.vector, 0), b.lane(src_vec2.vector, 1)
    elif isinstance(src_vec2, tuple) and len(src_vec2) == 2:
        pair = Float32(src_vec2[0]), Float32(src_vec2[1])
    else:
        raise CuteError(f"cvt_f32x2_bf16x2: {src_vec2!r} must be a TensorSSA or tuple of two Float32")
    return _halves([isa.cvt_halves_f32(*pair, type="bf16")], 2, BFloat16, src_vec2)


@traced
def cvt_f32_tf32(src_f32: Any) -> Any:
    """Round the Float32 `src_f32` to the 10 digits of tf32, to nearest, ties away from zero: what a register of a tf32
    matrix operand holds (as Float32). Any thread. PTX cvt.rna.tf32.f32, sm_80.

    >>> cute.simulate(lambda: print(arch.cvt_f32_tf32(cute.Float32(1))))[1, 1]()
    1.0
    """
    return bitcast(isa.cvt_rna_tf32_f32(Float32(src_f32)), Uint32, Float32)


@traced
def sext_unpacked_i4_i8_intrinsic(vec_i4: Any, length: int) -> Any:
    """Give `length` (static) signed 4-bit integers, each in the low half of a byte, as a vector of Int8. Any thread.

    vec_i4: a vector of Int8 or Uint8; high halves are ignored. Raises CuteError for others. PTX lop3, mad, four at
    a time, sm_70.

    >>> x = cute.runtime.from_dlpack(np.array([0x01, 0x0F, 0xA7, 0x08], np.uint8))
    >>> def kernel(x):
    ...     v = arch.sext_unpacked_i4_i8_intrinsic(x.load(), 4)
    ...     print(v[0], v[1], v[2], v[3])
    >>> cute.simulate(kernel)[1, 1](x)
    1 -1 7 -8
    """
    what = "sext_unpacked_i4_i8_intrinsic"
    count = _length(length, what)
    if not isinstance(vec_i4, TensorSSA) or vec_i4.dtype not in (Int8, Uint8):
        raise CuteError(f"{what}: {vec_i4!r} must be a TensorSSA of Int8 or Uint8")
    words = _words(vec_i4, 8 * count, what)
    signed = [(w & 0x0F0F0F0F) | (w & 0x08080808) * 30 for w in words]  # 8 * 30 = 0xF0: no carry between bytes
    b = seam.current()
    cells = [Uint8(w >> shift) for w in signed for shift in (0, 8, 16, 24)][:count]
    return TensorSSA(b.bitcast(b.pack(Uint8, cells), Int8), vec_i4.shape, Int8)
