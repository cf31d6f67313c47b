# SPDX-License-Identifier: Apache-2.0
"""The types of the parts that threads take of a tensor: of tiles, of tiled copies and products, of TMA copies. A rule
gives None where the types do not tell which layout it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xdsl.ir import Attribute

from ...layout.int_tuple import product
from ...layout.layout import ComposedLayout, Layout, compact
from .attributes import CuteType, type_of
from .checked import Refused, checked, has_fraction, is_static
from .leaves import Dynamic
from .meaning import FUNCTIONS, Value, canonical
from .meaning.atoms import CopyTraits, MmaTraits, bits_of, copy_traits, mma_traits
from .meaning.domains import on_domain
from .meaning.swizzled import recast
from .meaning.values import computed
from .notation import RawLayout, read, write
from .printed_types import TYPES, PrintedType
from .tensors import by_extents, layout_of, tensor_like

Types = Sequence[Attribute]
Attributes = Mapping[str, Any]
Rule = Callable[[Types, Attributes], "list[Attribute] | None"]


def _name(t: Any) -> str:
    return str(t.name).partition(".")[2]


def _part(tensor: Attribute, what: str, divided: Callable[[Layout], Layout], coord: Any) -> list[Attribute] | None:
    """The tensor of what is left of a tensor at a coordinate, after its layout was divided."""
    found = on_domain(layout_of(tensor), what, divided)
    if isinstance(found.value, ComposedLayout) and not is_static(found.layout):
        return None
    return [tensor_like(tensor, by_extents(FUNCTIONS["slice"]([found, Value("coord", coord)], {})[0].value))]


def _nones(layout: Layout) -> Any:
    """The coordinate that keeps each mode; of a single one it keeps that whole."""
    return (None,) * len(layout.shape) if isinstance(layout.shape, tuple) and len(layout.shape) > 1 else None


# ------------------------------------------------------------------ tiles


def local_tile(types: Types, attributes: Attributes) -> list[Attribute] | None:
    """Take the tile at a coordinate; `_` keeps all tiles of a mode."""
    tensor, tile, coord = types
    tiler, at = tile.data, coord.data  # type: ignore[attr-defined]
    if not isinstance(tiler, tuple) or not isinstance(at, tuple):
        return None
    if "proj" in attributes:
        chosen = read("coord", attributes["proj"])
        if not isinstance(chosen, tuple) or any(isinstance(c, tuple) for c in chosen):
            return None
        if len(chosen) != len(tiler) or len(chosen) > len(at):
            raise Refused(
                f'the projection "{write("coord", chosen)}" has {len(chosen)} modes, the tile {len(tiler)} and the '
                f"coordinate {len(at)}"
            )
        tiler, at = _kept(tiler, chosen), (*_kept(at, chosen), *at[len(chosen) :])
    tiles = on_domain(layout_of(tensor), "tile", lambda x: canonical.zipped_divide(x, tiler)).layout
    whole, rest = canonical.parts(tiles)
    tiles_kept, rest_kept = ((None,) * len(canonical.parts(x)) for x in (whole, rest))
    where = (tiles_kept, (*at, *rest_kept[len(at) :]))
    return _part(tensor, "tile", lambda x: canonical.zipped_divide(x, tiler), where)


def _kept(modes: tuple[Any, ...], chosen: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(m for m, c in zip(modes, chosen, strict=False) if c is not None)


# ------------------------------------------------------------------ copies


class _Copy(NamedTuple):
    """A copy tiled over threads, by its type."""

    traits: CopyTraits
    tv: Layout
    tiler: tuple[Layout, ...]


def _tiled_copy(t: Any) -> _Copy | None:
    """Return what a tiled copy's type says; None where it is not made of whole instructions that are told."""
    atom, raw_tv, tile = t.data
    traits, tv = copy_traits(_name(atom), atom.data), checked("layout", raw_tv)
    tiler = tile if isinstance(tile, tuple) else (tile,)
    if traits is None or len(canonical.parts(tv)) != 2 or not is_static(tv) or not all(map(_is_static, tiler)):
        return None
    if any(_held(tv, i) % _held(traits.reference, i) for i in (0, 1)):
        return None
    return _Copy(traits, tv, tiler)


