# SPDX-License-Identifier: Apache-2.0
"""The types of lists where a function gets one, gives one back, or an object or a tuple holds one: laid out as tuples,
and no tuples to Python. Such a list is what it was when it was handed on: it does not change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ground.numba_cuda import models, register_model, types


class ListOf(types.Tuple):
    """A list of items of several types."""

    def __new__(cls, items: Any) -> ListOf:
        return object.__new__(cls)

    def __init__(self, items: Any) -> None:
        super().__init__(items)
        self.name = f"list({', '.join(map(str, self.types))})"

    @property
    def key(self) -> Any:
        return (ListOf, self.types)

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        """Join two lists of one length."""
        joined = super().unify(typingctx, other) if is_list(other) else None
        return None if joined is None else list_type(list(joined))


class UniListOf(types.UniTuple):
    """A list of items of one type."""

    def __init__(self, dtype: types.Type, count: int) -> None:
        super().__init__(dtype, count)
        self.name = f"list({dtype} x {count})"

    @property
    def key(self) -> Any:
        return (UniListOf, self.dtype, self.count)

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        """Join two lists of one length."""
        joined = super().unify(typingctx, other) if is_list(other) else None
        return None if joined is None else list_type(list(joined))


register_model(ListOf)(models.TupleModel)
register_model(UniListOf)(models.UniTupleModel)


def list_type(items: Sequence[types.Type]) -> types.Type:
    """Return the type of a list of items of these types."""
    if items and all(ty == items[0] for ty in items):
        return UniListOf(items[0], len(items))
    return ListOf(tuple(items))


def is_list(ty: Any) -> bool:
    """Say whether a Numba type is a list's."""
    return isinstance(ty, (ListOf, UniListOf))


def alike(ty: types.BaseTuple, items: Sequence[types.Type]) -> types.Type:
    """Return the type of a tuple of these items, or of a list if `ty` is a list's."""
    return list_type(items) if is_list(ty) else types.BaseTuple.from_types(items)
