# SPDX-License-Identifier: Apache-2.0
"""Values to call the library with: right and wrong ones of every kind. Arrays lie in two blocks of memory, one of them
read-only, which are compared with what they were."""

from __future__ import annotations

import datetime
import enum
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numba import cuda, types

import numba_cute as cute
from numba_cute import arch, nvgpu, pipeline, utils

WRITEABLE, READ_ONLY = np.zeros(1 << 13, np.uint8), np.zeros(1 << 12, np.uint8)
_used: dict[int, int] = {}


class Colour(enum.Enum):
    """An enumeration that is not the library's."""

    red = 1


class Nothing:
    """A class that the library knows nothing of."""


def plain(x: Any, *more: Any) -> Any:
    """A function of the user's."""
    return x


def starts() -> None:
    """Give the memory of the arrays its first contents."""
    WRITEABLE[:] = np.arange(WRITEABLE.size) % 7
    READ_ONLY.flags.writeable = True
    READ_ONLY[:] = np.arange(READ_ONLY.size) % 5
    READ_ONLY.flags.writeable = False


def _array(dtype: Any, shape: tuple[int, ...], block: np.ndarray = WRITEABLE) -> np.ndarray:
    dtype = np.dtype(dtype)
    start = _used.get(id(block), 0)
    nbytes = math.prod(shape) * dtype.itemsize
    _used[id(block)] = start + -(-max(nbytes, 1) // 16) * 16
    assert _used[id(block)] <= block.size, "the block of memory is too small"
    return block[start : start + nbytes].view(dtype).reshape(shape)


def _fixed(*values: Any) -> list[Callable[[], Any]]:
    return [lambda v=v: v for v in values]  # type: ignore[misc]


def _contains_itself() -> Any:
    x: list[Any] = [1]
    x.append(x)
    return x


def _deep(levels: int) -> Any:
    x: Any = 1
    for _ in range(levels):
        x = (x,)
    return x


def _numbers() -> list[Callable[[], Any]]:
    ints = (0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 7, -1, -2, -8, 2**31 - 1, 2**31, 2**32, 2**63, -(2**63), 2**65)
    floats = (0.0, 1.0, 1.5, -2.0, 1e300, math.nan, math.inf, 4.0)
    scalars = (cute.Int32(4), cute.Int64(-1), cute.Float32(1.5), cute.Uint8(3), cute.Boolean(True), cute.BFloat16(1.0))
    numpy = (np.int32(4), np.uint64(2**64 - 1), np.float32(2.5), np.bool_(True), np.float16(1.0))
    return _fixed(*ints, *ints[:12], *floats, *scalars, *numpy, True, False, 1j)


def _tuples() -> list[Callable[[], Any]]:
    right = (
        (), (4,), (4, 8), (8, 4), (2, 2), (64, 64), (128, 64), (16, 8, 4), (64, 128, 16), (1, 1, 1), (2, 1), (0, 1),
        (1, 0), (8, 1), (1, 8), ((2, 2), 4), ((2, (2, 2)), (4, 1)), (0, 0), (0, 0, 0), (None, 0), (None, None),
        (0, None), (1, 1, 1, 1), (128, 128, 64, 1), (cute.Int32(4), 8), (128, 128), (128, 256, 64),
    )  # fmt: skip
    wrong = (
        (0, 4), (-4, 2), (2**63, 2**63), (2**33, 4), ("a", 1), (1.5, 2), (True, 4), (None,), ((), 4), ((),), (4, ()),
        [4, 8], [], {}, {"a": 1}, {4, 8}, range(3), (1,) * 40, ((4, 8), 2, ((1,),)), [[4], 8], (1e300, math.nan),
        _deep(30), _deep(3000), (cute.Float32, 4), (b"x",), iter(()),
    )  # fmt: skip
    return _fixed(*right, *right, *wrong, _contains_itself())


def _texts() -> list[Callable[[], Any]]:
    return _fixed(
        "", "a", "x%d %s %", "{}", "{} {}", "sm_90a", "sm_100a", "sm_1", "4:1", "(4,8):(1,4)", "(" * 3000, "(4,", "é\0",
        "row", "mnk", "TN", b"", b"ab", "9" * 5000, "S<2,3,3>", "%%", "{0}",
    )  # fmt: skip


def _things() -> list[Callable[[], Any]]:
    return _fixed(
        None, None, ..., NotImplemented, object(), object, int, float, str, tuple, np.float32, np.dtype("f4"), Nothing,
        Nothing(), Colour.red, Colour, plain, lambda: None, lambda *_: 4, len, math, cute, arch, slice(None),
        slice(0, 2), np.int64, types.int32, types.float32[:], cuda, datetime.date(2026, 1, 1), memoryview(b"ab"),
        ValueError("x"), ml_dtypes.bfloat16, types.UniTuple(types.int64, 2), print,
    )  # fmt: skip


def _layouts() -> list[Callable[[], Any]]:
    lay = cute.make_layout
    plain_ones = (
        lay(4), lay((4, 8)), lay((8, 4), stride=(4, 1)), lay(((2, 2), 4), stride=((1, 8), 2)), lay((64, 64)),
        lay((128, 64), stride=(64, 1)), lay(()), lay((0, 4)), lay((4, 4), stride=(0, 1)), lay((4, 2), stride=(-1, 4)),
        lay((cute.Int32(4), 8)), lay((4, 8), stride=(cute.Int64(8), 1)), lay(1), lay((2, 1, 1, 1)), lay((1, 2, 1, 1)),
        lay((2**40, 2**40)), lay((8, (8, 2))), lay(128), lay(32), lay((16, 16)), lay((64, 16, 4)),
    )  # fmt: skip
    swizzle, identity = cute.make_swizzle(3, 4, 3), cute.make_identity_layout((4, 8))
    others = (
        cute.make_composed_layout(swizzle, 0, lay((8, 64), stride=(64, 1))),
        cute.make_composed_layout(lay((4, 8)), (1, 1), identity),
        cute.make_composed_layout(cute.make_swizzle(1, 4, 3), 8, lay((cute.Int32(8), 32))),
    )
    more = (identity, swizzle, cute.make_swizzle(0, 4, 3), cute.E(0), cute.E((1, 0)), cute.E(1) * 4)
    tilers = ((lay(4), lay(8)), (lay(2), None), (4, lay(4)), (lay(2), (lay(2), 4)), [lay(4), 2])
    return _fixed(*plain_ones, *plain_ones[:7], *others, *more, *tilers)


_SHAPES: tuple[tuple[Any, tuple[int, ...]], ...] = (
    ("f4", (4, 8)), ("f4", (32,)), ("f2", (16, 16)), ("i4", (8,)), ("u1", (16,)), ("f8", (2, 2)), ("i8", (4,)),
    (ml_dtypes.bfloat16, (8, 16)), (ml_dtypes.float8_e4m3fn, (32, 16)), ("f4", (2, 2, 2)), ("i2", (4, 4)),
    ("?", (4,)), ("c8", (2,)), ("u8", (4,)), ("u4", (4, 4)), ("M8[s]", (2,)), ("f2", (4, 8, 2)),
)  # fmt: skip


def _arrays() -> list[Any]:
    made = [_array(d, s) for d, s in _SHAPES]
    zero = _array("f4", (0, 4))
    fixed = [_array(d, s, READ_ONLY) for d, s in _SHAPES[:8]]
    for a in fixed:
        a.flags.writeable = False
    turned = [made[0][::-1], made[0][:, ::-2], made[0].T, made[2][::2], np.broadcast_to(made[1][:1], (4,))]
    strange = [np.array(["a", "b"]), np.array([None, 1], object), np.array(3.0, "f4"), np.zeros(2, [("x", "f4")])]
    return [*made, *made[:3], zero, *fixed, *turned, *strange]


def _tensors(arrays: list[Any]) -> list[Callable[[], Any]]:
    numeric = [a for a in arrays if a.dtype.kind in "fiu" or a.dtype.itemsize <= 2]
    tensors: list[Any] = []
    for a in numeric:
        try:
            tensors.append(cute.runtime.from_dlpack(a) if a.flags.writeable else cute.make_tensor(a, a.size))
        except Exception:  # noqa: S112 - not every array can be a tensor
            continue
    tensors += [t.mark_layout_dynamic() for t in tensors[:3]]
    f4, f2 = arrays[0], arrays[2]
    tensors += [cute.make_identity_tensor((4, 8)), cute.make_identity_tensor(64)]
    pointers = [
        cute.runtime.make_ptr(cute.Float32, f4.ctypes.data, cute.AddressSpace.gmem),
        cute.runtime.make_ptr(cute.Float16, f2.ctypes.data, cute.AddressSpace.gmem, assumed_align=16),
        cute.runtime.make_ptr(cute.Float16, 1024, cute.AddressSpace.smem, assumed_align=128),
        cute.runtime.make_ptr(cute.Float4E2M1FN, 0, cute.AddressSpace.gmem),
        cute.runtime.make_ptr(cute.Float32, 0, cute.AddressSpace.tmem, assumed_align=16),
    ]
    tensors += [cute.make_tensor(p, cute.make_layout(s)) for p in pointers for s in ((4, 8), (64, 64))]
    return _fixed(*tensors, *tensors, *pointers)


def _members() -> list[Callable[[], Any]]:
    from .calls_targets import classes

    found = [m for c in classes() if isinstance(c, enum.EnumMeta) for m in c]
    dtypes = [d for d in vars(cute).values() if isinstance(d, cute.DType)]
    return _fixed(*found, *dtypes, *dtypes)


def _atoms() -> list[Callable[[], Any]]:
    lay, dense = cute.make_layout, nvgpu.warp.MmaF16BF16Op
    k_major = nvgpu.OperandMajorMode.K

    def wgmma() -> Any:
        source = nvgpu.warpgroup.OperandSource.SMEM
        return nvgpu.warpgroup.MmaF16BF16Op(
            cute.Float16, cute.Float32, (64, 64, 16), source, k_major, k_major
        )  # fmt: skip

    def tiled_mma() -> Any:
        return cute.make_tiled_mma(dense(cute.Float16, cute.Float32, (16, 8, 16)), lay((2, 1, 1)))

    def tiled_copy() -> Any:
        return cute.make_tiled_copy_tv(copy_atom(), lay((4, 8), stride=(8, 1)), lay((1, 4)))

    def copy_atom() -> Any:
        return cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)

    def tma(op: Any, inner: int) -> Any:
        t = cute.make_tensor(cute.runtime.make_ptr(cute.Float16, 1 << 20, cute.AddressSpace.gmem, 16), lay((64, 64)))
        return nvgpu.cpasync.make_tiled_tma_atom(op, t, lay((64, inner)), (64, inner))

    return [
        lambda: nvgpu.CopyUniversalOp(),
        lambda: nvgpu.MmaUniversalOp(cute.Float32),
        lambda: nvgpu.warp.LdMatrix8x8x16bOp(False, 4),
        lambda: nvgpu.cpasync.CopyG2SOp(),
        lambda: nvgpu.cpasync.CopyBulkTensorTileG2SOp(),
        lambda: nvgpu.cpasync.CopyBulkTensorTileS2GOp(),
        lambda: dense(cute.Float16, cute.Float32, (16, 8, 16)),
        wgmma,
        copy_atom,
        lambda: cute.make_copy_atom(nvgpu.warp.LdMatrix8x8x16bOp(False, 4), cute.Float16),
        lambda: cute.make_mma_atom(dense(cute.Float16, cute.Float32, (16, 8, 16))),
        tiled_mma,
        lambda: tiled_mma().get_slice(3),
        lambda: cute.make_tiled_mma(wgmma()),
        tiled_copy,
        lambda: tiled_copy().get_slice(1),
        lambda: tma(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), 8)[0],
        lambda: tma(nvgpu.cpasync.CopyBulkTensorTileS2GOp(), 64),
    ]


