# SPDX-License-Identifier: Apache-2.0
"""Division by a number that many threads divide by: a multiplication and a shift, prepared on the host."""

from __future__ import annotations

from typing import Any

from .. import isa, seam
from ..dtypes import Int32, Scalar, Uint32, Uint64
from ..seam import CuteError, Int, Leaf, frozen, traced
from ..seam.ground.naming import shown
from ..seam.guards.kinds import is_integer

__all__ = ["FastDivmodDivisor", "FastDivmodDivisorV2", "fast_divmod_create_divisor", "fast_divmod_create_divisor_v2"]


@frozen
class FastDivmodDivisor:
    """A divisor that is prepared for fast division: `x // d`, `x % d` and `d.divmod(x)` for 0 <= x < 2**31.

    x // d == x * multiplier >> shift, where multiplier = ceil(2**shift / divisor) and shift = 31 + ceil(log2(divisor)):
    the multiplier is less than 1 too large by parts of 2**shift, which moves the quotient by less than 1 / divisor.

    divisor: as of `fast_divmod_create_divisor`; 0 too, by which nothing may be divided. multiplier, shift: computed.

    >>> d = cute.FastDivmodDivisor(cute.Int32(7))
    >>> cute.simulate(lambda: print(100 // d, 100 % d))[1, 1]()
    14 2
    """

    divisor: Int
    multiplier: Any = None
    shift: Any = None

    def __post_init__(self) -> None:
        if self.multiplier is None:
            vars(self).update(zip(("divisor", "multiplier", "shift"), _prepared("FastDivmodDivisor", self.divisor, 0)))

    def divmod(self, dividend: Int) -> tuple[Any, Any]:
        """Compute (dividend // divisor, dividend % divisor) as Int32, for 0 <= `dividend` < 2**31."""
        if isinstance(dividend, int) and not 0 <= dividend < 2**31:
            raise CuteError(f"divmod: dividend {dividend} is not in [0, 2**31)")
        if type(self.divisor) is int and self.divisor == 0:
            raise CuteError("divmod: the divisor is 0")
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
    """Prepare `divisor`, from 1 to 2**31 - 1, for fast division: on the host, for a kernel, or in a kernel, where it
    costs a division.

    divisor: an int (static), or on the host Int32(n) (known at run time, so that the kernel need not be compiled
    again), or a kernel's number.

    >>> d = cute.fast_divmod_create_divisor(cute.Int32(7))
    >>> cute.simulate(lambda: print(100 // d, 100 % d))[1, 1]()
    14 2
    """
    return FastDivmodDivisor(*_prepared("fast_divmod_create_divisor", divisor, 1))


def _prepared(what: str, divisor: Any, least: int) -> tuple[Any, Any, Any]:
    """Return a divisor with its multiplier and shift. what: who asks. least: the least divisor."""
    of_run_time = isinstance(divisor, Leaf) and not isinstance(divisor, Scalar)
    if of_run_time and not seam.current().type_of(divisor).is_integer:
        raise CuteError(f"{what}: a divisor of {seam.current().type_of(divisor)} is not an integer")
    if not is_integer(divisor):
        raise CuteError(f"{what}: divisor {shown(divisor)} is not an integer")
    if of_run_time:
        n, one = Int32(divisor), Uint64(1)
        shift = Uint32(63) - Uint32(isa.clz(Uint32(n - 1), width=32))
        wide = Uint64(Uint32(n))
        return n, Uint32(((one << Uint64(shift)) + (wide - one)) // wide), shift
    known = int(divisor)
    if not least <= known < 2**31:
        raise CuteError(f"{what}: divisor {known} is not in [{least}, 2**31)")
    shift = 31 + (known - 1).bit_length() if known else 0
    multiplier = -(-(1 << shift) // known) if known else 0
    if isinstance(divisor, Scalar):
        return Int32(known), Uint32(multiplier), Uint32(shift)
    return known, multiplier, shift


FastDivmodDivisorV2 = FastDivmodDivisor
"""The CuTe DSL's newer name of the same."""
fast_divmod_create_divisor_v2 = fast_divmod_create_divisor