def _is_static(layout: Any) -> bool:
    return isinstance(layout, Layout) and is_static(layout)


def _held(layout: Layout, mode: int) -> Any:
    return product(canonical.parts(layout)[mode].shape)


def _by_threads(tiled: Layout, tv: Layout, reference: Layout, side: Layout) -> Layout:
    """A tiled layout ((tile), (rests)) as (thread, (values of one copy, repetitions), (rests))."""
    atoms = canonical.zipped_divide(tv, (_held(reference, 0), _held(reference, 1)))
    to_side = canonical.composed(canonical.right_inverse(reference), side)
    by_side = canonical.composed(atoms, (to_side, None))
    pairs = [canonical.parts(x) for x in canonical.parts(by_side)]
    zipped = canonical.stacked([canonical.stacked(list(p)) for p in zip(*pairs, strict=True)])
    values = canonical.coalesced(zipped, (1, (1, 1)))
    threads, rest = canonical.parts(canonical.composed(tiled, (values, None)))
    return canonical.stacked([*canonical.parts(threads), rest])


def _copied(side: str) -> Rule:
    def rule(types: Types, attributes: Attributes) -> list[Attribute] | None:
        tensor, thread = types[1:]
        copy = _tiled_copy(types[0])
        if copy is None or _is_tuple(thread):
            return None
        target = copy.traits.source if side == "S" else copy.traits.destination

        def divided(layout: Layout) -> Layout:
            return _by_threads(canonical.zipped_divide(layout, copy.tiler), copy.tv, copy.traits.reference, target)

        rest = canonical.parts(on_domain(layout_of(tensor), "partition", divided).layout)[2]
        return _part(tensor, "partition", divided, (thread.data, None, _nones(rest)))  # type: ignore[attr-defined]

    return rule


def _is_tuple(coord: Any) -> bool:
    return isinstance(coord.data, tuple) or coord.data is None


def retile(types: Types, attributes: Attributes) -> list[Attribute] | None:
    """View registers as ((values of one copy, repetitions), rest…)."""
    tensor, copy = types[1], _tiled_copy(types[0])
    if copy is None:
        return None
    tile = tuple(product(x.shape) for x in copy.tiler)
    values = _held(layout_of(tensor).layout, 0)
    if type(values) is not int:
        return None
    once = _held(copy.traits.reference, 1)

    def viewed(layout: Layout) -> Layout:
        inverse = canonical.composed(canonical.right_inverse(copy.tv), Layout(tile, compact(tile)))
        counted = recast(inverse, _held(copy.tv, 0) * values, 1)
        spread = canonical.logical_product(Layout(values, 1), canonical.right_inverse(counted))
        order = canonical.zipped_divide(spread, Layout(once, 1))
        extents = tuple(product(x.shape) for x in canonical.parts(counted))
        tiled = canonical.zipped_divide(layout, (values, *extents))
        return canonical.composed(tiled, (order, None))

    rest = canonical.parts(on_domain(layout_of(tensor), "view", viewed).layout)[1]
    return _part(tensor, "view", viewed, (None, (0, *(None,) * (len(canonical.parts(rest)) - 1))))


# ------------------------------------------------------------------ products


