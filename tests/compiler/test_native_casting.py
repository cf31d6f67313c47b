# SPDX-License-Identifier: Apache-2.0
"""Tensors and TMA atoms that are made again for other arrays of one kind, and what launches have of them: no GPU is
asked."""

from __future__ import annotations

import copy
import gc
import pickle
import struct
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import seam
from numba_cute.compiler.host.native import arrays, known, launcher, templates
from numba_cute.nvgpu import cpasync
from numba_cute.nvgpu.hopper.new_map import NewTensorMap
from numba_cute.runtime import from_dlpack
from numba_cute.seam.hooks import casting as seam_casting

from .casts import OP, Array, Host, Noting, atom_of, casts, fields, maps, python_only
from .noting import STREAM, launches, packed, planned

__all__ = ["casts", "launches", "maps"]


MAKES = {
    "tensor": lambda x: from_dlpack(x, assumed_align=16),
    "tensor without alignment": lambda x: from_dlpack(x),
    "dynamic": lambda x: from_dlpack(x, assumed_align=16).mark_layout_dynamic(),
    "dynamic along a mode": lambda x: from_dlpack(x, 16).mark_compact_shape_dynamic(mode=0, divisibility=8),
    "dynamic twice": lambda x: (
        from_dlpack(x, 16).mark_compact_shape_dynamic(0, (0, 1), 4).mark_layout_dynamic(leading_dim=1)
    ),
    "atom": lambda x: atom_of(from_dlpack(x, assumed_align=16)),
    "atom of a dynamic tensor": lambda x: atom_of(from_dlpack(x, assumed_align=16).mark_layout_dynamic()),
    "atom with options": lambda x: atom_of(from_dlpack(x, 16), oob_fill="nan", l2_promotion="256B"),
    "atom that stores": lambda x: atom_of(from_dlpack(x, 16), cpasync.CopyBulkTensorTileS2GOp()),
    "atom of an operand": lambda x: cute.nvgpu.make_tiled_tma_atom_A(
        OP, from_dlpack(x, 16), cute.make_layout((64, 16), stride=(16, 1)), (64, 64, 16), tf32_mma()
    ),
}  # fmt: skip


def tf32_mma():
    from numba_cute.nvgpu import warpgroup

    op = warpgroup.MmaF16BF16Op(cute.BFloat16, cute.Float32, (64, 64, 16), warpgroup.OperandSource.SMEM,
                                warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.K)  # fmt: skip
    return cute.make_tiled_mma(op)


@pytest.mark.parametrize("name", MAKES)
def test_what_is_cast_is_what_python_makes(casts, name):
    make = MAKES[name]
    first = make(Array(0x10000))
    assert casts.asked
    casts.asked.clear()
    for address in (0x20000, 0x30000, 0x10000):
        x = Array(address)
        cast = make(x)
        assert not casts.asked, "Python was asked again"
        want = python_only(lambda x=x: make(x))
        assert cast == want and fields(cast) == fields(want) and repr(cast) == repr(want)
        assert hash(cast) == hash(want)
    assert first == python_only(lambda: make(Array(0x10000)))


def test_arrays_of_another_kind_are_made_by_python(casts):
    from_dlpack(Array(0x10000), assumed_align=16)

    class Other(Array):
        pass

    for other in (
        Array(0x10000, (64, 32)), Array(0x10000, (64, 64), (128, 1)), Array(0x10000, (64, 64, 1), (64, 1, 1)),
        Array(0x10000, dtype="torch.int32"), Other(0x10000), Array(0x10000, device=(2, 1)),
    ):  # fmt: skip
        if other.dtype == "torch.int32":
            other.view.code = 0
        casts.asked.clear()
        t = from_dlpack(other, assumed_align=16)
        assert len(casts.asked) == 1
        assert t == python_only(lambda other=other: from_dlpack(other, assumed_align=16))
        casts.asked.clear()
        from_dlpack(other, assumed_align=16)
        assert not casts.asked
        from_dlpack(other, assumed_align=32)
        assert casts.asked


def test_what_an_address_forbids_is_said_as_by_python(casts):
    from_dlpack(Array(0x10000), assumed_align=16)
    with pytest.raises(cute.CuteError, match="0x10008 is not a multiple of assumed_align = 16"):
        from_dlpack(Array(0x10008), assumed_align=16)
    from_dlpack(Array(0x10004))
    atom_of(from_dlpack(Array(0x10000)))
    casts.asked.clear()
    t = from_dlpack(Array(0x20004))
    assert not casts.asked
    with pytest.raises(cute.CuteError, match="address 0x20004 is not a multiple of 16 bytes"):
        atom_of(t)


