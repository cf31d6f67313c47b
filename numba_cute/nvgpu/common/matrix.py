# SPDX-License-Identifier: Apache-2.0
"""Matrix operations of warps and warpgroups: types, tile and fragments follow from the instruction's row."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from ...atoms.op import MmaOp, MmaTraits
from ...dtypes import DType, Float8E4M3FN, Float8E8M0FNU, Uint32
from ...isa.facts.fragment_layouts import MmaLayouts
from ...isa.form.cases import Block
from ...layout import make_layout
from ...seam import CuteError
from .by_row import TYPES, ByRow, Case, Choice, blocks, form, remembered
from .choices import OperandMajorMode, OperandSource

AB = Choice("ab_dtype", ("a_type", "b_type"), TYPES)
A, B = Choice("a_dtype", ("a_type",), TYPES), Choice("b_dtype", ("b_type",), TYPES)
ACC = Choice("acc_dtype", ("d_type",), TYPES)
SF = Choice("sf_type", ("sf",), {"ue8m0": Float8E8M0FNU, "ue4m3": Float8E4M3FN})
SHAPE = Choice("shape_mnk", ("m", "n", "k"), spread=True)
TILE = Choice("instruction_shape", ("m", "n", "k"), spread=True)
A_SRC = Choice("a_src", ("a_src",), {source.value: source for source in OperandSource})
_MAJORS = {0: OperandMajorMode.K, 1: OperandMajorMode.MN}
A_MAJOR, B_MAJOR = Choice("a_major_mode", ("trans_a",), _MAJORS), Choice("b_major_mode", ("trans_b",), _MAJORS)
SATURATE, SELECTOR = Choice("saturate", ("saturate",)), Choice("selector", ("selector",))


class _OnlyTile(functools.cached_property[Any]):
    """The tile of operations that have one alone, of the class and its objects; looked for when it is first asked for,
    as rows are read then."""

    def __init__(self) -> None:
        super().__init__(lambda op: _tiles(type(op))[0])

    def __get__(self, op: Any, cls: Any = None) -> Any:
        tiles = _tiles(cls)
        if len(tiles) != 1:
            raise AttributeError(f"{cls.__name__} has the tiles {tiles}: ask an operation that is made")
        return tiles[0]


class RowMma(ByRow, MmaOp):
    """Base of the matrix operations with rows. bits: of A's elements, where its rows have others' too (0: all)."""

    bits: ClassVar[int] = 0
    shape_mnk: Any
    sparsity: ClassVar[int] = 1
    """The number of elements of A along K of which one is stored."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        named = "shape_mnk" in cls.__annotations__ or any("shape_mnk" in vars(base) for base in cls.__mro__)
        if cls.rows and not named:
            cls.shape_mnk = _OnlyTile()

    @classmethod
    def _narrow(cls, block: Block) -> Block | None:
        left = super()._narrow(block)
        if left is None or cls.bits == 0:
            return left
        return left.within("a_type", {name for name, dtype in TYPES.items() if dtype.width == cls.bits})

    def _chosen(self, choice: Choice, legal: tuple[Any, ...]) -> Any:
        shape = super()._chosen(choice, legal)
        if choice is TILE and isinstance(shape, tuple) and len(shape) == 2:  # the types say what k is
            shape = (*shape, legal[0][2])
            object.__setattr__(self, choice.field, shape)
        return shape

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
def _tiles(cls: type[RowMma]) -> tuple[tuple[Any, ...], ...]:
    found = (tuple(case.get(k) for k in SHAPE.keys) for _, block in blocks(cls) for case in _ends(block))
    return tuple(dict.fromkeys(found))


def _ends(block: Block) -> tuple[Case, ...]:
    """The first and the last tile of a block's cases: the same where there is one alone."""
    shapes = {k: block.choices[k] for k in SHAPE.keys if k in block.choices}
    return tuple({k: values[at] for k, values in shapes.items()} for at in (0, -1))


@remembered
def mma_traits(layouts: Callable[..., MmaLayouts], *args: Any) -> MmaTraits:
    """The traits of the instruction whose fragments are `layouts(*args)`."""
    of = layouts(*args)
    return MmaTraits(of.shape_mnk, make_layout(of.threads), of.a, of.b, of.c, of.sparsity)


def metadata_word(op: MmaOp, words: dict[str, Any]) -> Any:
    """The word of metadata that a sparse operation needs, of the values of its atom's fields."""
    if words.get("metadata") is None:
        raise CuteError(f"gemm: {op!r} needs A's metadata; give tiled_mma.set(Field.METADATA, words)")
    return Uint32(words["metadata"])
