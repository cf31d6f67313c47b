# SPDX-License-Identifier: Apache-2.0
"""The types that printed operations give, from those that they take: the layouts by what the published operations mean,
the pointers as far as the types tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import VectorType, i1
from xdsl.ir import Attribute

from ...layout import coalescing
from ...layout.basis import coord_zero
from ...layout.int_tuple import flatten_to_tuple, product
from ...layout.layout import ComposedLayout, Layout
from . import partitions
from .attributes import CuteType, type_of
from .checked import Refused, is_trivial, raw
from .inference import compatible, type_of_value, value_of_type, with_leaves, without_promises
from .leaves import Dynamic
from .meaning import FUNCTIONS, Value
from .notation import RawComposed, Unswizzled, read
from .printed_types import TYPES, PrintedType
from .tensors import head_of, layout_of, tensor_like, without_ones

Types = Sequence[Attribute]
Rule = Callable[[Types, Mapping[str, Any]], "list[Attribute] | None"]

_PUBLISHED = {"tuple.product": "tuple_product", "tuple.product_each": "tuple_product_each"}
_ELSEWHERE = {"crd2idx"}  # takes a layout here
VIEWS = ("memref", "coord_tensor", "smem_desc_view")
_ATOM = re.compile(r"(atom|sm\d+)\.")


def printed_kind(t: Attribute) -> str:
    """Name the kind of a type, as the table of printed operations does."""
    if isinstance(t, CuteType):
        return t.kind
    if isinstance(t, PrintedType):
        dialect, _, name = t.name.partition(".")
        if name in ("i32", "i64"):
            return t.name
        return "atom" if dialect == "cute_nvgpu" and _ATOM.match(name) else name
    if isinstance(t, VectorType):
        return "vector"
    text = str(t)
    if text.startswith("!llvm.ptr"):
        return "llvm.ptr"
    return "float" if text[:1] in "fb" and text.lstrip("bf")[:1].isdigit() else text


def of_layout(name: str, types: Types, attributes: Mapping[str, Any]) -> list[Attribute] | None:
    """Apply a published operation to the layout of the tensor that comes first, and leave its pointer."""
    first, *others = types
    if not isinstance(first, PrintedType) or printed_kind(first) not in VIEWS:
        return None
    made = FUNCTIONS[name]([layout_of(first), *map(value_of_type, others)], attributes)
    return [tensor_like(first, v.value) if isinstance(v.value, (Layout, ComposedLayout)) else type_of_value(v)
            for v in made]  # fmt: skip


def _get_iter(types: Types, attributes: Mapping[str, Any]) -> list[Attribute]:
    t: Any = types[0]
    if printed_kind(t) == "smem_desc_view":
        return [t.data[0]]
    return [TYPES["cute.ptr" if printed_kind(t) == "memref" else "cute.arith_tuple_iter"](head_of(t))]


def _get_layout(types: Types, attributes: Mapping[str, Any]) -> list[Attribute]:
    found = layout_of(types[0])
    return [type_of(found.kind, found.value)]


def _view(types: Types, attributes: Mapping[str, Any]) -> list[Attribute]:
    pointer, layout = types
    assert isinstance(pointer, PrintedType) and isinstance(layout, CuteType)
    name = "cute.memref" if printed_kind(pointer) == "ptr" else "cute.coord_tensor"
    return [TYPES[name]((*pointer.data, raw(layout.data)))]


def _filtered(change: Callable[[Any], Any]) -> Rule:
    def rule(types: Types, attributes: Mapping[str, Any]) -> list[Attribute] | None:
        t: Any = types[0]
        if isinstance(t, CuteType):
            return [type_of_value(Value(t.kind, change(t.data)))]
        return [tensor_like(t, change(layout_of(t).value))]

    return rule


def composed_layout(types: Types, attributes: Mapping[str, Any]) -> list[Attribute]:
    """Return the type of a composed layout: as it is printed it stays one without a swizzle, too."""
    inner, offset, outer = (value_of_type(t).value for t in types)
    if is_trivial(RawComposed(inner, offset, outer)):
        return [type_of("composed_layout", ComposedLayout(Unswizzled(0, 4, 3), 0, outer))]
    return [type_of_value(v) for v in FUNCTIONS["make_composed_layout"]([value_of_type(t) for t in types], attributes)]


def _identity_tensor(types: Types, attributes: Mapping[str, Any]) -> list[Attribute]:
    layout: Any = FUNCTIONS["make_identity_layout"]([value_of_type(types[0])], {})[0].value
    return [TYPES["cute.coord_tensor"]((coord_zero(layout.stride), raw(layout)))]


def _make_layout(types: Types, attributes: Mapping[str, Any]) -> list[Attribute]:
    """A layout of a shape alone is column-major, and an extent of one has the stride 0."""
    if len(types) == 2:
        return [type_of_value(v) for v in FUNCTIONS["make_layout"]([value_of_type(t) for t in types], {})]
    shape = value_of_type(types[0]).value
    leaves: list[Any] = []
    step: Any = 1
    for extent in flatten_to_tuple(shape):
        leaves.append(0 if type(extent) is int and extent == 1 else step)
        step = step * extent
    strides = iter(leaves)
    return [type_of_value(Value("layout", Layout(shape, with_leaves(shape, lambda _: next(strides)))))]


def _dice(types: Types, attributes: Mapping[str, Any]) -> list[Attribute] | None:
    coord = Value("coord", read("coord", attributes["coord"]))
    t = types[0]
    if isinstance(t, CuteType):
        return [type_of_value(v) for v in FUNCTIONS["dice"]([value_of_type(t), coord], {})]
    return [tensor_like(t, FUNCTIONS["dice"]([layout_of(t), coord], {})[0].value)]


_OUTSIDE: dict[str, Callable[[Any], Attribute]] = {
    "nvvm.fmax": lambda t: t,
    "nvvm.fmin": lambda t: t,
    "vector.extractelement": lambda t: t.element_type,
}
"""Operations of other dialects whose lines do not say the result's type: it follows from the first operand's."""

_RULES: dict[str, Rule] = {
    "get_iter": _get_iter,
    "get_layout": _get_layout,
    "make_layout": _make_layout,
    "make_composed_layout": composed_layout,
    "make_view": _view,
    "make_identity_tensor": _identity_tensor,
    "deref_arith_tuple_iter": lambda types, _: [type_of("int_tuple", types[0].data[0])],  # type: ignore[attr-defined]
    "make_arith_tuple_iter": lambda types, _: [TYPES["cute.arith_tuple_iter"]((types[0].data,))],  # type: ignore[attr-defined]
    "dice": _dice,
    "filter": _filtered(coalescing.filter),
    "filter_zeros": _filtered(coalescing.filter_zeros),
    "elem_less": lambda types, _: [i1],
    "atom.set_value": lambda types, _: [types[0]],
    **partitions.RULES,
}


def most_known(name: str, types: Types, attributes: Mapping[str, Any]) -> list[Attribute] | None:
    """Return the types of an operation's results, as far as its operands tell; None where they do not.

    name: with the dialect's. Raises Refused where it does not take such operands."""
    dialect, _, short = name.partition(".")
    if dialect not in ("cute", "cute_nvgpu"):
        found = _OUTSIDE.get(name)
        return None if found is None else [found(types[0])]
    rule = _RULES.get(short)
    if rule is not None:
        return rule(types, attributes)
    short = _PUBLISHED.get(short, short)
    if dialect != "cute" or short not in FUNCTIONS or short in _ELSEWHERE:
        return None
    if all(isinstance(t, CuteType) for t in types):
        return [type_of_value(v) for v in FUNCTIONS[short]([value_of_type(t) for t in types], attributes)]
    return of_layout(short, types, attributes)