class _Product(NamedTuple):
    """A product tiled over threads, by its type. groups: along M, N, K; tiles: what is dealt out at once of each."""

    traits: MmaTraits
    groups: tuple[int, int, int]
    tiles: tuple[Any, Any, Any]

    def divided(self, part: str, layout: Layout) -> Layout:
        """Lay an operand out as ((ThrV, (ThrX, ThrY)), (FrgV, (RestX, RestY, …)))."""
        x, y = _MODES[part]
        extents = self.traits.extents
        permuted = canonical.logical_divide(layout, (self.tiles[x], self.tiles[y]))
        atoms = canonical.zipped_divide(permuted, (Layout(extents[x], 1), Layout(extents[y], 1)))
        held = canonical.composed(atoms, (self.traits.layouts[part], None))
        return _zipped(held, (Layout(self.groups[x], 1), Layout(self.groups[y], 1)))

    def thread(self, part: str, thread: Any) -> Any:
        """Return the coordinate of a thread; 0 where there is one only."""
        x, y = _MODES[part]
        counts = (self.traits.threads, self.groups[x], self.groups[y])
        first, *others = (0 if n == 1 or type(thread) is int and thread == 0 else Dynamic() for n in counts)
        return first, tuple(others)


_MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}


def _zipped(held: Layout, threads: Any) -> Layout:
    """((ThrV, FrgV), (X, Y, …)) as ((ThrV, (ThrX, ThrY)), (FrgV, (RestX, RestY, …)))."""
    thread, values = canonical.parts(canonical.parts(held)[0])
    modes = canonical.parts(canonical.parts(held)[1])
    split = [canonical.parts(canonical.logical_divide(m, t)) for m, t in zip(modes, threads, strict=False)]
    rest = canonical.stacked([*(s[1] for s in split), *modes[len(split) :]])
    return canonical.stacked([
        canonical.stacked([thread, canonical.stacked([s[0] for s in split])]), canonical.stacked([values, rest])
    ])  # fmt: skip


def _tiled_mma(t: Any) -> _Product | None:
    """Return what a product's type says; None where it is not made of instructions that are told."""
    tiled = _name(t) == "tiled_mma"
    atom, groups, tiles = t.data if tiled else (t, None, None)
    traits = mma_traits(_name(atom), atom.data)
    tiles = (None, None, None) if tiles is None else tiles
    if traits is None or not isinstance(tiles, tuple) or len(tiles) != 3:
        return None
    if groups is not None and (len(canonical.parts(checked("layout", groups))) != 3 or not is_static(groups)):
        return None
    if not all(x is None or _is_static(x) for x in tiles):
        return None
    m, n, k = (1, 1, 1) if groups is None else map(product, groups.shape)
    whole = [extent * count for extent, count in zip(traits.extents, (m, n, k), strict=True)]
    x, y, z = (count if tile is None else tile for tile, count in zip(tiles, whole, strict=True))
    return _Product(traits, (m, n, k), (x, y, z))


def _partition(types: Types, attributes: Attributes) -> list[Attribute] | None:
    mma, tensor, thread = types
    tiled, part = _tiled_mma(mma), attributes["part"]
    if tiled is None or _is_tuple(thread):
        return None

    def divided(layout: Layout) -> Layout:
        return tiled.divided(part, layout)

    whole = on_domain(layout_of(tensor), "partition", divided)
    if isinstance(whole.value, ComposedLayout) and type(thread.data) is int and thread.data:  # type: ignore[attr-defined]
        return None
    rest = canonical.parts(canonical.parts(whole.layout)[1])[1]
    coord = (tiled.thread(part, thread.data), (None, _nones(rest)))  # type: ignore[attr-defined]
    return _part(tensor, "partition", divided, coord)


def _partition_shape(types: Types, attributes: Attributes) -> list[Attribute] | None:
    mma, shape = types
    tiled, part = _tiled_mma(mma), attributes["part"]
    extents = shape.data  # type: ignore[attr-defined]
    if tiled is None:
        return None
    whole = Layout(extents, compact(extents))
    found = computed("partition", lambda: tiled.divided(part, whole))
    values, rest = canonical.parts(canonical.parts(found)[1])
    counts = tuple(product(x.shape) for x in canonical.parts(rest))
    return [type_of("shape", (canonical.parts(tiled.traits.layouts[part])[1].shape, *counts))]


