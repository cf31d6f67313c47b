# SPDX-License-Identifier: Apache-2.0
"""Tuples leaf by leaf, layouts, and what is asked of them."""

from __future__ import annotations

import functools
from typing import Any

from ...layout.basis import ScaledBasis
from ..dialect.attributes import CuteType
from ..dialect.notation import read
from ..dialect.spelled import plain_attributes
from .spelling import is_dynamic, static_text, tuple_text
from .values import COMPARE, PLUS, TIMES, UNARY, Expr, Tree, rebuilt
from .writer import LAYOUTS, TUPLES, Lifter, lifts, opaque_tree, static_tree


def attributes(op: Any) -> dict[str, Any]:
    """Return an operation's attributes as plain Python."""
    return plain_attributes({**op.attributes, **op.properties})


def give(w: Lifter, op: Any, text: str, level: int = 100, hint: str = "") -> None:
    """Give an operation's result the expression of a pure function."""
    result = op.results[0]
    kind = getattr(result.type, "kind", "")
    w.bind(result, Expr(text, level), hint=hint, tree=kind in TUPLES or _is_iterator(result.type))


def _is_iterator(t: Any) -> bool:
    return getattr(t, "name", "") == "cute.arith_tuple_iter"


# ------------------------------------------------------------------ tuples


@lifts("cute.make_int_tuple", "cute.make_shape", "cute.make_stride", "cute.make_coord")
def make_tuple(w: Lifter, op: Any) -> None:
    """A tuple: its `?` are the operands, one after the other."""
    t = op.results[0].type
    given = iter([leaf for v in op.operands for leaf in _given(w, v)])
    leaves = []
    for leaf in Tree(t.data).flat():
        if leaf is not None and is_dynamic(leaf):
            value = next(given)
            leaves.append(_along(leaf, value))
        else:
            leaves.append(static_tree(leaf).leaves)
    _made(w, op.results[0], rebuilt(t.data, iter(leaves)))


def _along(leaf: Any, value: Expr) -> Expr:
    """A basis stride whose number is known only at run time."""
    if not isinstance(leaf, ScaledBasis):
        return value
    return Expr(f"{value.at(TIMES)} * {tuple_text(ScaledBasis(1, leaf.mode))}", TIMES)


def _given(w: Lifter, value: Any) -> list[Any]:
    if isinstance(value.type, CuteType):
        if value.type.is_static:
            return [Expr(static_text("int_tuple", value.type.data))]
        return [leaf for leaf, known in zip(w.tree(value).flat(), Tree(value.type.data).flat(), strict=True)
                if known is not None and is_dynamic(known)]  # fmt: skip
    return [w.expr(value)]


def _made(w: Lifter, result: Any, leaves: Any) -> None:
    """Give a tuple its leaves. One that has all leaves of another, in their order, is that one."""
    flat = Tree(leaves).flat()
    first = next((str(leaf) for leaf in flat if leaf is not None and str(leaf).endswith("]")), "")
    whole = None
    if first and isinstance(leaves, tuple):
        stem = first[: first.rindex("[")]
        if all(leaf is None or str(leaf) == f"{stem}[{i}]" for i, leaf in enumerate(flat)) and None not in flat:
            whole = Expr(stem)
    w.bind_tree(result, Tree(leaves, whole))


@lifts("cute.get_leaves")
def get_leaves(w: Lifter, op: Any) -> None:
    """The leaves of a tuple."""
    source = op.operands[0]
    if getattr(source.type, "kind", "") not in TUPLES:
        w.refuse(op, "leaves of a tile are not lifted")
    for result, leaf in zip(op.results, w.tree(source).flat(), strict=True):
        if not getattr(result.type, "is_static", False):
            w.bind_tree(result, Tree(leaf))


@lifts("cute.get_scalars")
def get_scalars(w: Lifter, op: Any) -> None:
    """The integers of a tuple: those that are known only at run time, or all of them."""
    source = op.operands[0]
    value = source.type.data
    leaves = [(leaf, known) for leaf, known in zip(w.tree(source).flat(), Tree(value).flat(), strict=True)
              if known is not None]  # fmt: skip
    if len(leaves) != len(op.results):
        leaves = [(leaf, known) for leaf, known in leaves if is_dynamic(known)]
    for result, (leaf, _) in zip(op.results, leaves, strict=True):
        w.values[w.root(result)] = leaf


