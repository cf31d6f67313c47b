# SPDX-License-Identifier: Apache-2.0
"""Matrix operations of warps and warpgroups: types, tile and fragments follow from the instruction's row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...atoms.op import MmaOp, MmaTraits
from ...dtypes import DType, Float8E4M3FN, Float8E8M0FNU, Uint32
from ...isa.facts.fragment_layouts import MmaLayouts
from ...layout import make_layout
from ...seam import CuteError
from .by_row import TYPES, ByRow, Case, Choice, form, forms, remembered

AB = Choice("ab_dtype", ("a_type", "b_type"), TYPES)
A, B = Choice("a_dtype", ("a_type",), TYPES), Choice("b_dtype", ("b_type",), TYPES)
ACC = Choice("acc_dtype", ("d_type",), TYPES)
SF = Choice("sf_type", ("sf",), {"ue8m0": Float8E8M0FNU, "ue4m3": Float8E4M3FN})
SHAPE = Choice("shape_mnk", ("m", "n", "k"), spread=True)
SATURATE, SELECTOR = Choice("saturate", ("saturate",)), Choice("selector", ("selector",))


class RowMma(ByRow, MmaOp):
    """Base of the matrix operations with rows. bits: of A's elements, where its rows have others' too (0: all)."""

    bits: ClassVar[int] = 0
    shape_mnk: Any
    sparsity: ClassVar[int] = 1
    """Of how many elements of A along K one is stored."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        tiles = dict.fromkeys(SHAPE.of(case) for _, case in forms(cls)) if cls.rows else ()
        if len(tiles) == 1 and "shape_mnk" not in cls.__annotations__:
            cls.shape_mnk = next(iter(tiles))[0]  # the only one there is

    @classmethod
    def _takes(cls, case: Case) -> bool:
        return super()._takes(case) and cls.bits in (0, TYPES[case["a_type"]].width)

    @property
    def a_type(self) -> DType:
        return TYPES[form(self)[1]["a_type"]]

    @property
    def b_type(self) -> DType:
        return TYPES[form(self)[1]["b_type"]]

    @property
    def accumulator(self) -> DType:
        return TYPES[form(self)[1]["d_type"]]


@remembered
def mma_traits(layouts: Callable[..., MmaLayouts], *args: Any) -> MmaTraits:
    """The traits of the instruction whose fragments are `layouts(*args)`."""
    of = layouts(*args)
    return MmaTraits(of.shape_mnk, make_layout(of.threads), of.a, of.b, of.c, of.sparsity)


def metadata_word(op: MmaOp, words: dict[str, Any]) -> Any:
    """The word of metadata that a sparse operation needs, of the values of its atom's fields."""
    if words["metadata"] is None:
        raise CuteError(f"gemm: {op!r} needs A's metadata; give tiled_mma.set(Field.METADATA, words)")
    return Uint32(words["metadata"])
