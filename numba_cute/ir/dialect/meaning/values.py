# SPDX-License-Identifier: Apache-2.0
"""Values with their kinds, and what many operations do with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ....layout.int_tuple import weakly_congruent
from ....layout.layout import ComposedLayout, Layout
from ....seam import CuteError
from ..checked import Refused, is_static, is_trivial
from ..notation import write


class Value(NamedTuple):
    """A value of a kind of the dialect."""

    kind: str
    value: Any

    def __str__(self) -> str:
        return f"'!cute.{self.kind}<\"{write(self.kind, self.value)}\">'"

    @property
    def is_static(self) -> bool:
        """Say whether all of it is known at compile time."""
        return is_static(self.value)

    @property
    def layout(self) -> Layout:
        """The plain layout that gives a layout its domain."""
        return self.value.outer if isinstance(self.value, ComposedLayout) else self.value  # type: ignore[no-any-return]

    def replaced(self, value: Any) -> Value:
        """Another value of this kind; a composed layout that is its outer layout becomes a layout."""
        if isinstance(value, ComposedLayout) and is_trivial(value):
            return Value("layout", value.outer)
        return Value(self.kind, value)


Attributes = Mapping[str, Any]
Function = Callable[[Sequence[Value], Attributes], list[Value]]


def rank(x: Any) -> int:
    """Count the modes of a tuple, or of a layout's shape; 1 for a leaf."""
    if isinstance(x, (Layout, ComposedLayout)):
        x = x.shape
    return len(x) if isinstance(x, tuple) else 1


def modes_of(x: Any) -> Any:
    """The tuple that nests the modes of a value: the shape of a layout, anything else as it is."""
    return x.shape if isinstance(x, (Layout, ComposedLayout)) else x


def computed(what: str, make: Callable[[], Any]) -> Any:
    """Return what the layout algebra gives; where it refuses, refuse in its words. what: what it was asked for."""
    try:
        return make()
    except Refused:
        raise
    except CuteError as e:
        raise Refused(f"there is no {what}: {e}") from None
    except ZeroDivisionError:
        raise Refused(f"there is no {what}: a division by zero") from None
    except RecursionError:
        raise Refused(f"there is no {what}: the values are nested too deep") from None


def in_shape(coord: Any, shape: Any) -> bool:
    """Return whether `shape` is nested as `coord`, or deeper."""
    return bool(weakly_congruent(coord, shape))


def one(make: Callable[[Sequence[Value], Attributes], Value]) -> Function:
    """Make the function of an operation of one result."""
    return lambda operands, attributes: [make(operands, attributes)]


__all__ = ["Attributes", "Function", "Refused", "Value", "computed", "in_shape", "modes_of", "one", "rank"]
