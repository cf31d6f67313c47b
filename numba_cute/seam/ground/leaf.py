# SPDX-License-Identifier: Apache-2.0
"""Values known only at run time, and the divisors that are known of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from .backend import current
from .error import CuteError
from .names import missing


class Leaf:
    """A value known only at run time. Subclasses (the compiler's and the simulator's) give it operators; a plain int is
    static.

    divisor: an integer that is known to divide it (1: nothing is known). kept: equal leaves are one object, so that
    results computed from it may be remembered. exact: it is computed with as an int of any size.

    >>> def kernel(n):
    ...     print(isinstance(n, cute.IntValue))
    >>> cute.simulate(kernel)[1, 1](np.int32(3))
    True
    """

    __slots__ = ()
    divisor: int = 1
    kept: bool = False
    exact: bool = False

    def known(self) -> Any:
        """Return the value as an int or the like, if whoever runs the code knows it (the simulator); else itself."""
        return self

    def _natural(self, op: str, a: Any, b: Any) -> Any:
        """Apply "floordiv" or "mod" to two integers, one of them this one, neither of which is negative."""
        return a // b if op == "floordiv" else a % b

    def _natural_up(self, a: Any, b: Any) -> Any:
        """Divide such two, and round up: as unsigned numbers their sum stays in their type."""
        return self._natural("floordiv", a + (b + -1), b)

    def _beyond(self, coord: Any, extent: Any) -> bool:
        """Tell whether a coordinate is known to lie beyond an extent, one of them this one."""
        return False

    def to(self, dtype: Any) -> Any:
        """Convert to an element type, as `dtype(self)` does."""
        if not hasattr(dtype, "__cute_element__"):
            try:
                text = f"{dtype!r:.60}"
            except Exception:  # an object that cannot be written
                text = f"<{type(dtype).__name__}>"
            raise CuteError(f"to({text}): not an element type; use one like cute.Float32")
        return dtype(self)

    def ir_value(self, *, loc: Any = None, ip: Any = None) -> Any:
        """Return the value itself, where files of the CuTe DSL ask for what its compiler has of it. loc, ip: taken."""
        return self

    if not TYPE_CHECKING:  # to a type checker element types are classes, whose `width` is a number
        __getattr__ = missing

        @property
        def width(self) -> int:
            """The bits of its type, as of an element type."""
            own = getattr(self, "dtype", None)  # of a number of the host's
            return int((own or current().type_of(self)).width)

    if TYPE_CHECKING:  # each subclass that is computed with has these
        # fmt: off
        def __add__(self, other: Any, /) -> Any: ...
        def __radd__(self, other: Any, /) -> Any: ...
        def __sub__(self, other: Any, /) -> Any: ...
        def __rsub__(self, other: Any, /) -> Any: ...
        def __mul__(self, other: Any, /) -> Any: ...
        def __rmul__(self, other: Any, /) -> Any: ...
        def __truediv__(self, other: Any, /) -> Any: ...
        def __rtruediv__(self, other: Any, /) -> Any: ...
        def __floordiv__(self, other: Any, /) -> Any: ...
        def __rfloordiv__(self, other: Any, /) -> Any: ...
        def __mod__(self, other: Any, /) -> Any: ...
        def __rmod__(self, other: Any, /) -> Any: ...
        def __and__(self, other: Any, /) -> Any: ...
        def __rand__(self, other: Any, /) -> Any: ...
        def __or__(self, other: Any, /) -> Any: ...
        def __ror__(self, other: Any, /) -> Any: ...
        def __xor__(self, other: Any, /) -> Any: ...
        def __rxor__(self, other: Any, /) -> Any: ...
        def __lshift__(self, other: Any, /) -> Any: ...
        def __rlshift__(self, other: Any, /) -> Any: ...
        def __rshift__(self, other: Any, /) -> Any: ...
        def __rrshift__(self, other: Any, /) -> Any: ...
        def __neg__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __lt__(self, other: Any, /) -> Any: ...
        def __le__(self, other: Any, /) -> Any: ...
        def __gt__(self, other: Any, /) -> Any: ...
        def __ge__(self, other: Any, /) -> Any: ...
        # fmt: on


Int: TypeAlias = int | Leaf
"""An integer, static or known only at run time."""
Number: TypeAlias = float | Leaf
"""A number, static or known only at run time."""


def known(x: Any) -> Any:
    """Replace the leaves of `x`, which may be a tuple, by their values where these are known: for addresses, which need
    no types."""
    if type(x) is int:
        return x
    if isinstance(x, Leaf):
        return x.known()
    if not isinstance(x, tuple):
        return x
    out: list[Any] | None = None
    for i, y in enumerate(x):
        if type(y) is int or y is None:
            continue
        found = known(y)
        if found is not y:
            out = list(x) if out is None else out
            out[i] = found
    return x if out is None else tuple(out)


def quotient(a: Any, b: Any) -> Any:
    """Divide what is known not to be negative, as coordinates and extents are, by such: compiled code divides unsigned,
    and the simulator checks it. `//` of run-time numbers rounds as Python's."""
    leaf = a if isinstance(a, Leaf) else b
    return leaf._natural("floordiv", a, b) if isinstance(leaf, Leaf) else a // b


def remainder(a: Any, b: Any) -> Any:
    """Return the remainder of `quotient`."""
    leaf = a if isinstance(a, Leaf) else b
    return leaf._natural("mod", a, b) if isinstance(leaf, Leaf) else a % b


def beyond(coord: Any, extent: Any) -> bool:
    """Tell whether a coordinate is known to lie beyond an extent: below 0, or not below it."""
    if type(coord) is int and type(extent) is int:
        return not 0 <= coord < extent
    leaf = coord if isinstance(coord, Leaf) else extent
    return isinstance(leaf, Leaf) and leaf._beyond(coord, extent)


def quotient_up(a: Any, b: Any) -> Any:
    """Return the `quotient` of two numbers, rounded up."""
    leaf = a if isinstance(a, Leaf) else b
    return leaf._natural_up(a, b) if isinstance(leaf, Leaf) else -(-a // b)


def is_exact(x: Any) -> bool:
    """Return whether `x` is computed with as an int of any size: a static one, or one that the simulator knows."""
    return not isinstance(x, Leaf) or x.exact


def divisor(x: Any) -> int:
    """Return a number that is known to divide `x`: a static integer's magnitude (0 for 0, which everything divides), a
    leaf's `divisor`, 1 for anything else."""
    if type(x) is int:
        return abs(x)
    return x.divisor if isinstance(x, Leaf) else 1


_MOST = 1 << 30  # larger divisors prove nothing more, and a product of them may not fit the value's type


def divisor_of(op: str, a: Any, b: Any) -> int:
    """Return a number that divides the result of an integer operation. op: its name in `operator`, or udiv or urem."""
    x, y = divisor(a), divisor(b)
    if op in ("add", "sub"):
        found = math.gcd(x, y)
    elif op == "mul":
        found = x * y
    elif op in ("floordiv", "udiv"):
        found = x // b if type(b) is int and b > 0 and x % b == 0 else 1
    elif op in ("mod", "urem"):
        found = math.gcd(x, y)
    elif op == "lshift":
        found = x << b if type(b) is int and 0 <= b < 32 else x
    elif op == "rshift":
        found = x >> b if type(b) is int and 0 <= b < 32 and x % (1 << b) == 0 else 1
    elif op == "and_":
        found = max(x & -x, y & -y)
    elif op in ("or_", "xor"):
        found = math.gcd(x & -x, y & -y)
    else:
        found = 1
    return (found if found <= _MOST else math.gcd(found, _MOST)) or 1