def test_atoms_are_told_apart_by_all_that_they_were_made_with(casts):
    t = from_dlpack(Array(0x10000), assumed_align=16)
    atom_of(t)
    again = from_dlpack(Array(0x20000), assumed_align=16)
    casts.asked.clear()
    same = atom_of(again, cpasync.CopyBulkTensorTileG2SOp(), cute.make_layout((32, 32), stride=(32, 1)), (32, 32))
    assert not casts.asked and same == atom_of(again)
    tile_16 = cute.make_layout((16, 32), stride=(32, 1))
    for more in (
        {"op": cpasync.CopyBulkTensorTileS2GOp()}, {"tile": tile_16, "tiler": (16, 32)}, {"oob_fill": "nan"},
        {"internal_type": cute.TFloat32}, {"l2_promotion": "none"}, {"element_strides": (1, 1)},
        {"op": cpasync.CopyBulkTensorTileG2SMulticastOp(), "num_multicast": 2},
        {"op": cpasync.CopyBulkTensorTileG2SMulticastOp(), "num_multicast": 4},
    ):  # fmt: skip
        casts.asked.clear()
        other = atom_of(again, **more)
        assert casts.asked and other == python_only(lambda more=more: atom_of(again, **more))
    with pytest.raises(cute.CuteError, match="num_multicast True"):
        atom_of(again, num_multicast=True)
    with pytest.raises(cute.CuteError, match="must be static"):
        atom_of(again, tiler=(cute.Int32(32), 32))


def test_nothing_holds_an_array_but_what_was_made_of_it(casts):
    for _ in range(2):
        x = Array(0x10000)
        gone = weakref.ref(x)
        info = atom_of(from_dlpack(x, assumed_align=16).mark_layout_dynamic())
        del x
        gc.collect()
        assert gone() is not None, "the atom keeps the array"
        del info
        gc.collect()
        assert gone() is None


def test_templates_are_bounded_and_forgotten(casts, monkeypatch):
    monkeypatch.setattr(known, "MOST_TEMPLATES", 4)
    held = [from_dlpack(Array(0x10000, (n, 4))) for n in range(1, 20)]
    assert len(casts.over._kept) <= 4
    assert [t.shape for t in held] == [(n, 4) for n in range(1, 20)]
    casts.over.forget()
    del held
    gc.collect()
    casts.asked.clear()
    assert from_dlpack(Array(0x10000, (3, 4))).shape == (3, 4) and casts.asked
    monkeypatch.setattr(known, "MOST_CHILDREN", 2)
    t = from_dlpack(Array(0x10000))
    for n in (8, 16, 32, 64):
        atom_of(t, tile=cute.make_layout((n, 32), stride=(32, 1)), tiler=(n, 32))
    assert len(vars(t)[launcher.MARK].template.children) == 2


class Described:
    """An array as CuPy has it, without DLPack's exchange functions."""

    def __init__(self, at, shape=(64, 64), strides=None, dtype="f4", device=0, readonly=False):
        self.dtype, self.shape = np.dtype(dtype), shape
        self.strides = strides or (shape[1] * self.dtype.itemsize, self.dtype.itemsize)
        self.data, self.device = SimpleNamespace(ptr=at, device_id=device), SimpleNamespace(id=device)
        self.readonly = readonly

    @property
    def __cuda_array_interface__(self):
        return {"data": (self.data.ptr, self.readonly), "shape": self.shape, "strides": self.strides, "typestr": "<f4"}


Described.__module__ = "cupy._core"


def test_arrays_that_attributes_describe_are_cast_too(casts, launches, maps, monkeypatch):
    monkeypatch.setattr(casts, "_cast_at", noting := Noting(casts._cast_at))

    def arguments(x):
        t = from_dlpack(x, assumed_align=16)
        return t, *atom_of(t)

    first = arguments(Described(0x10000))
    assert not noting.gave
    site = planned(launches, first)
    packed(launches, site, *arguments(Described(0x20000)))
    monkeypatch.setattr(templates, "learn", None)
    for address in (0x30000, 0x40000):
        x = Described(address)
        noting.gave.clear()
        cast = arguments(x)
        assert noting.gave == [True] and cast[0].iterator.address.owner is x
        want = python_only(lambda x=x: arguments(x))
        assert cast == want and [fields(c) for c in cast] == [fields(w) for w in want]
        values = packed(launches, site, *cast)
        assert struct.unpack_from("<q", values[0])[0] == address
    for other in (
        Described(0x10000, (32, 64)), Described(0x10000, dtype="i4"), Described(0x10000, strides=(512, 4)),
        Described(0x10000, device=1), Described(0x10000, readonly=True),
    ):  # fmt: skip
        noting.gave.clear()
        made = from_dlpack(other, assumed_align=16)
        assert not noting.gave and made == python_only(lambda other=other: from_dlpack(other, assumed_align=16))
    with pytest.raises(cute.CuteError, match="0x10004 is not a multiple of assumed_align = 16"):
        from_dlpack(Described(0x10004), assumed_align=16)