def _of_kernels() -> list[Callable[[], Any]]:
    """What exists only in a kernel; on the host the call that makes it fails, and something else is taken."""
    group, agent = pipeline.CooperativeGroup, pipeline.Agent.Thread

    def rmem(dtype: Any = cute.Float32, shape: Any = 8) -> Any:
        t = cute.make_rmem_tensor(shape, dtype)
        t.fill(1)
        return t

    def smem(dtype: Any = cute.Float16, shape: Any = (64, 64)) -> Any:
        return cute.make_tensor(arch.alloc_smem(dtype, cute.size(shape), alignment=128), cute.make_layout(shape))

    def barriers() -> Any:
        return arch.alloc_smem(cute.Int64, 8, alignment=8)

    def of_pipeline() -> Any:
        return pipeline.PipelineAsync.create(
            num_stages=2, producer_group=group(agent, 1), consumer_group=group(agent, 1), barrier_storage=barriers()
        )

    return [
        rmem, lambda: rmem(cute.Float16, (4, 2)), lambda: rmem(cute.Int32, 4), lambda: rmem(cute.Boolean, 4),
        lambda: rmem().load(), lambda: rmem(cute.Int32, 4).load(), lambda: rmem(cute.Boolean, 4).load(),
        smem, lambda: smem(cute.Float32, (4, 8)), barriers, of_pipeline, lambda: arch.thread_idx()[0],
        lambda: cute.Int32(3), lambda: cute.Float32(2), lambda: smem().iterator, lambda: cute.Int64(5),
        lambda: utils.SmemAllocator(), lambda: pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2),
    ]  # fmt: skip


