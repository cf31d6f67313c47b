# SPDX-License-Identifier: Apache-2.0
"""The operations of the dialect: what each takes, gives and is written as. One line each; what it computes stands in
`meaning/`."""

from __future__ import annotations

from dataclasses import dataclass

INTEGERS = ("i32", "i64", "int_tuple of depth 0")
TUPLES = ("shape", "stride", "coord", "int_tuple")
LAYOUTS = ("layout", "composed_layout")
ANY = (*TUPLES, "tile", *LAYOUTS)
EVERY = (*ANY, "swizzle")
SLICED = (*TUPLES, *LAYOUTS)
ARITHMETIC = ("int_tuple", "shape")
TILERS = ("layout", "tile", "shape")


@dataclass(frozen=True)
class Part:
    """An operand or a result. kinds: of the types that it may have. short: its type is written without `!cute.kind`
    where the operation's own syntax tells it. optional: it may be left out."""

    kinds: tuple[str, ...]
    short: bool = False
    optional: bool = False
    many: bool = False


@dataclass(frozen=True)
class Definition:
    """An operation. form: how its types follow: "functional" `(T, U) -> R`, "arrow" `T -> R`, "operands" `T, U`, with
    the results inferred, "result" `T`. attributes: their names with their forms, "i32", "path" (an array of i32, which
    may be left out), "modes" (one that may not) or "flag". inferred: the operands' types give the results'."""

    name: str
    operands: tuple[Part, ...]
    results: tuple[Part, ...]
    form: str = "functional"
    attributes: tuple[tuple[str, str], ...] = ()
    inferred: bool = True
    pure: bool = True
    safe: bool = True


def _part(given: str | tuple[str, ...] | Part) -> Part:
    return given if isinstance(given, Part) else Part((given,) if isinstance(given, str) else given)


def _of(
    name: str, operands: tuple[object, ...], result: object, form: str = "functional", **more: object
) -> Definition:
    results = () if result is None else (_part(result),)  # type: ignore[arg-type]
    return Definition(name, tuple(map(_part, operands)), results, form, **more)  # type: ignore[arg-type]


def _short(kind: str) -> Part:
    return Part((kind,), short=True)


def _many(*kinds: str) -> Part:
    return Part(kinds, many=True)


_PATH = (("mode", "path"),)
_RANK = (("rank", "i32"),)

DEFINITIONS = {
    d.name: d
    for d in (
        _of("static", (), EVERY, "result", inferred=False),
        _of("print", (EVERY,), None, "operands", pure=False),
        *(
            _of(f"make_{kind}", (_many(*INTEGERS),), kind, inferred=False)
            for kind in ("int_tuple", "shape", "stride", "coord", "tile")
        ),
        _of("make_layout", ("shape", "stride"), "layout"),
        _of(
            "make_composed_layout", (("layout", "swizzle"), _short("int_tuple"), _short("layout")),
            _short("composed_layout"),
        ),
        _of("make_layout_like", (LAYOUTS,), "layout", "arrow"),
        _of("make_ordered_layout", ("shape", "int_tuple"), "layout"),
        _of("make_identity_layout", ("shape",), "layout", "arrow"),
        _of("get_shape", ((*LAYOUTS, "tile"),), "shape", "arrow"),
        _of("get_stride", (_short("layout"),), "stride", "arrow"),
        _of("composed_get_inner", (_short("composed_layout"),), ("layout", "swizzle"), "arrow"),
        _of("composed_get_offset", (_short("composed_layout"),), "int_tuple", "arrow"),
        _of("composed_get_outer", (_short("composed_layout"),), _short("layout"), "arrow"),
        _of("get_leaves", ((*TUPLES, "tile"),), _many(*TUPLES, "layout", "tile"), "operands"),
        _of("get_scalars", (EVERY,), _many("i32", "i64"), "operands", attributes=(("only_dynamic", "flag"),)),
        _of("get", (ANY,), ANY, "arrow", attributes=_PATH),
        _of("select", (ANY,), ANY, "arrow", attributes=(("mode", "modes"),)),
        _of("to_int_tuple", (TUPLES,), "int_tuple", "arrow"),
        *(_of(f"to_{kind}", ("int_tuple",), kind, "arrow") for kind in ("shape", "stride", "coord")),
        _of("get_layouts_from_tile", (_short("tile"),), _many("layout"), "operands"),
        _of("composition", (LAYOUTS, TILERS), LAYOUTS),
        _of("coalesce", (LAYOUTS, Part(("coord",), optional=True)), LAYOUTS),
        _of("flatten", (ANY,), ANY),
        _of("complement", ("layout", Part(("layout", "shape"), optional=True)), "layout"),
        _of("group_modes", (LAYOUTS,), LAYOUTS, attributes=(("begin", "i32"), ("end", "i32"))),
        _of(
            "recast_layout", (LAYOUTS,), LAYOUTS, "arrow",
            attributes=(("new_type_bits", "i32"), ("old_type_bits", "i32")),
        ),
        _of("slice", (SLICED, "coord"), SLICED, "operands"),
        _of("dice", (SLICED, "coord"), SLICED, "operands"),
        _of("right_inverse", ("layout",), "layout"),
        _of("left_inverse", ("layout",), "layout"),
        _of("size", (("shape", "int_tuple", *LAYOUTS),), "int_tuple", attributes=_PATH),
        _of("cosize", (LAYOUTS,), "int_tuple", attributes=_PATH),
        _of("tuple_product", (ARITHMETIC,), ARITHMETIC),
        _of("tuple_product_each", (ARITHMETIC,), ARITHMETIC),
        _of("layout_eval", ("coord", LAYOUTS), "int_tuple"),
        _of("crd2idx", ("coord", "shape"), "int_tuple"),
        _of("idx2crd", ("int_tuple", "shape"), "coord"),
        _of("increment_coord", ("coord", "shape"), "coord"),
        *(
            _of(f"{end}_to_rank", (SLICED, SLICED), SLICED, "operands", attributes=_RANK)
            for end in ("append", "prepend")
        ),
        _of("tuple_add", (ARITHMETIC, ARITHMETIC), ARITHMETIC),
        _of("tuple_sub", (ARITHMETIC, ARITHMETIC), ARITHMETIC),
        _of("shape_div", ("shape", "shape"), "shape", safe=False),
        _of("ceil_div", (ARITHMETIC, (*ARITHMETIC, "tile")), ARITHMETIC, safe=False),
        _of("elem_less", (("int_tuple", "shape", "coord"),) * 2, "i1", inferred=False),
        _of("equal", ((*TUPLES, "layout"),) * 2, "i1", inferred=False),
        *(
            _of(f"{name}_product", (LAYOUTS, "layout"), LAYOUTS)
            for name in ("logical", "zipped", "tiled", "flat", "raked", "blocked")
        ),
        *(_of(f"{name}_divide", (LAYOUTS, TILERS), LAYOUTS) for name in ("logical", "zipped", "tiled", "flat")),
        _of("tile_to_shape", (LAYOUTS, "shape", Part(("int_tuple",), optional=True)), LAYOUTS),
    )
}  # fmt: skip
"""All operations, by their names without the dialect's."""

__all__ = ["DEFINITIONS", "Definition", "Part"]