def agrees(found: Attribute, given: Attribute) -> bool:
    """Return whether a result may have the type that a line gives it: of layouts and numbers it promises no more than
    what is known, of others both tell of one value."""
    if not isinstance(found, CuteType):
        return alike(found, given)
    return compatible(found, given) or compatible(without_ones(found), without_ones(given))


def _bare(t: Attribute) -> Any:
    """Return the part of a type that does not depend on what is known of divisors and alignment."""
    if isinstance(t, CuteType):
        return without_promises(without_ones(t))
    if not isinstance(t, PrintedType):
        return t
    if printed_kind(t) in ("memref", "coord_tensor"):
        layout = without_promises(without_ones(type_of_value(layout_of(t))))
        return t.name, t.data[:2] if printed_kind(t) == "memref" else (), layout
    if printed_kind(t) == "ptr":
        return t.name, t.data[:2]
    return t.name if printed_kind(t) == "arith_tuple_iter" else t


def alike(a: Attribute, b: Attribute) -> bool:
    """Return whether two types tell of one value, and differ in what they know of its divisors, its alignment and its
    first coordinate."""
    try:
        return a == b or bool(_bare(a) == _bare(b))
    except Refused:
        return False


def _element(t: Attribute) -> str:
    if isinstance(t, VectorType):
        return str(t.element_type)
    return str(t.data[0]) if isinstance(t, PrintedType) else str(t)