@lifts("cute.to_int_tuple", "cute.to_shape", "cute.to_stride", "cute.to_coord", "cute.deref_arith_tuple_iter",
       "cute.make_arith_tuple_iter")  # fmt: skip
def renamed(w: Lifter, op: Any) -> None:
    """The same tuple, of another kind."""
    w.bind_tree(op.results[0], w.tree(op.operands[0]))


def _leafwise(w: Lifter, op: Any, one: Any) -> None:
    a, b = (w.tree(v) for v in op.operands)
    value = op.results[0].type.data
    if not isinstance(value, tuple):
        w.bind(op.results[0], one(a.leaves, b.leaves), tree=True)
        return
    known = iter(Tree(value).flat())
    leaves = []
    for x, y, leaf in zip(_spread(a, value), _spread(b, value), known, strict=True):
        leaves.append(one(x, y) if is_dynamic(leaf) else static_tree(leaf).leaves)
    w.bind_tree(op.results[0], Tree(rebuilt(value, iter(leaves))))


def _spread(tree: Tree, like: Any) -> list[Any]:
    """The leaves of a tuple, nested as another: what it has not as deep stands for nothing but itself."""
    flat = tree.flat()
    return flat if len(flat) == len(Tree(like).flat()) else [flat[0]] * len(Tree(like).flat())


def _operator(symbol: str, level: int) -> Any:
    strict = {"+": PLUS, "-": TIMES, "*": TIMES, "//": UNARY, "%": UNARY}[symbol]

    def one(a: Expr, b: Expr) -> Expr:
        if symbol in "+" and "0" in (a, b):
            return b if a == "0" else a
        if symbol == "*" and "1" in (a, b):
            return b if a == "1" else a
        if symbol in ("//", "-") and b == ("1" if symbol == "//" else "0"):
            return a
        return Expr(f"{a.at(level)} {symbol} {b.at(strict)}", level)

    return one


_OPERATORS = {
    "cute.tuple_add": _operator("+", PLUS), "cute.tuple_sub": _operator("-", PLUS),
    "cute.tuple_mul": _operator("*", TIMES), "cute.tuple_div": _operator("//", TIMES),
    "cute.tuple_mod": _operator("%", TIMES),
}  # fmt: skip


@lifts(*_OPERATORS)
def arithmetic(w: Lifter, op: Any) -> None:
    """Arithmetic of tuples, leaf by leaf: coordinates and extents are not negative, so that `//` and `%` are the
    machine's."""
    _leafwise(w, op, _OPERATORS[op.name])


_CALLS = {
    "cute.tuple.product": "cute.product({})", "cute.tuple_product": "cute.product({})",
    "cute.tuple.product_each": "cute.product_each({})", "cute.tuple_product_each": "cute.product_each({})",
    "cute.shape_div": "cute.shape_div({}, {})", "cute.ceil_div": "cute.ceil_div({}, {})",
    "cute.increment_coord": "cute.increment_coord({}, {})", "cute.idx2crd": "cute.idx2crd({}, {})",
    "cute.crd2idx": "cute.crd2idx({}, {})", "cute.layout_eval": "cute.crd2idx({}, {})",
    "cute.composition": "cute.composition({}, {})", "cute.flatten": "cute.flatten({})",
    "cute.logical_divide": "cute.logical_divide({}, {})", "cute.zipped_divide": "cute.zipped_divide({}, {})",
    "cute.tiled_divide": "cute.tiled_divide({}, {})", "cute.flat_divide": "cute.flat_divide({}, {})",
    "cute.logical_product": "cute.logical_product({}, {})", "cute.zipped_product": "cute.zipped_product({}, {})",
    "cute.tiled_product": "cute.tiled_product({}, {})", "cute.flat_product": "cute.flat_product({}, {})",
    "cute.raked_product": "cute.raked_product({}, {})", "cute.blocked_product": "cute.blocked_product({}, {})",
    "cute.right_inverse": "cute.right_inverse({})", "cute.left_inverse": "cute.left_inverse({})",
    "cute.complement": "cute.complement({}, {})", "cute.filter": "cute.filter({})",
    "cute.filter_zeros": "cute.filter_zeros({})", "cute.make_layout_like": "cute.make_layout_like({})",
    "cute.make_ordered_layout": "cute.make_ordered_layout({}, {})",
    "cute.make_identity_layout": "cute.make_identity_layout({})",
    "cute.make_identity_tensor": "cute.make_identity_tensor({})",
    "cute.make_composed_layout": "cute.make_composed_layout({}, {}, {})",
    "cute.tile_to_shape": "cute.tile_to_shape({}, {}, {})", "cute.elem_less": "cute.elem_less({}, {})",
    "cute.composed_get_inner": "{}.inner", "cute.composed_get_offset": "{}.offset",
    "cute.composed_get_outer": "{}.outer", "cute.equal": "{} == {}",
    "cute.get_flat_coord": "{1}.get_flat_coord({0})", "cute.get_hier_coord": "{1}.get_hier_coord({0})",
}  # fmt: skip


