# SPDX-License-Identifier: Apache-2.0
"""Element types as classes: in the CuTe DSL they are, and files ask `issubclass(dtype, Numeric)`."""

from __future__ import annotations

from typing import Any

from .names import Speaking, missing


class Element(Speaking):
    """The base of element types, which have a name as classes have."""

    def __getattr__(self, name: str) -> Any:
        return vars(self)["name"] if name in ("__name__", "__qualname__") else missing(self, name)


class OfElements(type):
    """The class of `DType`, of which element types count as subclasses."""

    def __subclasscheck__(cls, other: Any) -> bool:
        return isinstance(other, cls) or super().__subclasscheck__(other)


class OfKind(type):
    """The class of what names some element types: `isinstance` and `issubclass` say which."""

    kinds: tuple[str, ...]

    @property
    def zero(cls) -> Any:
        """The number 0, of no certain type: 0.0 of floats."""
        return 0.0 if cls.kinds == ("float",) else 0

    def __instancecheck__(cls, other: Any) -> bool:
        return hasattr(type(other), "__cute_element__") and other.kind in cls.kinds

    def __subclasscheck__(cls, other: Any) -> bool:
        element = hasattr(type(other), "__cute_element__")
        return isinstance(other, cls) or not element and super().__subclasscheck__(other)
