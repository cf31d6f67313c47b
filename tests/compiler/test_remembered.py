# SPDX-License-Identifier: Apache-2.0
"""Functions of several arrays whose results are cast (`cute.runtime.remembered`): no GPU is asked."""

from __future__ import annotations

import struct
from typing import NamedTuple

import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import runtime
from numba_cute.compiler.host.native import templates
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam import frozen

from .casts import TILE, Array, Noting, atom_of, casts, fields, maps, python_only
from .noting import launches, packed, planned

__all__ = ["casts", "launches", "maps"]


class Pair(NamedTuple):
    first: object
    second: object


@frozen
class Several:
    """An object of the user's, of several arrays."""

    tensor: object
    pair: tuple
    count: object


@cuda.jit
def kernel(x):
    cute.arch.thread_idx()


@runtime.remembered
def operands(a, b, tile, scale=2):
    """Arguments of a kernel, of two arrays."""
    held = from_dlpack(a, assumed_align=16)
    x, y = held.mark_layout_dynamic(), from_dlpack(b, assumed_align=16)
    load, store = atom_of(y, tile=tile), atom_of(x, cpasync.CopyBulkTensorTileS2GOp())
    part = cute.local_tile(held, (8, 64), (1, 0))
    words = cute.recast_tensor(y, cute.Int32)
    return (x, *load, *store, part, words, cute.Int32(a.shape[0]), scale, (y.iterator, "a")), (a.shape[0] // 32, 1, 1)


def test_what_a_function_makes_of_several_arrays(casts):
    function = operands.function
    first = operands(Array(0x10000), Array(0x20000), TILE)
    assert first == python_only(lambda: function(Array(0x10000), Array(0x20000), TILE))
    asked = Noting(function)
    operands.templates._function = asked
    for at, other in ((0x30000, 0x40000), (0x40000, 0x30000), (0x10000, 0x10000)):
        a, b = Array(at), Array(other)
        made = operands(a, b, TILE)
        want = python_only(lambda a=a, b=b: function(a, b, TILE))
        assert made == want and list(map(fields, made[0])) == list(map(fields, want[0]))
        assert made[0][0].iterator.address.owner is a and made[0][6].iterator.address.owner is b
    assert not asked.gave
    a = Array(0x50000)
    for args in (
        (a, a, TILE), (a, a, TILE), (Array(0x30000), Array(0x40000, (32, 64)), TILE), (Array(0x30010), a, TILE, 3),
        (a, Array(0x30000), cute.make_layout((32, 32), stride=(32, 1))),
    ):  # fmt: skip
        assert operands(*args) == python_only(lambda args=args: function(*args))
    assert len(asked.gave) == 2, "another shape, and another number"
    assert operands.function(a, a, TILE, 5) == operands(a, a, TILE, 5) == operands(a, a, TILE, 5)
    assert len(asked.gave) == 4, "nothing is learnt of an array that is given twice"
    assert operands(a, Array(0x30000), tile=TILE) == operands(a, Array(0x30000), TILE)
    with pytest.raises(cute.CuteError, match="not a multiple of assumed_align = 16"):
        operands(Array(0x30008), a, TILE)


def test_launches_pack_what_a_function_made_of_several_arrays(casts, launches, maps, monkeypatch):
    def arguments(at, other):
        return operands(Array(at), Array(other), TILE)[0][:7]

    site = planned(launches, arguments(0x10000, 0x20000))
    packed(launches, site, *arguments(0x30000, 0x40000))
    monkeypatch.setattr(templates, "learn", None)
    encoded = len(maps.encoded)
    for at, other in ((0x50000, 0x60000), (0x60000, 0x50000), (0x70000, 0x70000)):
        values = packed(launches, site, *arguments(at, other))
        words = [struct.unpack_from("<q", v)[0] for v in values if len(v) >= 8]
        assert words[0] == at and words.count(other) >= 2 and at + 8 * 64 * 4 in words
        records = [v[:8] for v in values if v[8:20] == b"m" * 12]
        assert [int.from_bytes(r, "little") for r in records] == [other, at]
    assert len(maps.encoded) == encoded


def test_launches_pack_objects_that_hold_several_arrays(casts, launches, monkeypatch):
    """As an epilogue of a GEMM: what a launch packed of one is packed of the next in machine code."""

    @runtime.remembered
    def made(a, b):
        x, y = from_dlpack(a, assumed_align=16).mark_layout_dynamic(), from_dlpack(b)
        return Several(x, ((y.iterator + 8, 3), x), cute.Int32(7)), y

    site = planned(launches, made(Array(0x10000), Array(0x20000)))
    packed(launches, site, *made(Array(0x30000), Array(0x40000)))
    monkeypatch.setattr(templates, "learn", None)
    for at, other in ((0x50000, 0x60000), (0x60000, 0x50000), (0x70000, 0x70000)):
        values = packed(launches, site, *made(Array(at), Array(other)))
        words = [struct.unpack_from("<q", v)[0] for v in values if len(v) >= 8]
        assert sorted(w for w in words if w > 0xFFFF) == sorted([at, at, other, other + 32]), "8 elements are 32 bytes"


def test_a_function_of_arrays_that_gives_what_is_not_known_runs_each_time(casts):
    ran = []

    @runtime.remembered
    def function(a, what):
        ran.append(what)
        made = from_dlpack(a)
        return {
            "list": [made], "dict": {"t": made}, "array": a, "nothing": 3, "closure": (made, lambda: made),
            "named": (Pair(made, 1),),
            "tuple": (made, a, Pair(1, 2), kernel, len, cute.Float32),
        }[what]  # fmt: skip

    never = ("list", "dict", "nothing", "array", "closure", "named")
    for what in never:
        for at in (0x10000, 0x20000):
            assert function(Array(at), what) is not None
    assert ran == [what for what in never for _ in range(2)]
    ran.clear()
    for at in (0x10000, 0x20000, 0x30000):
        a = Array(at)
        made, same, *others = function(a, "tuple")
        assert made.iterator.address == at and same is a and others == [Pair(1, 2), kernel, len, cute.Float32]
    assert ran == ["tuple"]
    another = runtime.remembered(lambda a: ran.append("another") or (from_dlpack(a), Array(0x50000)))
    for at in (0x10000, 0x20000):
        assert another(Array(at))[1].data_ptr() == 0x50000
    assert ran == ["tuple", "another", "another"], "an array of another origin"
    del ran[1:]
    held = Array(0x10000)
    within = runtime.remembered(lambda a, pair: ran.append("pair") or (from_dlpack(a), pair[1]))
    for at in (0x10000, 0x20000):
        assert within(Array(at), (held, 7))[1] == 7
    assert ran == ["tuple", "pair", "pair"], "an array in a tuple is not looked for"
    with pytest.raises(cute.CuteError, match="remembered: 3 is not a function"):
        runtime.remembered(3)