@lifts(*_CALLS)
def call(w: Lifter, op: Any) -> None:
    """A function of this library, of the same name and operands."""
    form = _CALLS[op.name]
    operands = [w.expr(v) for v in op.operands]
    if op.name in ("cute.complement", "cute.tile_to_shape") and len(operands) < form.count("{}"):
        form = form.replace(", {})", ")", 1)
    texts = [x.at(95) if form.startswith("{") else str(x) for x in operands]
    give(w, op, form.format(*texts), COMPARE if op.name == "cute.equal" else 100)


def check_composition(w: Lifter, op: Any) -> None:
    """Refuse a composition that is not a function's: the published rule takes steps that are smaller than the extents
    that they go through."""
    types = [v.type for v in (*op.operands, *op.results)]
    if not all(isinstance(t, CuteType) and t.kind == "layout" and t.is_static for t in types):
        return
    if not _is_function(*(t.data for t in types)):
        w.refuse(op, f"'{types[2]}' is not '{types[0]}' of '{types[1]}': it is another function")


@functools.lru_cache(1024)
def _is_function(a: Any, b: Any, made: Any) -> bool:
    return all(made(i) == a(b(i)) for i in range(min(_size(b), 4096)))


def _size(layout: Any) -> int:
    n = 1
    for s in Tree(layout.shape).flat():
        n *= s
    return n


@lifts("cute.coalesce")
def coalesce(w: Lifter, op: Any) -> None:
    """A layout of fewer modes, or one by a profile."""
    profile = f", target_profile={w.expr(op.operands[1])}" if len(op.operands) > 1 else ""
    give(w, op, f"cute.coalesce({w.expr(op.operands[0])}{profile})")


def _mode(op: Any) -> str:
    mode = attributes(op).get("mode") or ()
    return f", mode={list(mode)}" if mode else ""


@lifts("cute.size", "cute.cosize")
def size(w: Lifter, op: Any) -> None:
    """Write the number of elements, or the codomain's size."""
    give(w, op, f"cute.{op.name[5:]}({w.expr(op.operands[0])}{_mode(op)})")


@lifts("cute.get")
def get(w: Lifter, op: Any) -> None:
    """A mode."""
    mode = list(attributes(op).get("mode") or ())
    source = op.operands[0]
    if getattr(source.type, "kind", "") in TUPLES:
        leaves = w.tree(source)
        whole = None if leaves.whole is None else Expr(leaves.whole + "".join(f"[{m}]" for m in mode))
        part = leaves.leaves
        for m in mode:
            part = part[m]
        w.bind_tree(op.results[0], Tree(part, whole))
        return
    give(w, op, f"cute.get({w.expr(source)}, mode={mode})" if mode else str(w.expr(source)))


@lifts("cute.select")
def select(w: Lifter, op: Any) -> None:
    """Some modes."""
    modes = list(attributes(op)["mode"])
    source = op.operands[0]
    if getattr(source.type, "kind", "") in TUPLES:
        leaves = w.tree(source).leaves
        w.bind_tree(op.results[0], Tree(tuple(leaves[m] for m in modes)))
        return
    give(w, op, f"cute.select({w.expr(source)}, mode={modes})")