def _same_elements(tensor: Attribute, other: Attribute) -> str:
    a, b = _element(tensor), _element(other)
    if a != b:
        return f"the tensor holds {a}, and the value is {b}"
    if isinstance(other, VectorType):
        count = product(layout_of(tensor).value.shape)
        held = 1
        for n in other.get_shape():
            held *= n
        if not isinstance(count, Dynamic) and count != held:
            return f"the tensor holds {count} elements, and the vector {held}"
    return ""


def _same_atom(types: Types, results: Types) -> str:
    inner = results[0].data[0]  # type: ignore[attr-defined]
    return "" if inner == types[0] else f"the result is made of '{inner}', and the operand is '{types[0]}'"


def _same_layout(types: Types, results: Types) -> str:
    if not types or not isinstance(types[0], CuteType):
        return ""
    return "" if raw(types[0].data) == results[0].data[-1] else "the result's layout is not the operand's"  # type: ignore[attr-defined]


def _same_space(types: Types, results: Types) -> str:
    a, b = types[0].data, results[0].data  # type: ignore[attr-defined]
    return "" if a[1] == b[1] else f"the operand points to {a[1]}, and the result to {b[1]}"


def _same_pointee(types: Types, results: Types) -> str:
    if printed_kind(types[0]) != printed_kind(results[0]):
        return "the result is of another kind than the operand"
    a, b = types[0].data, results[0].data  # type: ignore[attr-defined]
    if printed_kind(types[0]) != "ptr" or a[:2] == b[:2]:
        return ""
    return f"the operand points to {a[0]} in {a[1]}, and the result to {b[0]} in {b[1]}"


def _wider(wide: Attribute, narrow: Attribute) -> str:
    a, b = _element(wide), _element(narrow)
    if a[:1] != "i" or b[:1] != "i":
        return f"takes integers, and not '{wide}' and '{narrow}'"
    return "" if int(a[1:]) > int(b[1:]) else f"'{wide}' has to be wider than '{narrow}'"


AGREE: dict[str, Callable[[Types, Types], str]] = {
    "cute.add_offset": _same_pointee,
    "cute.make_tiled_copy": _same_atom,
    "cute.make_tiled_mma": _same_atom,
    "cute.memref.alloca": _same_layout,
    "cute.memref.load": lambda types, results: _same_elements(types[0], results[0]),
    "cute.memref.load_vec": lambda types, results: _same_elements(types[0], results[0]),
    "cute.memref.store": lambda types, results: _same_elements(types[0], types[2]),
    "cute.memref.store_vec": lambda types, results: _same_elements(types[1], types[0]),
    "cute.recast_iter": _same_space,
    "arith.extsi": lambda types, results: _wider(results[0], types[0]),
    "arith.extui": lambda types, results: _wider(results[0], types[0]),
    "arith.trunci": lambda types, results: _wider(types[0], results[0]),
}
"""Checks that operands and results agree: "" if they do, else the reason why not."""

__all__ = ["AGREE", "agrees", "alike", "composed_layout", "printed_kind", "most_known"]