def test_copies_and_pickles_of_what_was_cast(casts):
    from_dlpack(Array(0x10000))
    t = from_dlpack(Array(0x20000))
    assert copy.copy(t) == t and atom_of(copy.copy(t)) == atom_of(t)
    mark = vars(t)[launcher.MARK]
    assert copy.deepcopy(mark) is mark
    assert pickle.loads(pickle.dumps(mark)) is None, "another process has no such template"


def test_in_a_kernel_nothing_is_cast(casts):
    t = from_dlpack(Host(0x10000, device=(1, 0)), assumed_align=16)
    atom_of(t)
    casts.asked.clear()
    with seam.running(object()):
        atom, _ = atom_of(t)
    assert isinstance(atom.tensor_map, NewTensorMap) and not casts.asked


def test_launches_pack_what_was_cast_with_no_python(casts, launches, maps, monkeypatch):
    def arguments(address):
        t = from_dlpack(Array(address), assumed_align=16)
        atom, coordinates = atom_of(t)
        marked = from_dlpack(Array(address), assumed_align=16).mark_layout_dynamic()
        return t, marked, atom, coordinates

    site = planned(launches, arguments(0x10000))
    packed(launches, site, *arguments(0x20000))  # where it is learnt
    before = len(maps.encoded)
    casts.asked.clear()
    monkeypatch.setattr(templates, "learn", None)
    launches.sizes[2 + 2 + 0] = launches.sizes[4]
    for address, told in ((0x30000, 1), (0x30000, 0), (0x40000, 1), (0x20000, 1), (0x20000, 0)):
        maps.calls.clear()
        args = arguments(address)
        values = packed(launches, site, *args)
        assert struct.unpack_from("<q", values[0])[0] == address == struct.unpack_from("<q", values[1])[0]
        held = next(v for v in values if len(v) >= 128)
        assert held[:128] == address.to_bytes(8, "little") + b"m" * 120 and launches.aligned
        assert len(maps.calls) == told, "a map is encoded anew where its address is another"
        assert not casts.asked and len(maps.encoded) == before
    maps.result = 1
    atom = arguments(0x90000)[2]
    assert casts.asked and "_cute_launch" not in vars(atom), "what the driver refuses, Python says"


@pytest.mark.parametrize("device", [0, 1])
def test_a_launch_on_tma_atoms_alone_runs_in_the_stream_of_the_arrays_library(casts, device):
    """Cast or made by Python: else a CUDA graph would not capture it, and a stream would not order it."""
    for address in (0x10000, 0x20000, 0x30000):
        t = from_dlpack(Array(address, device=(2, device)), assumed_align=16)
        for args in (atom_of(t), (atom_of(t),)):
            assert arrays.current_stream(args) == STREAM[0] + device
            assert next(arrays.streams_of(args)).device == device
    assert arrays.current_stream(atom_of(from_dlpack(Host(0x10000, device=(1, 0)), assumed_align=16))) == 0


def test_a_tensor_of_the_hosts_memory_is_judged_at_each_launch(casts, launches, monkeypatch):
    monkeypatch.setattr("numba_cute.seam.hooks.driver.DRIVER.known", lambda address: True)

    def tensor(address):
        return from_dlpack(Host(address, device=(1, 0)))

    site = planned(launches, (tensor(0x10000),))
    packed(launches, site, tensor(0x20000))
    assert "_cute_launch" not in vars(tensor(0x30000))
    monkeypatch.setattr("numba_cute.seam.hooks.driver.DRIVER.known", lambda address: False)
    with pytest.raises(cute.CuteError, match="lies in the host's memory"):
        site.call(tensor(0x40000))


def test_a_process_that_makes_few_tensors_makes_no_machine_code(casts, monkeypatch):
    begun = []
    monkeypatch.setattr(known, "templates", lambda: begun.append(1))
    vars(seam_casting.CASTING).update(described=seam_casting.run, derived=seam_casting.run)
    known.begin()
    for _ in range(known._PATIENCE):
        from_dlpack(Array(0x10000))
    assert not begun
    from_dlpack(Array(0x10000))
    from_dlpack(Array(0x10000))
    assert begun == [1]