@lifts("cute.dice")
def dice(w: Lifter, op: Any) -> None:
    """The modes that a coordinate marks with numbers."""
    written = attributes(op).get("coord")
    coord = tuple_text(read("coord", written)) if written is not None else str(w.expr(op.operands[1]))
    give(w, op, f"cute.dice({w.expr(op.operands[0])}, {coord})")


@lifts("cute.group_modes")
def group_modes(w: Lifter, op: Any) -> None:
    """Modes taken together."""
    found = attributes(op)
    give(w, op, f"cute.group_modes({w.expr(op.operands[0])}, {found['begin']}, {found['end']})")


@lifts("cute.append_to_rank", "cute.prepend_to_rank")
def to_rank(w: Lifter, op: Any) -> None:
    """Modes put behind or before, up to a rank."""
    a, b = op.operands
    if a.type == op.results[0].type:
        w.values[w.root(op.results[0])] = w.get(a)
        return
    name = "append" if "append" in op.name else "prepend"
    give(w, op, f"cute.{name}({w.expr(a)}, {w.expr(b)}, up_to_rank={attributes(op)['rank']})")


@lifts("cute.recast_layout")
def recast_layout(w: Lifter, op: Any) -> None:
    """A layout of elements of another width."""
    found = attributes(op)
    give(w, op, f"cute.recast_layout({found['new_type_bits']}, {found['old_type_bits']}, {w.expr(op.operands[0])})")


@lifts("cute.make_layout")
def make_layout(w: Lifter, op: Any) -> None:
    """A layout of a shape, with strides or without."""
    shape = w.expr(op.operands[0])
    stride = f", stride={w.expr(op.operands[1])}" if len(op.operands) > 1 else ""
    give(w, op, f"cute.make_layout({shape}{stride})")


@lifts("cute.make_tile")
def make_tile(w: Lifter, op: Any) -> None:
    """A tile whose layouts are known only at run time."""
    w.refuse(op, "a tile of run-time extents is not lifted: tiles of kernels are static")


@lifts("cute.static")
def static(w: Lifter, op: Any) -> None:
    """Bind a value that its type holds whole; it is written where it is used."""
    w.get(op.results[0])


@lifts("cute.get_shape", "cute.get_stride")
def parts(w: Lifter, op: Any) -> None:
    """The shape or the strides of a layout or a tensor."""
    w.bind(op.results[0], Expr(f"{w.expr(op.operands[0]).at(95)}.{op.name[9:]}"), tree=True)


@lifts("cute.get_layouts_from_tile")
def layouts_of_tile(w: Lifter, op: Any) -> None:
    """The layouts of a tile: static ones are written where they are used."""
    for result in op.results:
        if result in w.flow.values:
            w.refuse(op, "layouts of a tile that are known only at run time are not lifted")


@lifts("cute.assume")
def assume(w: Lifter, op: Any) -> None:
    """A number with what divides it."""
    t = op.results[0].type
    divisor = t.data[0] if getattr(t, "data", None) else None
    found = w.expr(op.operands[0])
    if divisor in (None, 1):
        w.values[w.root(op.results[0])] = w.get(op.operands[0])
        return
    w.bind(op.results[0], Expr(f"cute.assume({found}, divby={divisor})"))


@lifts("cute.fast_divmod.create_divisor")
def divisor(w: Lifter, op: Any) -> None:
    """A divisor that is prepared on the host."""
    if not w.host:
        w.refuse(op, "a divisor is prepared on the host: here it is made in a kernel")
    w.bind(op.results[0], Expr(f"cute.fast_divmod_create_divisor(cute.Int32({w.expr(op.operands[0])}))"))


@lifts("cute.fast_divmod.compute")
def divmod_(w: Lifter, op: Any) -> None:
    """Quotient and rest."""
    a, d = (w.expr(v) for v in op.operands)
    for result, symbol in zip(op.results, ("//", "%"), strict=True):
        if w.root(result) in w.flow.values:
            w.bind(result, Expr(f"cute.Int32({a.at(TIMES)} {symbol} {d.at(UNARY)})"))


__all__ = ["LAYOUTS", "attributes", "check_composition", "give", "opaque_tree"]
