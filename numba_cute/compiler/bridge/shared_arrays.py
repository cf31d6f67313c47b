# SPDX-License-Identifier: Apache-2.0
"""The array that `cuda.shared.array` gives in functions of this library: Numba's, at a known place.

A tensor that is made of it, or of a part of it, is in shared memory: for TMA, mbarriers and LDS. The array's own
extents and alignment are known too; those of its parts only at run time. For Numba it is an array like any other, but
that a device function may return it: it is there as long as the block.
"""

from __future__ import annotations

import math
from typing import Any

from ..ground.builder import Builder, Target
from ..ground.numba import cuda
from ..ground.numba_cuda import lower_cast, models, register_model, types


class SharedArray(types.Array):
    """The type of an array in shared memory. extents: of the array itself; None of its parts, and of dynamic shared
    memory. alignment: that of the first element, in bytes; 0 where nothing is known besides the elements' own."""

    def __init__(
        self, dtype: Any, ndim: int, layout: str, readonly: bool = False, aligned: bool = True,
        extents: tuple[int, ...] | None = None, alignment: int = 0,
    ) -> None:  # fmt: skip
        self.extents, self.alignment = extents, alignment
        kind = ("" if not readonly else "readonly ") + ("" if aligned else "unaligned ")
        known = f", {extents}" if extents is not None else ""
        name = f"shared {kind}array({dtype}, {ndim}d, {layout}{known}{f', align {alignment}' if alignment else ''})"
        super().__init__(dtype, ndim, layout, readonly=readonly, name=name, aligned=aligned)

    @property
    def key(self) -> Any:
        """Return the key that tells this type from others."""
        return (*super().key, self.extents, self.alignment)

    @property
    def mangling_args(self) -> Any:
        """Return the arguments that name a function for this type."""
        name, args = super().mangling_args
        return name, [*args, "x".join(map(str, self.extents or ())), self.alignment]

    @property
    def strides(self) -> tuple[int, ...] | None:
        """The strides in elements of the array itself; None where its extents are not known."""
        if self.extents is None:
            return None
        return tuple(math.prod(self.extents[i + 1 :]) for i in range(self.ndim))

    def copy(self, dtype: Any = None, ndim: Any = None, layout: Any = None, readonly: Any = None) -> SharedArray:
        """Return the type of a part, or of another view: it lies in shared memory too."""
        like = super().copy(dtype, ndim, layout, readonly)
        return SharedArray(like.dtype, like.ndim, like.layout, not like.mutable, like.aligned)

    def unify(self, typingctx: Any, other: Any) -> Any:
        """Return the type of what is one of two arrays: in shared memory if both are."""
        both = super().unify(typingctx, other)
        if both is None or not isinstance(other, SharedArray):
            return both
        own = (self.extents, self.alignment) == (other.extents, other.alignment)
        known = (self.extents, self.alignment) if own else (None, 0)
        return SharedArray(both.dtype, both.ndim, both.layout, not both.mutable, both.aligned, *known)


register_model(SharedArray)(models.ArrayModel)


@lower_cast(SharedArray, types.Array)
def _as_any_array(context: Target, builder: Builder, fromty: Any, toty: Any, value: Any) -> Any:
    """Both have the address of any memory in them."""
    return value


def in_shared_memory(func: Any, signature: Any) -> Any:
    """Return the signature of a call; of `cuda.shared.array`, with the type of what it gives as it is here."""
    if signature is None or getattr(func, "typing_key", None) is not cuda.shared.array:
        return signature
    made, (shape, _, *rest) = signature.return_type, signature.args
    extents = tuple(x.literal_value for x in shape) if isinstance(shape, types.BaseTuple) else (shape.literal_value,)
    alignment = rest[0].literal_value if rest and isinstance(rest[0], types.IntegerLiteral) else 0
    own = extents if all(n > 0 for n in extents) else None
    return signature.replace(return_type=SharedArray(made.dtype, made.ndim, "C", extents=own, alignment=alignment))
