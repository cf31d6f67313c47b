# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on two floats at once. Any thread.

Pairs of Float32 are tuples (low, high); pairs of 16-bit floats are Uint32 words, the first in the low half. rnd: "rn"
to nearest even (the default), "rz" towards zero, "rm" down, "rp" up. ftz: treat subnormal operands and results as zero.
"""

from __future__ import annotations

from typing import Any

from .. import isa
from ..dtypes import Float32, Uint32
from ..seam import CuteError, traced

__all__ = [
    "add_packed_bf16x2", "add_packed_bf16x2_f32x2_f32x2", "add_packed_f16x2", "add_packed_f16x2_f32x2_f32x2",
    "add_packed_f32x2", "add_packed_f32x2_bf16x2_f32x2", "add_packed_f32x2_f16x2_f32x2", "exp2_packed_bf16x2",
    "exp2_packed_f16x2", "fma_packed_bf16x2", "fma_packed_f16x2", "fma_packed_f32x2",
    "fma_packed_f32x2_bf16x2_f32x2_f32x2", "fma_packed_f32x2_f16x2_f32x2_f32x2", "mul_packed_f32x2",
    "sub_packed_bf16x2", "sub_packed_bf16x2_f32x2_f32x2", "sub_packed_f16x2", "sub_packed_f16x2_f32x2_f32x2",
    "sub_packed_f32x2", "sub_packed_f32x2_bf16x2_f32x2", "sub_packed_f32x2_f16x2_f32x2",
]  # fmt: skip


def _pair(x: Any, what: str, name: str) -> tuple[Any, Any]:
    if not isinstance(x, tuple) or len(x) != 2:
        raise CuteError(f"{what}: {name} {x!r} must be a pair of Float32")
    return Float32(x[0]), Float32(x[1])


def _rounding(rnd: Any, ftz: Any, what: str) -> dict[str, Any]:
    if rnd not in ("rn", "rz", "rm", "rp") or ftz not in (True, False):
        raise CuteError(f'{what}: rnd {rnd!r} must be "rn", "rz", "rm" or "rp", and ftz {ftz!r} True or False')
    return {"rnd": rnd, "ftz": ftz}


def _arith(op: str, a: Any, b: Any, rnd: Any, ftz: Any) -> Any:
    what = f"{op}_packed_f32x2"
    return isa.arith_f32x2(_pair(a, what, "src_a"), _pair(b, what, "src_b"), op=op, **_rounding(rnd, ftz, what))


@traced
def add_packed_f32x2(src_a: Any, src_b: Any, rnd: str = "rn", ftz: bool = False) -> Any:
    """Add the pairs `src_a` and `src_b` of Float32, each a tuple (low, high). rnd: "rn" (to nearest even, the default),
    "rz", "rm" or "rp". ftz: treat subnormal numbers as zero. Any thread. PTX add.f32x2, sm_100.

    >>> a, b = (cute.Float32(1), cute.Float32(2)), (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(arch.add_packed_f32x2(a, b)), arch="sm_100a")[1, 1]()
    (Float32(4.0), Float32(6.0))
    """
    return _arith("add", src_a, src_b, rnd, ftz)


@traced
def sub_packed_f32x2(src_a: Any, src_b: Any, rnd: str = "rn", ftz: bool = False) -> Any:
    """Subtract the pair `src_b` from `src_a` of Float32, each a tuple (low, high). rnd: "rn" (to nearest even, the
    default), "rz", "rm" or "rp". ftz: treat subnormal numbers as zero. Any thread. PTX sub.f32x2, sm_100.

    >>> a, b = (cute.Float32(1), cute.Float32(2)), (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(arch.sub_packed_f32x2(a, b)), arch="sm_100a")[1, 1]()
    (Float32(-2.0), Float32(-2.0))
    """
    return _arith("sub", src_a, src_b, rnd, ftz)


@traced
def mul_packed_f32x2(src_a: Any, src_b: Any, rnd: str = "rn", ftz: bool = False) -> Any:
    """Multiply the pairs `src_a` and `src_b` of Float32, each a tuple (low, high). rnd: "rn" (to nearest even, the
    default), "rz", "rm" or "rp". ftz: treat subnormal numbers as zero. Any thread. PTX mul.f32x2, sm_100.

    >>> a, b = (cute.Float32(1), cute.Float32(2)), (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(arch.mul_packed_f32x2(a, b)), arch="sm_100a")[1, 1]()
    (Float32(3.0), Float32(8.0))
    """
    return _arith("mul", src_a, src_b, rnd, ftz)


@traced
def fma_packed_f32x2(src_a: Any, src_b: Any, src_c: Any, rnd: str = "rn", ftz: bool = False) -> Any:
    """Compute `src_a` * `src_b` + `src_c` of pairs of Float32, each a tuple (low, high), rounded once. rnd: "rn" (to
    nearest even, the default), "rz", "rm" or "rp". ftz: treat subnormal numbers as zero. Any thread. PTX fma.f32x2,
    sm_100.

    >>> a, b = (cute.Float32(1), cute.Float32(2)), (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(arch.fma_packed_f32x2(a, b, b)), arch="sm_100a")[1, 1]()
    (Float32(6.0), Float32(12.0))
    """
    what = "fma_packed_f32x2"
    return isa.fma_f32x2(
        _pair(src_a, what, "src_a"), _pair(src_b, what, "src_b"), _pair(src_c, what, "src_c"),
        **_rounding(rnd, ftz, what),
    )  # fmt: skip


def _mixed(op: str, type: str, a: Any, b: Any) -> Any:
    return isa.arith_mixed(Uint32(a), _pair(b, f"{op}_packed_f32x2_{type}x2_f32x2", "src_b"), op=op, type=type)


def _narrow(op: str, type: str, a: Any, b: Any) -> Any:
    what = f"{op}_packed_{type}x2_f32x2_f32x2"
    return isa.arith_narrow(_pair(a, what, "src_a"), _pair(b, what, "src_b"), op=op, type=type)


def _fma_mixed(type: str, a: Any, b: Any, c: Any) -> Any:
    what = f"fma_packed_f32x2_{type}x2_f32x2_f32x2"
    return isa.fma_mixed(Uint32(a), _pair(b, what, "src_b"), _pair(c, what, "src_c"), type=type)


@traced
def add_packed_f16x2(src_a: Any, src_b: Any) -> Any:
    """Add the pairs `src_a` and `src_b` of Float16, each a Uint32 word, rounded to nearest even. Any thread. PTX
    add.f16x2, sm_80.

    >>> cute.simulate(lambda: print(hex(arch.add_packed_f16x2(0x40003C00, 0x3C003C00))))[1, 1]()
    0x42004000
    """
    return isa.arith_f16x2(Uint32(src_a), Uint32(src_b), op="add")


@traced
def sub_packed_f16x2(src_a: Any, src_b: Any) -> Any:
    """Subtract the pair `src_b` from `src_a` of Float16, each a Uint32 word, rounded to nearest even. Any thread. PTX
    sub.f16x2, sm_80.

    >>> cute.simulate(lambda: print(hex(arch.sub_packed_f16x2(0x40003C00, 0x3C003C00))))[1, 1]()
    0x3c000000
    """
    return isa.arith_f16x2(Uint32(src_a), Uint32(src_b), op="sub")


@traced
def add_packed_bf16x2(src_a: Any, src_b: Any) -> Any:
    """Add the pairs `src_a` and `src_b` of BFloat16, each a Uint32 word, rounded to nearest even. Any thread. PTX
    add.bf16x2, sm_90.

    >>> cute.simulate(lambda: print(hex(arch.add_packed_bf16x2(0x40003F80, 0x3F803F80))))[1, 1]()
    0x40404000
    """
    return isa.arith_bf16x2(Uint32(src_a), Uint32(src_b), op="add")


@traced
def sub_packed_bf16x2(src_a: Any, src_b: Any) -> Any:
    """Subtract the pair `src_b` from `src_a` of BFloat16, each a Uint32 word, rounded to nearest even. Any thread. PTX
    sub.bf16x2, sm_90.

    >>> cute.simulate(lambda: print(hex(arch.sub_packed_bf16x2(0x40003F80, 0x3F803F80))))[1, 1]()
    0x3f800000
    """
    return isa.arith_bf16x2(Uint32(src_a), Uint32(src_b), op="sub")


@traced
def fma_packed_f16x2(src_a: Any, src_b: Any, src_c: Any) -> Any:
    """Compute `src_a` * `src_b` + `src_c` of pairs of Float16, each a Uint32 word, rounded once to nearest even. Any
    thread. PTX fma.f16x2, sm_80.

    >>> cute.simulate(lambda: print(hex(arch.fma_packed_f16x2(0x40003C00, 0x40004000, 0x3C003C00))))[1, 1]()
    0x45004200
    """
    return isa.fma_half2(Uint32(src_a), Uint32(src_b), Uint32(src_c), type="f16")


@traced
def fma_packed_bf16x2(src_a: Any, src_b: Any, src_c: Any) -> Any:
    """Compute `src_a` * `src_b` + `src_c` of pairs of BFloat16, each a Uint32 word, rounded once to nearest even. Any
    thread. PTX fma.bf16x2, sm_80.

    >>> cute.simulate(lambda: print(hex(arch.fma_packed_bf16x2(0x40003F80, 0x40004000, 0x3F803F80))))[1, 1]()
    0x40a04040
    """
    return isa.fma_half2(Uint32(src_a), Uint32(src_b), Uint32(src_c), type="bf16")


@traced
def add_packed_f32x2_f16x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """Add `src_a`, a word of two Float16, and `src_b`, a pair of Float32, to a pair of Float32, rounded to nearest
    even. Any thread. PTX add.f32x2.f16x2.f32x2, sm_107f.

    >>> b = (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(arch.add_packed_f32x2_f16x2_f32x2(0x40003C00, b)), arch="sm_107a")[1, 1]()
    (Float32(4.0), Float32(6.0))
    """
    return _mixed("add", "f16", src_a, src_b)


@traced
def add_packed_f16x2_f32x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """Add the pairs `src_a` and `src_b` of Float32 to a word of two Float16, rounded towards zero (subnormal numbers
    are zero). Any thread. PTX add.rz.f16x2.f32x2.f32x2, sm_107f.

    >>> a, b = (cute.Float32(1), cute.Float32(2)), (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(hex(arch.add_packed_f16x2_f32x2_f32x2(a, b))), arch="sm_107a")[1, 1]()
    0x46004400
    """
    return _narrow("add", "f16", src_a, src_b)


@traced
def sub_packed_f32x2_f16x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """Subtract `src_b`, a pair of Float32, from `src_a`, a word of two Float16, to a pair of Float32, rounded to
    nearest even. Any thread. PTX sub.f32x2.f16x2.f32x2, sm_107f.

    >>> b = (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(arch.sub_packed_f32x2_f16x2_f32x2(0x40003C00, b)), arch="sm_107a")[1, 1]()
    (Float32(-2.0), Float32(-2.0))
    """
    return _mixed("sub", "f16", src_a, src_b)


@traced
def sub_packed_f16x2_f32x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """Subtract the pair `src_b` of Float32 from `src_a` to a word of two Float16, rounded towards zero (subnormal
    numbers are zero). Any thread. PTX sub.rz.f16x2.f32x2.f32x2, sm_107f.

    >>> a, b = (cute.Float32(1), cute.Float32(2)), (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(hex(arch.sub_packed_f16x2_f32x2_f32x2(a, b))), arch="sm_107a")[1, 1]()
    0xc000c000
    """
    return _narrow("sub", "f16", src_a, src_b)


@traced
def fma_packed_f32x2_f16x2_f32x2_f32x2(src_a: Any, src_b: Any, src_c: Any) -> Any:
    """Compute `src_a` * `src_b` + `src_c` as a pair of Float32, rounded once: `src_a` is a word of two Float16, the
    others are pairs of Float32. Any thread. PTX fma.f32x2.f16x2.f32x2.f32x2, sm_107f.

    >>> b = (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(arch.fma_packed_f32x2_f16x2_f32x2_f32x2(0x40003C00, b, b)), arch="sm_107a")[1, 1]()
    (Float32(6.0), Float32(12.0))
    """
    return _fma_mixed("f16", src_a, src_b, src_c)


@traced
def add_packed_f32x2_bf16x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """Add `src_a`, a word of two BFloat16, and `src_b`, a pair of Float32, to a pair of Float32, rounded to nearest
    even. Any thread. PTX add.f32x2.bf16x2.f32x2, sm_107f.

    >>> b = (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(arch.add_packed_f32x2_bf16x2_f32x2(0x40003F80, b)), arch="sm_107a")[1, 1]()
    (Float32(4.0), Float32(6.0))
    """
    return _mixed("add", "bf16", src_a, src_b)


@traced
def add_packed_bf16x2_f32x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """Add the pairs `src_a` and `src_b` of Float32 to a word of two BFloat16, rounded towards zero. Any thread. PTX
    add.rz.bf16x2.f32x2.f32x2, sm_107f.

    >>> a, b = (cute.Float32(1), cute.Float32(2)), (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(hex(arch.add_packed_bf16x2_f32x2_f32x2(a, b))), arch="sm_107a")[1, 1]()
    0x40c04080
    """
    return _narrow("add", "bf16", src_a, src_b)


@traced
def sub_packed_f32x2_bf16x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """Subtract `src_b`, a pair of Float32, from `src_a`, a word of two BFloat16, to a pair of Float32, rounded to
    nearest even. Any thread. PTX sub.f32x2.bf16x2.f32x2, sm_107f.

    >>> b = (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(arch.sub_packed_f32x2_bf16x2_f32x2(0x40003F80, b)), arch="sm_107a")[1, 1]()
    (Float32(-2.0), Float32(-2.0))
    """
    return _mixed("sub", "bf16", src_a, src_b)


@traced
def sub_packed_bf16x2_f32x2_f32x2(src_a: Any, src_b: Any) -> Any:
    """Subtract the pair `src_b` of Float32 from `src_a` to a word of two BFloat16, rounded towards zero. Any thread.
    PTX sub.rz.bf16x2.f32x2.f32x2, sm_107f.

    >>> a, b = (cute.Float32(1), cute.Float32(2)), (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(hex(arch.sub_packed_bf16x2_f32x2_f32x2(a, b))), arch="sm_107a")[1, 1]()
    0xc000c000
    """
    return _narrow("sub", "bf16", src_a, src_b)


@traced
def fma_packed_f32x2_bf16x2_f32x2_f32x2(src_a: Any, src_b: Any, src_c: Any) -> Any:
    """Compute `src_a` * `src_b` + `src_c` as a pair of Float32, rounded once: `src_a` is a word of two BFloat16, the
    others are pairs of Float32. Any thread. PTX fma.f32x2.bf16x2.f32x2.f32x2, sm_107f.

    >>> b = (cute.Float32(3), cute.Float32(4))
    >>> cute.simulate(lambda: print(arch.fma_packed_f32x2_bf16x2_f32x2_f32x2(0x40003F80, b, b)), arch="sm_107a")[1, 1]()
    (Float32(6.0), Float32(12.0))
    """
    return _fma_mixed("bf16", src_a, src_b, src_c)


@traced
def exp2_packed_f16x2(src: Any) -> Any:
    """Compute 2 ** x of the two Float16 of the word `src`, to a relative 2**-9.9. Any thread. PTX ex2.approx.f16x2,
    sm_75.

    >>> cute.simulate(lambda: print(hex(arch.exp2_packed_f16x2(0x3C000000))))[1, 1]()
    0x40003c00
    """
    return isa.ex2_f16x2(Uint32(src))


@traced
def exp2_packed_bf16x2(src: Any) -> Any:
    """Compute 2 ** x of the two BFloat16 of the word `src`, to a relative 2**-7; subnormal numbers are zero. Any
    thread. PTX ex2.approx.ftz.bf16x2, sm_90.

    >>> cute.simulate(lambda: print(hex(arch.exp2_packed_bf16x2(0x3F800000))))[1, 1]()
    0x40003f80
    """
    return isa.ex2_bf16x2(Uint32(src))