# ------------------------------------------------------------------ fragments


def _fragment(types: Types, attributes: Attributes) -> list[Attribute] | None:
    mma, given = types
    atom: Any = mma.data[0] if _name(mma) == "tiled_mma" else mma  # type: ignore[attr-defined]
    part, name = attributes["part"], _name(atom)
    elements = _elements(name, atom.data)
    if elements is None:
        return None
    element = elements["ABC".index(part)]
    kind = atom.data[-2] if name.startswith("sm100.") else atom.data[-1] if name == "sm90.mma" else ""
    in_registers = name in ("atom.universal_fma", "sm80.mma") or name == "sm90.mma" and (
        part == "C" or part == "A" and kind == "rs"
    )  # fmt: skip
    if in_registers:
        return _registers(part, element, given) if re.match("b?f", element) else None
    if part == "C":
        return _accumulator(atom, element, given)
    if part == "A" and kind == "ts" or not isinstance(given, PrintedType):
        return None
    return _descriptors(given)


def _elements(name: str, data: Any) -> tuple[str, str, str] | None:
    at = {"atom.universal_fma": 1, "sm80.mma": 1, "sm90.mma": 3, "sm100.mma": 4, "sm100.mma_bs": 4}.get(name)
    return None if at is None else (data[at], data[at + 1], data[at + 2])


def _accumulator(atom: Any, element: str, given: Any) -> list[Attribute] | None:
    """128 lanes of tensor memory: words of 32 bits by column, and behind those of one instruction the next stage's."""
    traits = mma_traits(_name(atom), atom.data)
    shape = given.data if isinstance(given, CuteType) else layout_of(given).layout.shape
    if traits is None or element != "f32" or not isinstance(shape, tuple) or not is_static(shape):
        return None
    m, n = traits.layouts["C"].shape[1]
    if m != 128 or len(shape) < 3 or shape[:3] != ((m, n), 1, 1):
        return None
    stride = ((_LANE, 1), 0, 0, *compact(shape[3:], n))
    return [TYPES["cute.memref"]((element, "tmem", None, None, RawLayout(shape, stride)))]


_LANE = 1 << 16
"""The distance between two lanes of tensor memory, in words of 32 bits."""


def _registers(part: str, element: str, given: Any) -> list[Attribute] | None:
    """Registers for a part: of C column-major; of A and B in the order in which the part lies, which a shape does not
    tell."""
    shape = given.data if isinstance(given, CuteType) else layout_of(given).layout.shape
    if not isinstance(shape, tuple) or not is_static(shape) or part != "C" and isinstance(given, CuteType):
        return None
    stride = _ordered(Layout(shape, compact(shape)) if part == "C" else layout_of(given).layout)
    return [TYPES["cute.memref"]((element, "rmem", None, None, RawLayout(shape, stride)))]


def _ordered(layout: Layout) -> Any:
    """Strides without gaps: the first mode's by themselves, behind it the others' in the order of what they step."""
    first, *others = canonical.parts(layout)
    modes = canonical.modes_of(canonical.stacked(others)) if others else []
    held, made = _compacted(first, 1)
    at: dict[int, Any] = {}
    for i in sorted(range(len(modes)), key=lambda i: _rank(modes[i][1], i)):
        s, d = modes[i]
        if s == 1 or d == 0:
            at[i] = 0
        else:
            at[i], held = held, held * s
    leaves = iter([at[i] for i in range(len(modes))])
    return (made, *(_refilled(x.shape, leaves) for x in others))


def _rank(stride: Any, i: int) -> tuple[Any, ...]:
    return (0, stride, i) if type(stride) is int else (1, 0, i)


