# SPDX-License-Identifier: Apache-2.0
"""Coordinates to indices and back, over plain shapes and strides."""

from __future__ import annotations

from typing import Any

from ..seam import CuteError, Leaf, beyond, current, is_static, traced
from .basis import ScaledBasis, add_coord, as_coord, checked, coord_zero, is_basis
from .int_tuple import IntTuple, add, div, is_one, is_zero, mod, mul, product, static_int, text, whole, widened

__all__ = ["elem_less", "idx2crd", "increment_coord"]


def index(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> Any:
    """Compute the inner product of `coord` with `stride`; integers split over the modes of `shape`, None counts as 0.

    With basis strides it is a coordinate. The last mode is not bounded.
    """
    if is_basis(stride):
        return add_coord(coord_zero(stride), _index(coord, shape, stride, add_coord))
    return offset(coord, shape, stride)


def offset(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> Any:
    """Compute `index` where no stride is a basis stride."""
    return _index(coord, shape, stride, add)


def _index(coord: IntTuple, shape: IntTuple, stride: IntTuple, plus: Any) -> Any:
    if coord is None:
        return 0
    if isinstance(coord, Leaf):
        coord = widened(coord)
    if not isinstance(shape, tuple):
        if isinstance(coord, tuple):
            if len(coord) != 1:
                raise CuteError(f"coordinate {text(coord)} is deeper than the shape {text(shape)} it indexes")
            coord = coord[0]
        if type(coord) is not int:
            coord = whole(coord, "coordinate")
        elif type(stride) is int:
            return coord * stride
        step = mul(coord, stride)
        return as_coord(step) if isinstance(step, ScaledBasis) else step
    total: Any = 0
    if isinstance(coord, tuple):
        if len(coord) != len(shape):
            raise CuteError(
                f"coordinate {text(coord)} has {len(coord)} modes, the shape {text(shape)} has {len(shape)}: "
                "give one index for each mode, or one integer for all"
            )
        for c, s, d in zip(coord, shape, stride):
            total = plus(total, _index(c, s, d, plus))
        return total
    if type(coord) is not int:
        coord = whole(coord, "coordinate")
    last = len(shape) - 1
    for i, s in enumerate(shape):
        n = s if i == last else product(s)
        here = coord if i == last else mod(coord, n)
        total = plus(total, _index(here, s, stride[i], plus))
        if i != last:
            coord = div(coord, n)
    return total


def outside(coord: IntTuple, shape: IntTuple) -> tuple[int, ...] | None:
    """Find where a static leaf of `coord` is out of a static extent of `shape`: the path to that mode, None if
    nowhere."""
    if isinstance(coord, tuple) and isinstance(shape, tuple):
        for i, (c, s) in enumerate(zip(coord, shape)):
            inner = outside(c, s)
            if inner is not None:
                return (i, *inner)
        return None
    while isinstance(coord, tuple) and len(coord) == 1:
        coord = coord[0]
    n = product(shape)
    return () if beyond(coord, n) else None


@traced
def idx2crd(idx: IntTuple, shape: IntTuple) -> IntTuple:
    """Compute the coordinate in `shape` of the index `idx`, counted with the first mode fastest. The last mode is not
    bounded.

    A tuple `idx` is taken mode by mode: idx2crd((3, 5), (4, (2, 4))) is (3, (1, 2)).

    >>> cute.idx2crd(14, (4, 8))
    (2, 3)
    """
    return _split(checked(idx, "idx"), checked(shape, "shape"))


def _split(idx: IntTuple, shape: IntTuple) -> IntTuple:
    if not isinstance(shape, tuple):
        if isinstance(idx, tuple):
            raise CuteError(f"idx2crd: idx={text(idx)} is deeper than the shape {text(shape)}")
        return idx
    if isinstance(idx, tuple):
        if len(idx) != len(shape):
            raise CuteError(f"idx2crd: idx={text(idx)} and shape={text(shape)} differ in rank: give one index a mode")
        return tuple(map(_split, idx, shape))
    out = []
    for s in shape[:-1]:
        n = product(s)
        out.append(_split(mod(idx, n), s))
        idx = div(idx, n)
    return (*out, _split(idx, shape[-1])) if shape else ()


@traced
def increment_coord(coord: IntTuple, shape: IntTuple, mode: IntTuple = None) -> IntTuple:
    """Return the coordinate after `coord` in `shape`, the first mode fastest; the last mode is not bounded.

    mode: count along this mode (an index or a path) only; its last mode is not bounded.

    >>> cute.increment_coord((3, 0), (4, 8))
    (0, 1)
    """
    path = () if mode is None else tuple(mode) if isinstance(mode, (tuple, list)) else (mode,)
    return _increment(checked(coord, "coord"), checked(shape, "shape"), path)


def _increment(coord: IntTuple, shape: IntTuple, path: tuple[Any, ...]) -> IntTuple:
    if not path:
        return _carry(coord, shape, 1, True)[0]
    if not isinstance(coord, tuple) or not isinstance(shape, tuple) or len(coord) != len(shape):
        raise CuteError(f"increment_coord: coord={text(coord)} does not match shape={text(shape)} in rank")
    first = static_int(path[0], "mode")
    if not 0 <= first < len(shape):
        raise CuteError(f"increment_coord: mode={first}: {text(shape)} has the modes 0 to {len(shape) - 1}")
    return (*coord[:first], _increment(coord[first], shape[first], path[1:]), *coord[first + 1 :])


def _carry(coord: IntTuple, shape: IntTuple, step: Any, last: bool) -> tuple[IntTuple, Any]:
    """`coord` plus `step`, and what is carried into the next mode."""
    if not isinstance(shape, tuple):
        if isinstance(coord, tuple):
            raise CuteError(f"increment_coord: coord={text(coord)} is deeper than shape={text(shape)}")
        total = add(coord, step)
        return (total, 0) if last else (mod(total, shape), div(total, shape))
    if not isinstance(coord, tuple):
        return _carry(_split(coord, shape), shape, step, last)
    if len(coord) != len(shape):
        raise CuteError(f"increment_coord: coord={text(coord)} does not match shape={text(shape)} in rank")
    out = []
    for i, (c, s) in enumerate(zip(coord, shape)):
        c, step = _carry(c, s, step, last and i == len(shape) - 1)
        out.append(c)
    return tuple(out), step


@traced
def elem_less(lhs: IntTuple, rhs: IntTuple) -> Any:
    """Return whether every leaf of `lhs` is below the leaf of `rhs` in its place: whether a coordinate lies within a
    shape.

    A leaf of `lhs` against a mode of `rhs` must be of the same depth. With run-time leaves it is a run-time bool.

    >>> cute.elem_less((3, 7), (4, 8)), cute.elem_less((3, 8), (4, 8))
    (True, False)
    """
    return _less(checked(lhs, "lhs"), checked(rhs, "rhs"))


def _less(lhs: IntTuple, rhs: IntTuple) -> Any:
    if isinstance(lhs, tuple) != isinstance(rhs, tuple) or (isinstance(lhs, tuple) and len(lhs) != len(rhs)):
        raise CuteError(f"elem_less: {text(lhs)} and {text(rhs)} differ in profile: give congruent tuples")
    if isinstance(lhs, tuple):
        parts = [_less(a, b) for a, b in zip(lhs, rhs)]
        if any(p is False for p in parts):
            return False
        unknown = [p for p in parts if p is not True]
        verdict: Any = unknown[0] if unknown else True
        for p in unknown[1:]:
            verdict = current().select(verdict, p, False)
        return verdict
    return bool(lhs < rhs) if is_static(lhs) and is_static(rhs) else current().compare("<", lhs, rhs)


def coordinate_of(idx: Any, shape: IntTuple, stride: IntTuple) -> IntTuple:
    """Compute the coordinate that strides of a compact layout map to `idx`: (idx // stride) % shape at each leaf."""
    if isinstance(shape, tuple):
        return tuple(coordinate_of(idx, s, d) for s, d in zip(shape, stride))
    if isinstance(stride, ScaledBasis):
        raise CuteError(f"get_flat_coord: the layout's stride {stride} makes coordinates, which have no index")
    return 0 if is_one(shape) or is_zero(stride) else mod(div(idx, stride), shape)


# ------------------------------------------------------------------ slices


def slice_modes(coord: IntTuple, a: IntTuple) -> IntTuple:
    """Keep the modes of `a` where `coord` is None; tuples of `coord` join what they keep into the level above."""
    return _keep(coord, a, True)


def dice_modes(coord: IntTuple, a: IntTuple) -> IntTuple:
    """Keep the modes of `a` where `coord` is not None; tuples of `coord` join what they keep into the level above."""
    return _keep(coord, a, False)


def _keep(coord: IntTuple, a: IntTuple, nones: bool) -> IntTuple:
    if isinstance(coord, tuple):
        if not isinstance(a, tuple) or len(a) != len(coord):
            raise CuteError(f"the coordinate {text(coord)} does not match {text(a)} in rank: give one index a mode")
        out: tuple[Any, ...] = ()
        for c, x in zip(coord, a):
            kept = _keep(c, x, nones)
            out += kept if isinstance(c, tuple) or (c is None) != nones else (kept,)
        return out
    if coord is not None and type(coord) is not int:
        whole(coord, "coordinate")
    return a if (coord is None) == nones else ()