def _objects() -> list[Callable[[], Any]]:
    group, agent = pipeline.CooperativeGroup, pipeline.Agent.Thread
    return [
        lambda: group(agent),
        lambda: group(agent, 128),
        lambda: pipeline.PipelineState(2, 0, 0, 0),
        lambda: utils.PersistentTileSchedulerParams((4, 4, 1), (1, 1, 1)),
        lambda: cute.FastDivmodDivisor(3),
        lambda: cute.fast_divmod_create_divisor(7),
        lambda: cute.sym_int(),
        lambda: cute.make_rmem_tensor(4, cute.Float32),
        lambda: cute.Constexpr(4) if callable(cute.Constexpr) else None,
        lambda: cute.simulate(plain),
    ]


class Pool:
    """The values, as functions that make each. `arrays` lie in the blocks of memory."""

    def __init__(self) -> None:
        starts()
        self.arrays = _arrays()
        self.makers = [
            *_numbers(), *_tuples(), *_texts(), *_things(), *_layouts(), *_fixed(*self.arrays), *_tensors(self.arrays),
            *_members(), *_atoms(), *_objects(), *_of_kernels(),
        ]  # fmt: skip
        self.kernel_only = len(_of_kernels())
        self.kinds: list[tuple[str, ...]] = [self._names(make) for make in self.makers]
        self.instances: dict[str, list[int]] = {}
        for i, names in enumerate(self.kinds):
            for name in names:
                self.instances.setdefault(name, []).append(i)

    def make(self, index: int) -> Any:
        """One of the values; None where it can not be made: on the host what only kernels have."""
        try:
            return self.makers[index]()
        except Exception:
            return None

    def _names(self, make: Callable[[], Any]) -> tuple[str, ...]:
        try:
            cls = type(make())
        except Exception:
            return KERNEL_KINDS
        if cls in (tuple, list, int):
            return ("int", "tuple") if cls is int else ("tuple",)
        return tuple(k.__name__ for k in cls.__mro__ if k is not object)


KERNEL_KINDS = ("Tensor", "TensorSSA", "Pointer", "Leaf", "Pipeline")