def _compacted(layout: Layout, held: int) -> tuple[int, Any]:
    leaves = []
    for s, d in canonical.modes_of(layout):
        moving = s != 1 and not (type(d) is int and d == 0)
        leaves.append(held if moving else 0)
        held *= s if moving else 1
    return held, _refilled(layout.shape, iter(leaves))


def _refilled(shape: Any, leaves: Any) -> Any:
    return tuple(_refilled(s, leaves) for s in shape) if isinstance(shape, tuple) else next(leaves)


def _descriptors(given: Any) -> list[Attribute] | None:
    """Descriptors of shared memory: one for each instruction, counted in 128 bits."""
    found, bits = layout_of(given).value, bits_of(given.data[0]) if given.data[1] == "smem" else 0
    if not isinstance(found, Layout) or not isinstance(found.shape, tuple) or not is_static(found) or bits < 8:
        return None
    words = [recast(x, 128, bits) for x in canonical.parts(found)[1:]]
    layout = by_extents(canonical.stacked([Layout(1, 0), *words]))
    view = (TYPES["cute_nvgpu.smem_desc"](()), RawLayout(layout.shape, layout.stride))
    return [TYPES["cute_nvgpu.smem_desc_view"](view)]


# ------------------------------------------------------------------ TMA


def tma_partition(types: Types, attributes: Attributes) -> list[Attribute] | None:
    """Take what the copies of a CTA move: ((values of one copy, repetitions), rest…) of both tensors. Where several
    CTAs share a copy nothing is told."""
    atom, _, groups, smem, gmem = types
    bits = next((x for x in atom.data if type(x) is int), 0)  # type: ignore[attr-defined]
    width = bits_of(smem.data[0])  # type: ignore[attr-defined]
    held, shared = layout_of(smem).value, groups.data  # type: ignore[attr-defined]
    if not _name(atom).startswith("atom.non_exec_tiled_tma_"):
        return None
    if not isinstance(held, Layout) or not isinstance(held.shape, tuple) or width < 8:
        return None
    first, count = canonical.parts(held)[0], bits // width
    if not is_static((first, shared)) or product(shared.shape) != 1 or not count:
        return None
    if not isinstance(layout_of(gmem).value, Layout):
        return None

    def order() -> Layout:
        inverse = canonical.stacked([canonical.right_inverse(first)])
        values = canonical.tiled_to_shape(inverse, (product(first.shape),), (0,))
        return canonical.logical_divide(canonical.parts(values)[0], Layout(count, 1))

    by_copy = computed("partition", order)
    return [_by_copy(t, by_copy) for t in (smem, gmem)]


def _by_copy(t: Attribute, by_copy: Layout) -> Attribute:
    def parted(layout: Layout) -> Layout:
        first, *others = canonical.parts(layout)
        found = canonical.coalesced(canonical.stacked([canonical.composed(first, by_copy)]), ((1, 1),))
        return canonical.stacked([*canonical.parts(found), *others])

    return tensor_like(t, by_extents(on_domain(layout_of(t), "partition", parted).value))


def _of_whole_elements(rule: Rule) -> Rule:
    """Tell nothing where strides count parts of an element: modes that hold such a stride stay apart."""

    def told(types: Types, attributes: Attributes) -> list[Attribute] | None:
        parts = any(isinstance(t, PrintedType) and has_fraction(t.data) for t in types)
        return None if parts else rule(types, attributes)

    return told


_TOLD: dict[str, Rule] = {
    "local_tile": local_tile,
    "tiled.copy.partition_S": _copied("S"),
    "tiled.copy.partition_D": _copied("D"),
    "tiled.copy.retile": retile,
    "tiled.mma.partition": _partition,
    "tiled.mma.partition_shape": _partition_shape,
    "mma.make_fragment": _fragment,
    "atom.tma_partition": tma_partition,
}
RULES = {name: _of_whole_elements(rule) for name, rule in _TOLD.items()}
"""By the operation's name, without the dialect's."""

__all__ = ["RULES"]
