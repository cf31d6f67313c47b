# SPDX-License-Identifier: Apache-2.0
"""What is called for its result alone: both engines refuse a statement that drops it, in the same words."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import seam
from numba_cute.nvgpu import cpasync, warp, warpgroup

TILED = cute.make_tiled_mma(
    warpgroup.MmaF16BF16Op(
        cute.Float16, cute.Float32, (64, 8, 16), warpgroup.OperandSource.SMEM, warpgroup.OperandMajorMode.K,
        warpgroup.OperandMajorMode.K,
    )
)  # fmt: skip
ATOM = cute.make_mma_atom(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))

DROPPED = {
    "TILED.set(warpgroup.Field.ACCUMULATE, False)": "TiledMma.set(…): its result is dropped, and the call does nothing "
    "else, for a TiledMma is immutable: write x = x.set(…)",
    "TILED.get_slice(0)": "TiledMma.get_slice(…)",
    "v.to(cute.Float16)": "TensorSSA.to(…): its result is dropped, and the call does nothing else, for a TensorSSA is "
    "immutable: write x = x.to(…)",
    "v.reshape((2, 2))": "TensorSSA.reshape(…)",
    "v.bitcast(cute.Int32)": "TensorSSA.bitcast(…)",
    "v.broadcast_to((4, 2))": "TensorSSA.broadcast_to(…)",
    "v.reduce(cute.ReductionOp.ADD, 0.0, (None,))": "TensorSSA.reduce(…)",
    "t.iterator.align(16)": "Pointer.align(…)",
    "cute.group_modes(t, 0, 2)": "group_modes(…): its result is dropped, and the call does nothing else: write "
    "y = group_modes(x, …)",
    "cute.coalesce(t)": "coalesce(…)",
    "cute.composition(t, 2)": "composition(…)",
    "cute.recast_tensor(t, cute.Int32)": "recast_tensor(…)",
    "cute.recast_ptr(t.iterator, dtype=cute.Int32)": "recast_ptr(…)",
    "cute.domain_offset((1, 0), t)": "domain_offset(…)",
    "cute.local_tile(t, (2, 2), (0, 0))": "local_tile(…)",
    "cute.where(v > 0, v, 0.0)": "where(…)",
    "cute.zeros_like(v)": "zeros_like(…)",
    "cute.exp2(v)": "exp2(…)",
    "cute.math.max(v, 0.0)": "max(…)",
    "make_tensor(t.iterator, 4)": "make_tensor(…)",
    "cpasync.CopyG2SOp().with_cache_policy(i)": "CopyG2SOp.with_cache_policy(…)",
    "v.to(*(cute.Float16,))": "TensorSSA.to(…)",
    "v.to(dtype=cute.Float16)": "TensorSSA.to(…)",
}
USED = [
    "tiled = TILED.set(warpgroup.Field.ACCUMULATE, False)",
    "r.store(v.to(cute.Float32))",
    "out[0] = cute.group_modes(t, 0, 2)[0]",
    "out[0] = 1 if cute.size(cute.make_layout((4, 2))) == 8 else 0",
    "for k in cute.range_constexpr(cute.size(cute.coalesce(t))): out[0] += k",
    "_ = v.to(cute.Float16)",
    "cute.size(t)",
    "cute.make_layout((4, 2))",
    "cute.coalesce(t.layout)",
    "cute.math.exp2(1.0)",
    "t[0, 0]",
    "r.fill(0.0)",
    "r.store(v)",
]


def kernel_of(statement):
    space = {"cute": cute, "TILED": TILED, "ATOM": ATOM, "warpgroup": warpgroup, "cpasync": cpasync}
    space["make_tensor"] = cute.make_tensor
    exec(
        "def kernel(t, out):\n"
        "    i = cute.arch.thread_idx()[0]\n"
        "    r = cute.make_rmem_tensor((4,), cute.Float32)\n"
        "    r.fill(1.0)\n"
        "    v = r.load()\n"
        f"    {statement}\n",
        space,
    )
    return space["kernel"]


def arguments():
    return cute.runtime.from_dlpack(np.ones((4, 4), np.float32)), np.zeros(1, np.float32)


@pytest.mark.parametrize("statement", DROPPED)
def test_a_dropped_result_is_refused_in_the_same_words(statement):
    kernel, said = kernel_of(statement), []
    for run in (
        lambda: cute.simulate(kernel)[1, 1](*arguments()),
        lambda: cute.simulate(kernel, checks=False)[1, 32](*arguments()),
        lambda: cute.compile(kernel, arguments()),
    ):
        with pytest.raises(cute.CuteError) as caught:
            run()
        said.append(str(caught.value).splitlines()[0])
    assert said[0].startswith(DROPPED[statement]) and "its result is dropped" in said[0]
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize("statement", USED)
def test_what_is_used_or_no_object_is_not_refused(statement):
    kernel = kernel_of(statement)
    cute.simulate(kernel)[1, 1](*arguments())
    cute.simulate(kernel, checks=False)[1, 2](*arguments())
    cute.compile(kernel, arguments())


def test_a_dropped_result_in_a_device_function_is_refused():
    @cuda.jit(device=True)
    def helper(v):
        v.to(cute.Float16)
        return v

    def kernel(out):
        r = cute.make_rmem_tensor((4,), cute.Float32)
        r.fill(1.0)
        out[0] = helper(r.load())[0]

    out = np.zeros(1, np.float32)
    for run in (lambda: cute.simulate(kernel)[1, 1](out), lambda: cute.compile(kernel, (out,))):
        with pytest.raises(cute.CuteError, match=r"TensorSSA.to\(…\): its result is dropped(.|\n)*test_results.py"):
            run()


def test_functions_of_the_library_that_give_objects_are_marked():
    for name in ("make_layout", "group_modes", "append", "zipped_divide", "make_tensor", "exp2", "make_tiled_copy"):
        assert seam.is_for_result(getattr(cute, name)), name
    for name in ("copy", "gemm", "printf", "autovec_copy", "print_tensor"):
        assert not seam.is_for_result(getattr(cute, name)), name


def test_on_the_host_nothing_is_refused():
    cute.make_layout((4, 2))
    TILED.set(warpgroup.Field.ACCUMULATE, False)
