# SPDX-License-Identifier: Apache-2.0
"""The layout algebra in the forms that the dialect's types show: which of several equal layouts is the result.

`numba_cute.layout` gives the same functions of coordinates where both give one. What differs is what a type shows:
an extent of one keeps its stride here, only static modes merge, a mode is crossed at a run-time extent too, and
complements and inverses go through basis strides mode by mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ....layout.basis import ScaledBasis, coord_zero
from ....layout.int_tuple import flatten_to_tuple, is_one, is_zero, mul, product_each, wrap
from ....layout.layout import Layout, compact
from ....layout.ordered import make_ordered_layout
from ..checked import Refused, is_static
from ..leaves import Dynamic, ceil_divided, combined
from ..notation import write

Mode = tuple[Any, Any]
"""An extent and its stride."""


def text(layout: Layout) -> str:
    """Write a layout, for messages."""
    return write("layout", layout)


# ------------------------------------------------------------------ modes


def modes_of(layout: Layout) -> list[Mode]:
    """List the modes of a layout without their nesting."""
    return list(zip(flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride), strict=True))


def squeezed(modes: Iterable[Mode]) -> list[Mode]:
    """Drop extents of one, but not the last, and merge static modes that continue each other."""
    out: list[Mode] = []
    for extent, stride in modes:
        if out and is_one(out[-1][0]):
            out.pop()
        if out and is_static((out[-1], extent, stride)) and mul(*out[-1]) == stride:
            out[-1] = (out[-1][0] * extent, out[-1][1])
        else:
            out.append((extent, stride))
    return out


def joined(modes: Sequence[Mode]) -> Layout:
    """Make the layout of these modes: of one it is that mode, not a tuple of it."""
    if len(modes) == 1:
        return Layout(*modes[0])
    return Layout(tuple(m[0] for m in modes), tuple(m[1] for m in modes))


def stacked(layouts: Sequence[Layout]) -> Layout:
    """Make the layout whose modes are these layouts."""
    return Layout(tuple(x.shape for x in layouts), tuple(x.stride for x in layouts))


def parts(layout: Layout) -> list[Layout]:
    """Take a layout apart into its modes."""
    if not isinstance(layout.shape, tuple):
        return [layout]
    return [Layout(s, d) for s, d in zip(layout.shape, layout.stride, strict=True)]


def _keeping_last(layout: Layout) -> Layout:
    return joined(squeezed(modes_of(layout)))


def _dropping_last(layout: Layout) -> Layout:
    modes = squeezed(modes_of(layout))
    return joined(modes[:-1] if len(modes) > 1 and is_one(modes[-1][0]) else modes)


def _by_profile(simplify: Callable[[Layout], Layout], layout: Layout, profile: Any) -> Layout:
    if not isinstance(profile, tuple):
        return simplify(layout)
    modes = parts(layout)
    if len(profile) > len(modes):
        raise Refused(f"the profile {write('coord', profile)} has more modes than {text(layout)}")
    here = [_by_profile(simplify, m, p) for m, p in zip(modes, profile, strict=False)]
    return stacked([*here, *modes[len(profile) :]])


def coalesced(layout: Layout, profile: Any = None) -> Layout:
    """Simplify a layout, or its modes under a profile."""
    return _by_profile(_dropping_last, layout, profile)


# ------------------------------------------------------------------ composition


def composed(lhs: Layout, rhs: Any) -> Layout:
    """Compose a layout with a layout, or with a tile or shape mode by mode: what is not reached goes."""
    if rhs is None:
        return lhs
    if isinstance(rhs, tuple):
        modes = parts(lhs)
        if len(rhs) > len(modes):
            raise Refused(f"the right side has {len(rhs)} modes, and {text(lhs)} only {len(modes)}")
        return stacked([composed(m, r) for m, r in zip(modes, rhs, strict=False)])
    rhs = as_layout(rhs)
    profile = coord_zero(rhs.stride)
    if isinstance(profile, tuple) and len(profile) > len(parts(lhs)):
        raise Refused(f"{text(rhs)} steps along {len(profile)} modes, and {text(lhs)} has {len(parts(lhs))}")
    lhs = _by_profile(_keeping_last, lhs, profile)
    return _composed(lhs.shape, lhs.stride, rhs.shape, rhs.stride)


def as_layout(tiler: Any) -> Layout:
    """Return the layout that an extent stands for."""
    return tiler if isinstance(tiler, Layout) else Layout(tiler, compact(tiler))


def _composed(shape: Any, stride: Any, extent: Any, step: Any) -> Layout:
    if isinstance(extent, tuple):
        return stacked([_composed(shape, stride, s, d) for s, d in zip(extent, step, strict=True)])
    if isinstance(step, ScaledBasis):
        if type(extent) is not int:
            raise Refused(f"a mode of a basis stride, {step}, must have a static extent")
        for m in step.mode:
            if not isinstance(shape, tuple) or m >= len(shape):
                raise Refused(f"the left side has no mode for the basis stride {step}")
            shape, stride = shape[m], stride[m]
        return _composed(shape, stride, extent, step.value)
    if is_zero(step):
        return Layout(extent, step)
    if not isinstance(shape, tuple):
        return Layout(extent, _times(stride, step))
    if any(isinstance(s, tuple) for s in shape):
        raise Refused("an integer stride steps through the nested modes of the left side: name them by basis strides")
    return _through(list(zip(shape, stride, strict=True)), extent, step)


def _times(stride: Any, factor: Any) -> Any:
    return mul(stride, factor)


def _through(modes: list[Mode], extent: Any, step: Any) -> Layout:
    """Let `extent` steps of `step` go through flat modes, the last of which is not bounded."""
    out: list[Mode] = []
    for s, d in modes[:-1]:
        if type(s) is int and type(step) is int and step % s and abs(step) >= s:
            raise Refused(f"a step of {step} does not divide by the extent {s} that it goes beyond")
        here, beyond = ceil_divided(s, abs(step)), _signed(ceil_divided(abs(step), s), step)
        if is_one(here) or is_one(extent):
            step = beyond
            continue
        taken = _least(here, extent)
        if type(taken) is int and type(extent) is int and extent % taken:
            raise Refused(f"{extent} steps of {step} do not divide into the {taken} that the extent {s} holds")
        out.append((taken, _times(d, step)))
        extent, step = _quotient(extent, taken), beyond
    last = (extent, _times(modes[-1][1], step))
    if not out:
        return Layout(*last)
    return joined(out) if is_one(extent) else _dropping_last(joined([*out, last]))


def _signed(x: Any, of: Any) -> Any:
    if isinstance(of, Dynamic):
        return combined("mul", x, Dynamic(of.width, 1, None if of.value is None else (of.value > 0) - (of.value < 0)))
    return mul(x, 1 if of > 0 else -1)


def _least(a: Any, b: Any) -> Any:
    return combined("min", a, b)


def _quotient(a: Any, b: Any) -> Any:
    return a // b if isinstance(a, Dynamic) or isinstance(b, Dynamic) else combined("floordiv", a, b)


# ------------------------------------------------------------------ buckets: what steps along each mode of the results


Path = tuple[int, ...]


def _leaves(tree: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(tree, tuple):
        for i, t in enumerate(tree):
            yield from _leaves(t, (*path, i))
    else:
        yield path


def _at(stride: Any) -> tuple[Path, Any]:
    return (stride.mode, stride.value) if isinstance(stride, ScaledBasis) else ((), stride)


def _buckets(layout: Layout, modes: Sequence[tuple[Any, ...]], zero: Any) -> dict[Path, list[Any]]:
    """Sort modes (extent, stride, …) by the mode of the results along which they step, and there by their strides;
    leave out those that step nowhere."""
    found: dict[Path, list[Any]] = {path: [] for path in _leaves(zero)}
    for extent, stride, *more in modes:
        path, value = _at(stride)
        if is_zero(value) or is_one(extent):
            continue
        if path not in found:
            raise Refused(f"the strides of {text(layout)} do not nest")
        found[path].append((value, extent, *more))
    for bucket in found.values():
        if len(bucket) > 1:
            if not all(type(m[0]) is int for m in bucket):
                raise Refused(f"a stride of {text(layout)} is known only at run time, and must be static beside others")
            bucket.sort(key=lambda m: m[0])
    return found


def _arranged(tree: Any, make: Callable[[Path], Layout], path: Path = ()) -> Layout:
    """Make a layout nested as a tree, of a layout for each of its leaves."""
    if isinstance(tree, tuple):
        return stacked([_arranged(t, make, (*path, i)) for i, t in enumerate(tree)])
    return make(path)


def _along(layout: Layout, path: Path) -> Layout:
    """Let a layout of integers step along a mode of the results."""
    if not path:
        return layout

    def based(stride: Any) -> Any:
        return tuple(map(based, stride)) if isinstance(stride, tuple) else ScaledBasis(stride, path)

    return Layout(layout.shape, based(layout.stride))


# ------------------------------------------------------------------ complements


def _gaps(bucket: Sequence[Any], layout: Layout) -> list[Mode]:
    """The modes that step through what a bucket leaves out, and at the end one of extent one, which goes on."""
    out: list[Mode] = []
    reached: Any = 1
    for stride, extent in bucket:
        if type(stride) is int and type(reached) is int and stride < reached:
            raise Refused(f"{text(layout)} reaches an offset twice")
        out.append((_quotient(stride, reached), reached))
        reached = mul(stride, extent)
    return squeezed([*out, (1, reached)]) if out else [(1, 1)]


def complemented(layout: Layout) -> Layout:
    """Return the least complement: what a layout leaves out below where it ends."""
    zero = coord_zero(layout.stride)
    buckets = _buckets(layout, modes_of(layout), zero)
    return _arranged(zero, lambda path: _along(joined(_gaps(buckets[path], layout)), path))


def extended(layout: Layout, target: Any) -> Layout:
    """Return the complement that goes on until it covers a shape."""
    zero = coord_zero(layout.stride)
    buckets = _buckets(layout, modes_of(layout), zero)
    return _extended(zero, target, (), lambda path: _gaps(buckets[path], layout), layout)


def _extended(tree: Any, target: Any, path: Path, gaps: Callable[[Path], list[Mode]], layout: Layout) -> Layout:
    if isinstance(tree, tuple):
        target = wrap(target)
        if len(target) < len(tree):
            raise Refused(f"{text(layout)} steps along {len(tree)} modes, and what it divides has {len(target)}")
        here = [_extended(t, s, (*path, i), gaps, layout) for i, (t, s) in enumerate(zip(tree, target, strict=False))]
        rest = [_whole(s, (*path, i)) for i, s in enumerate(target) if i >= len(tree)]
        return stacked([*here, *rest])
    *inner, (_, reached) = gaps(path)
    return _along(coalesced(joined([*inner, *_covering(target, reached)])), path)


def _whole(shape: Any, path: Path) -> Layout:
    if isinstance(shape, tuple):
        return stacked([_whole(s, (*path, i)) for i, s in enumerate(shape)])
    return Layout(shape, ScaledBasis(1, path))


def _covering(target: Any, reached: Any) -> list[Mode]:
    """The steps by whole blocks of `reached` that cover a shape."""
    out: list[Mode] = []
    block, stride = reached, reached
    for s in flatten_to_tuple(target):
        count = ceil_divided(s, block)
        block = ceil_divided(block, s)
        out.append((count, stride))
        stride = mul(stride, count)
    return out


def complemented_to(layout: Layout, target: Any) -> Layout:
    """Return the complement of a layout of integers up to a shape."""
    filtered = _dropping_last(joined([(1 if is_zero(d) else s, d) for s, d in modes_of(layout)] or [(1, 0)]))
    modes = [(d, s) for s, d in modes_of(filtered)]
    if all(is_one(s) or is_zero(d) for d, s in modes):
        whole = coalesced(Layout(target, compact(target)))
        return Layout(1, 1) if is_one(whole.shape) else whole
    if len(modes) > 1:
        if not is_static(tuple(d for d, _ in modes)):
            raise Refused(f"a stride of {text(layout)} is known only at run time, and must be static beside others")
        modes.sort(key=lambda m: m[0])
    out: list[Mode] = []
    reached: Any = 1
    for d, s in modes:
        out.append((_quotient(d, reached), reached))
        reached = mul(d, s)
    return coalesced(joined([*out, *_blocks(target, reached)]))


def _blocks(target: Any, reached: Any) -> list[Mode]:
    counts: list[Any] = []
    block = reached
    for s in flatten_to_tuple(target):
        count = ceil_divided(s, block)
        block = ceil_divided(block, s)
        if counts and is_static(counts[-1]) == is_static(count):
            counts[-1] = mul(counts[-1], count)
        else:
            counts.append(count)
    if len(counts) == 1 and is_one(counts[0]):
        return [(1, reached)]
    shape = tuple(counts)
    return list(zip(shape, compact(shape, reached), strict=True))


# ------------------------------------------------------------------ inverses


def _numbered(layout: Layout, modes: Sequence[Mode]) -> list[tuple[Any, Any, Any]]:
    """Modes with where each begins when elements are counted."""
    out, at = [], 1
    for s, d in modes:
        out.append((s, d, at))
        at = mul(at, s)
    return out


def right_inverse(layout: Layout) -> Layout:
    """Return the longest layout that this one undoes."""
    zero = coord_zero(layout.stride)
    plain = [(s, 0 if isinstance(d, Dynamic) else d) for s, d in modes_of(layout)]
    buckets = _buckets(layout, _numbered(layout, squeezed(plain)), zero)

    def followed(path: Path) -> Layout:
        out: list[Mode] = []
        reached: Any = 1
        for d, s, at in buckets[path]:
            if type(reached) is int and type(d) is int and d != reached:
                continue
            out.append((s, at))
            reached = mul(s, d)
        return coalesced(joined(out or [(1, 0)]))

    return _arranged(zero, followed)


def left_inverse(layout: Layout) -> Layout:
    """Return the layout that undoes this one."""
    zero = coord_zero(layout.stride)
    buckets = _buckets(layout, _numbered(layout, squeezed(modes_of(layout))), zero)

    def undone(path: Path) -> Layout:
        out: list[Any] = []
        strides: list[Any] = [0]
        extent: Any = 1
        reached: Any = 1
        for d, s, at in buckets[path]:
            if type(d) is not int or type(reached) is not int or d % reached:
                raise Refused(f"the stride {d} of {text(layout)} is not a multiple of the {reached} that lie below it")
            extent = d // reached
            out.append(extent)
            reached *= extent
            strides.append(at)
            extent = s
        return _keeping_last(joined(list(zip([*out, extent], strides, strict=True))))

    return _arranged(zero, undone)


# ------------------------------------------------------------------ products and divides


def _tilewise(layout: Layout, tiler: Any, by: Callable[[Layout, Layout], Layout]) -> Layout:
    if tiler is None:
        return layout
    if not isinstance(tiler, tuple):
        return by(layout, as_layout(tiler))
    modes = parts(layout)
    if len(tiler) > len(modes):
        raise Refused(f"the tiler has {len(tiler)} modes, and {text(layout)} only {len(modes)}")
    here = [_tilewise(m, t, by) for m, t in zip(modes, tiler, strict=False)]
    return stacked([*here, *modes[len(tiler) :]])


def _divided(layout: Layout, tile: Layout) -> Layout:
    return composed(layout, stacked([tile, extended(tile, layout.shape)]))


def _repeated(block: Layout, tile: Layout) -> Layout:
    return stacked([block, composed(complemented(block), tile)])


def logical_divide(layout: Layout, tiler: Any) -> Layout:
    """Split each mode into (tile, rest)."""
    return _tilewise(layout, tiler, _divided)


def logical_product(block: Layout, tiler: Any) -> Layout:
    """Repeat a block as a tiler says: (block, repetitions)."""
    return _tilewise(block, tiler, _repeated)


def _zipped(layout: Layout, tiler: Any) -> Layout:
    """Gather the pairs at the leaves of a tiler."""
    if not isinstance(tiler, tuple):
        if len(parts(layout)) != 2 or not isinstance(layout.shape, tuple):
            raise Refused(f"{text(layout)} is not a pair: the tiler leaves that mode whole")
        return layout
    modes = parts(layout)
    pairs = [parts(_zipped(m, t)) for m, t in zip(modes, tiler, strict=False)]
    return stacked([stacked([p[0] for p in pairs]), stacked([*(p[1] for p in pairs), *modes[len(tiler) :]])])


def zipped_divide(layout: Layout, tiler: Any) -> Layout:
    """Divide into ((tiles), (rests))."""
    return _zipped(logical_divide(layout, tiler), tiler)


def zipped_product(block: Layout, tiler: Any) -> Layout:
    """Repeat into ((blocks), (repetitions))."""
    return _zipped(logical_product(block, tiler), tiler)


def opened(pair: Layout, first: bool) -> Layout:
    """Unpack the second part of a pair, and with `first` the first."""
    a, b = parts(pair)
    return stacked([*(parts(a) if first else [a]), *parts(b)])


def paired(block: Layout, tiler: Layout, block_first: bool) -> Layout:
    """The product of the two, padded to one rank, with mode i of both in mode i."""
    n = max(len(parts(block)), len(parts(tiler)))
    a, b = parts(logical_product(_padded(block, n), _padded(tiler, n)))
    if not block_first:
        a, b = b, a
    if len(parts(a)) != len(parts(b)):
        raise Refused(
            f"the block {text(block)} and the tiler {text(tiler)} do not pair mode by mode: {text(a)}, {text(b)}"
        )
    if not isinstance(a.shape, tuple):
        return stacked([a, b])
    return stacked([stacked(pair) for pair in zip(parts(a), parts(b), strict=True)])


def _padded(layout: Layout, n: int) -> Layout:
    modes = parts(layout)
    return layout if len(modes) >= n else stacked([*modes, *[Layout(1, 0)] * (n - len(modes))])


def blocked_product(block: Layout, tiler: Layout) -> Layout:
    """Repeat, mode by mode: (block, repetitions) in each."""
    return paired(block, tiler, True)


def raked_product(block: Layout, tiler: Layout) -> Layout:
    """Spread, mode by mode: (repetitions, block) in each."""
    found = paired(block, tiler, False)
    return coalesced(found, (1,) * max(len(parts(block)), len(parts(tiler))))


def tiled_to_shape(block: Layout, shape: Any, order: Any) -> Layout:
    """Repeat a block until it covers a shape."""
    n = len(shape) if isinstance(shape, tuple) else 1
    padded = _padded(block, n)
    wanted, held = wrap(product_each(shape)), wrap(product_each(padded.shape))
    counts = tuple(ceil_divided(a, b) for a, b in zip(wanted, held, strict=True))
    return blocked_product(padded, make_ordered_layout(counts, wrap(order)))


__all__ = [
    "as_layout", "blocked_product", "coalesced", "complemented", "complemented_to", "composed", "extended",
    "left_inverse", "logical_divide", "logical_product", "modes_of", "opened", "parts", "raked_product",
    "right_inverse", "stacked", "tiled_to_shape", "zipped_divide", "zipped_product",
]  # fmt: skip
