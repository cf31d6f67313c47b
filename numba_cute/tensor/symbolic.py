# SPDX-License-Identifier: Apache-2.0
"""Promises about values that are known only at run time: that they are multiples of something."""

from __future__ import annotations

import functools
import math
from typing import Any

from .. import seam
from ..dtypes import Int32, Int64, Scalar
from ..seam import CuteError, traced
from ..seam.ground.naming import shown
from ..seam.guards import element_values
from ..seam.guards.kinds import is_integer
from ..seam.guards.messages import how_static

__all__ = ["IntValue", "SymInt", "assume", "sym_int", "sym_int32", "sym_int64"]


IntValue = seam.Leaf
"""A value known only at run time, for `isinstance`: a static integer is an int."""


@traced
def assume(src: Any, divby: int = 1) -> Any:
    """Promise that `src`, an integer or a tuple of them, is a multiple of `divby` (static, at least 1), and return it.

    Copies then prove wider accesses, and layouts divide where they otherwise could not. Where the number is known (on
    the host, in the simulator, a static int) a broken promise is an error; a GPU does not look, and computes wrongly.

    >>> cute.assume(cute.Int32(32), divby=8)
    Int32(32)
    """
    if type(divby) is not int or divby < 1:
        raise CuteError(f"assume: divby {shown(divby)} must be a static integer of at least 1{how_static(divby)}")
    if isinstance(src, tuple):
        return tuple(assume(x, divby) for x in src)
    if isinstance(src, seam.Leaf):
        assumed = getattr(src, "assumed", None)
        if assumed is None:
            raise CuteError(f"assume: src {shown(src)} is not an integer")
        return assumed(divby)
    if not is_integer(src):
        raise CuteError(f"assume: src {shown(src)} is not an integer")
    if int(src) % divby:
        raise CuteError(f"assume: src is {src}, which is not a multiple of divby={divby}")
    return src


class SymInt(Scalar):
    """A run-time integer with no value yet, for the shapes and strides of `make_fake_tensor`.

    width: 32 or 64 bits. divisibility: a number that will divide it. symbol: a name, for `repr` alone.

    >>> n = cute.SymInt(divisibility=8, symbol="n")
    >>> n
    n{div=8}
    >>> cute.runtime.make_fake_tensor(cute.Float16, (n, 64), stride=(64, 1))
    Tensor(ptr<Float16, gmem, align 2>, (?{div=8},64):(64,1))
    """

    __slots__ = ("symbol",)
    symbol: str | None

    def __init__(self, width: int = 32, *, divisibility: int = 1, symbol: str | None = None) -> None:
        if width not in (32, 64):
            raise CuteError(f"SymInt: width {shown(width)} bits: it is 32 or 64")
        if type(divisibility) is not int or divisibility < 1:
            raise CuteError(f"SymInt: divisibility {shown(divisibility)} must be an integer of at least 1")
        if symbol is not None and not isinstance(symbol, str):
            raise CuteError(f"SymInt: symbol {shown(symbol)} must be a text or None")
        super().__init__(Int32 if width == 32 else Int64, divisibility, divisibility)
        object.__setattr__(self, "symbol", symbol)

    def __reduce__(self) -> Any:
        return functools.partial(SymInt, divisibility=self.divisor, symbol=self.symbol), (self.width,)

    def assumed(self, divisor: int) -> SymInt:
        """Return the same integer, which `divisor` will divide too: it has no value yet that could break the promise.
        Raises CuteError for what is no positive integer."""
        element_values.check_divisor(divisor)
        return SymInt(self.width, divisibility=math.lcm(self.divisor, divisor), symbol=self.symbol)

    def checked(self, simulated: bool = False) -> Any:
        """Refuse to be a value: a fake tensor cannot be launched with. simulated: as of `Scalar.checked`."""
        raise CuteError(f"{self!r} has no value: a fake tensor is for compiling, and cannot be launched with")

    @property
    def width(self) -> int:
        """The bits of the integer."""
        return self.dtype.width

    @property
    def divisibility(self) -> int:
        """The number that will divide it."""
        return self.divisor

    def __repr__(self) -> str:
        known = f"{{div={self.divisor}}}" if self.divisor > 1 else ""
        return (self.symbol or "?") + known


def sym_int(width: int = 32, *, divisibility: int = 1, symbol: str | None = None) -> SymInt:
    """Make a `SymInt` of `width` bits (32 or 64), a multiple of `divisibility`, called `symbol`.

    >>> cute.sym_int(divisibility=8)
    ?{div=8}
    """
    return SymInt(width, divisibility=divisibility, symbol=symbol)


def sym_int32(divisibility: int = 1, *, symbol: str | None = None) -> SymInt:
    """Make a `SymInt` of 32 bits, a multiple of `divisibility`, called `symbol`.

    >>> cute.sym_int32(4)
    ?{div=4}
    """
    return SymInt(32, divisibility=divisibility, symbol=symbol)


def sym_int64(divisibility: int = 1, *, symbol: str | None = None) -> SymInt:
    """Make a `SymInt` of 64 bits, a multiple of `divisibility`, called `symbol`.

    >>> cute.sym_int64(4)
    ?{div=4}
    """
    return SymInt(64, divisibility=divisibility, symbol=symbol)
