# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of single floats where an instruction says more than an operator. Any thread."""

from __future__ import annotations

from typing import Any

from .. import isa
from ..dtypes import BFloat16, DType, Float16, Float32, Uint16
from ..seam import CuteError, Number, traced
from ..seam.guards.messages import how_static
from ..tensor.ssa import bitcast

__all__ = ["exp2", "fma_bf16", "fma_f16", "fmax", "fmin", "rcp_approx"]


def _extreme(op: str, a: Any, b: Any, abs: Any, nan: Any, ftz: Any) -> Any:
    if not all(isinstance(x, bool) for x in (abs, nan, ftz)):
        raise CuteError(
            f"f{op}: abs {abs!r}, nan {nan!r} and ftz {ftz!r} must be static: True or False{how_static(ftz)}"
        )
    return isa.extreme_f32(Float32(a), Float32(b), op=op, xorsign=abs, nan=nan, ftz=ftz)


@traced
def fmax(a: Number, b: Number, abs: bool = False, nan: bool = False, ftz: bool = False) -> Any:
    """Return the greater of the Float32 `a` and `b`. Any thread. PTX max.f32, sm_70.

    abs: take the greater magnitude, with the exclusive or of both signs (sm_86). nan: give NaN if one is NaN (sm_80),
    instead of the number. ftz: treat subnormal numbers as zero. All three are static.

    >>> cute.simulate(lambda: print(arch.fmax(cute.Float32(2), cute.Float32(3))))[1, 1]()
    3.0
    """
    return _extreme("max", a, b, abs, nan, ftz)


@traced
def fmin(a: Number, b: Number, abs: bool = False, nan: bool = False, ftz: bool = False) -> Any:
    """Return the smaller of the Float32 `a` and `b`. Any thread. abs, nan, ftz: as for `fmax`. PTX min.f32, sm_70.

    >>> cute.simulate(lambda: print(arch.fmin(cute.Float32(2), cute.Float32(3))))[1, 1]()
    2.0
    """
    return _extreme("min", a, b, abs, nan, ftz)


@traced
def rcp_approx(a: Number) -> Any:
    """Compute 1 / `a` of a Float32, to 1 ulp; subnormal numbers are zero. Any thread. PTX rcp.approx.ftz.f32, sm_70.

    >>> cute.simulate(lambda: print(arch.rcp_approx(cute.Float32(4))))[1, 1]()
    0.25
    """
    return isa.rcp_approx(Float32(a))


@traced
def exp2(a: Number) -> Any:
    """Compute 2 ** `a` of a Float32, to 2 ulp; subnormal numbers are zero. Any thread. PTX ex2.approx.ftz.f32,
    sm_70.

    >>> cute.simulate(lambda: print(arch.exp2(cute.Float32(3))))[1, 1]()
    8.0
    """
    return isa.ex2_approx(Float32(a))


def _fma(a: Any, b: Any, c: Any, dtype: DType) -> Any:
    words = [bitcast(dtype(x), dtype, Uint16) for x in (a, b, c)]
    return bitcast(isa.fma_half(*words, type=dtype.ptx), Uint16, dtype)


@traced
def fma_f16(a: Number, b: Number, c: Number) -> Any:
    """Compute `a` * `b` + `c` of Float16, rounded once to nearest even. Any thread. PTX fma.rn.f16, sm_80.

    >>> cute.simulate(lambda: print(arch.fma_f16(cute.Float16(2), cute.Float16(3), cute.Float16(1))))[1, 1]()
    7.0
    """
    return _fma(a, b, c, Float16)


@traced
def fma_bf16(a: Number, b: Number, c: Number) -> Any:
    """Compute `a` * `b` + `c` of BFloat16, rounded once to nearest even. Any thread. PTX fma.rn.bf16, sm_80.

    >>> cute.simulate(lambda: print(arch.fma_bf16(cute.BFloat16(2), cute.BFloat16(3), cute.BFloat16(1))))[1, 1]()
    7.0
    """
    return _fma(a, b, c, BFloat16)
