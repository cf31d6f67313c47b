# SPDX-License-Identifier: Apache-2.0
"""Division by a number that many threads divide by: a multiplication and a shift, prepared on the host."""

from __future__ import annotations

from typing import Any

from .. import dtypes, seam
from ..dtypes import Int32, Scalar, Uint32, Uint64
from ..seam import CuteError, Int, static, traced

__all__ = ["FastDivmodDivisor", "FastDivmodDivisorV2", "fast_divmod_create_divisor", "fast_divmod_create_divisor_v2"]


@static
class FastDivmodDivisor:
    """A divisor made by `fast_divmod_create_divisor`: `x // d`, `x % d` and `d.divmod(x)` for 0 <= x < 2**31.

    x // d == x * multiplier >> shift, where multiplier = ceil(2**shift / divisor) and shift = 31 + ceil(log2(divisor)):
    the multiplier is less than 1 too large by parts of 2**shift, which moves the quotient by less than 1 / divisor.
    """

    divisor: Int
    multiplier: Int
    shift: Int

    def divmod(self, dividend: Int) -> tuple[Any, Any]:
        """Compute (dividend // divisor, dividend % divisor) as Int32, for 0 <= `dividend` < 2**31."""
        if isinstance(dividend, int) and not 0 <= dividend < 2**31:
            raise CuteError(f"divmod: dividend {dividend} is not in [0, 2**31)")
        if seam.current_or(None) is None:
            return divmod(int(seam.known(dividend)), int(seam.known(self.divisor)))
        wide = Uint64(Uint32(dividend)) * Uint64(self.multiplier)
        quotient = Int32(wide >> Uint64(self.shift))
        return quotient, Int32(dividend) - quotient * Int32(self.divisor)

    def __rfloordiv__(self, dividend: Int) -> Any:
        return self.divmod(dividend)[0]

    def __rmod__(self, dividend: Int) -> Any:
        return self.divmod(dividend)[1]

    def __rdivmod__(self, dividend: Int) -> tuple[Any, Any]:
        return self.divmod(dividend)


@traced
def fast_divmod_create_divisor(divisor: Int) -> FastDivmodDivisor:
    """Prepare `divisor`, from 1 to 2**31 - 1, for fast division; pass the result to the kernel.

    divisor: an int (static), or on the host Int32(n) (known at run time, so that the kernel need not be compiled
    again).
    """
    if not isinstance(divisor, (int, Scalar)):
        raise CuteError(
            "fast_divmod_create_divisor: divisor is known only at run time; make it on the host and pass it"
        )
    n = int(divisor)
    if not 1 <= n < 2**31:
        raise CuteError(f"fast_divmod_create_divisor: divisor {n} is not in [1, 2**31)")
    shift = 31 + (n - 1).bit_length()
    multiplier = -(-(1 << shift) // n)
    if isinstance(divisor, Scalar):
        return FastDivmodDivisor(dtypes.Int32(n), dtypes.Uint32(multiplier), dtypes.Uint32(shift))
    return FastDivmodDivisor(n, multiplier, shift)


FastDivmodDivisorV2 = FastDivmodDivisor
"""The CuTe DSL's newer name of the same."""
fast_divmod_create_divisor_v2 = fast_divmod_create_divisor
