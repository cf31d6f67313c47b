# SPDX-License-Identifier: Apache-2.0
"""Kinds of change between two launches of what is made of arrays for a launch: tensors, atoms, and what
`cute.runtime.remembered` makes."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numba_cute as cute
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack, remembered
from tests.compiler import test_reads as reads
from tests.compiler.casts import Array
from tests.compiler.test_static_values import WAYS

from .cases import (
    MUTABLE,
    Data,
    Equal,
    Frozen,
    Holds,
    HoldsMore,
    Plain,
    Slotted,
    _closing,
    _gives,
    _with_default,
    made,
    set_in,
    takes_one,
    takes_two,
    texts,
)  # fmt: skip

ARRAYS = {
    "address": {"data": 0x20000}, "shape": {"shape": (32, 64)}, "stride": {"strides": (128, 1)},
    "dtype": {"dtype": "torch.int32", "code": 0}, "rank": {"shape": (64,), "strides": (1,)},
    "order": {"strides": (1, 64)}, "alignment": {"data": 0x10004},
}  # fmt: skip


def array(data=0x10000, shape=(64, 64), strides=None, dtype="torch.float32", code=2):
    found = Array(data, shape, strides, dtype)
    found.view.code = code
    return found


LOAD, TILE = cpasync.CopyBulkTensorTileG2SOp(), cute.make_layout((32, 32), stride=(32, 1))
MAKES = {
    "from_dlpack": lambda x: (from_dlpack(x),),
    "dynamic": lambda x: (from_dlpack(x).mark_layout_dynamic(),),
}
for _name, _make in MAKES.items():
    for _what, _more in ARRAYS.items():

        @made(f"{_name}_of_another_{_what}")
        def _(make=_make, more=_more):
            held = [{}]
            return (
                takes_one(),
                lambda: make(array(**held[0])),
                lambda: held.__setitem__(0, more),
                lambda: held.__setitem__(0, {}),
            )


@made("from_dlpack_assumed_otherwise")
def _():
    held = [16]
    return (
        takes_one(),
        lambda: (from_dlpack(array(), assumed_align=held[0]),),
        lambda: held.__setitem__(0, 32),
        lambda: held.__setitem__(0, None),
    )


ATOMS = {
    "address": {"data": 0x40000}, "tile": {"tile": cute.make_layout((16, 32), stride=(32, 1)), "tiler": (16, 32)},
    "op": {"op": cpasync.CopyBulkTensorTileS2GOp()}, "fill": {"oob_fill": "nan"}, "promotion": {"l2_promotion": "none"},
    "type": {"internal_type": cute.TFloat32},
}  # fmt: skip
for _what, _more in ATOMS.items():

    @made(f"atom_of_another_{_what}")
    def _(more=_more):
        held = [{}]

        def args():
            given = dict(held[0])
            t = from_dlpack(array(data=given.pop("data", 0x10000)), assumed_align=16)
            op, tile, tiler = given.pop("op", LOAD), given.pop("tile", TILE), given.pop("tiler", (32, 32))
            return cpasync.make_tiled_tma_atom(op, t, tile, tiler, **given)

        return takes_two(), args, lambda: held.__setitem__(0, more), lambda: held.__setitem__(0, {})


IN_KERNELS = (
    "a_device_function", "a_device_function_of_one_signature", "a_device_function_that_a_device_function_calls",
    "a_property_of_a_struct", "what_a_method_of_an_object_in_an_argument_reads",
)  # fmt: skip
"""Ways that the host has not."""
for _name, _way in {**WAYS, **reads.MORE, **reads.NOT_FOLLOWED}.items():
    if _name in IN_KERNELS:
        continue

    @made(f"remembered_reads_{_name}")
    def _(way=_way):
        read, change = way()

        def arguments(x):
            return from_dlpack(x), cute.Int32(read())

        function = remembered(arguments)
        return takes_two(), lambda: function(array()), change


REMEMBERED = {
    "plain": Plain, "data": Data, "frozen": Frozen, "namespace": lambda x: SimpleNamespace(x=x), "equal": Equal,
    "static": Holds, "slots": Slotted, "note": lambda x: Frozen(1, x), "static_note": lambda x: HoldsMore(1, x),
    "partial": lambda x: functools.partial(_gives, n=x), "closure": _closing, "default": _with_default,
    "itself": lambda x: x,
    "tuple": lambda x: (x, (x,)),
}  # fmt: skip


def packed_of(v):
    """What a kernel is given of a value, so that bytes tell it from any other."""
    if isinstance(v, (bool, str, type(None), cute.dtypes.DType)) or type(v) is int:
        return v
    return cute.Float64(v) if isinstance(v, float) else v


def value_of(x):
    """What a function reads of an argument."""
    if isinstance(x, functools.partial) or hasattr(x, "__code__"):
        return x(0)
    if isinstance(x, tuple):
        return x[1][0]
    if isinstance(x, (HoldsMore, Frozen)) and x.note is not None:
        return x.note
    return getattr(x, "x", x)


def gives(x, cfg):
    return from_dlpack(x), Holds(packed_of(value_of(cfg)))


for _name, _make in REMEMBERED.items():
    for _i, _pair in enumerate(((1, True), (0.0, -0.0), (1, 1.0), (1, 2), (cute.Float32, cute.Float16))):

        @made(f"remembered_of_{_name}_{_i}_{texts(_pair)}")
        def _(make=_make, pair=_pair):
            held, function = [pair[0]], remembered(gives)
            return (
                takes_two(), lambda: function(array(), make(held[0])), lambda: held.__setitem__(0, pair[1]),
                lambda: held.__setitem__(0, pair[0]),
            )  # fmt: skip

        if _name in (*MUTABLE, "equal") and _name != "tuple":

            @made(f"remembered_of_changed_{_name}_{_i}_{texts(_pair)}")
            def _(make=_make, pair=_pair):
                obj, function = make(pair[0]), remembered(gives)
                return takes_two(), lambda: function(array(), obj), lambda: set_in(obj, pair[1])


OF_ADDRESSES = {
    "itself": lambda x: x.data_ptr(), "page": lambda x: x.data_ptr() // 4096, "rest": lambda x: x.data_ptr() % 4096,
    "text": lambda x: len(str(x.data_ptr())),
    "pointer": lambda x: from_dlpack(x).iterator.toint() // 16,
    "scalar": lambda x: cute.Int64(x.data_ptr() + 8),
    "text_of_a_pointer": lambda x: len(f"{from_dlpack(x).iterator.address.value:b}"),
}  # fmt: skip
for _name, _of in OF_ADDRESSES.items():

    @made(f"remembered_gives_an_address_{_name}")
    def _(of=_of):
        held = [0x10000]

        def arguments(x):
            return from_dlpack(x), of(x)

        function = remembered(arguments)
        return takes_two(), lambda: function(array(data=held[0])), lambda: held.__setitem__(0, 0x2345670)
