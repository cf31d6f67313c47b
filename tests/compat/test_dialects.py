# SPDX-License-Identifier: Apache-2.0
"""Functions of MLIR's dialects, as files call them."""

from __future__ import annotations

import pytest

from numba_cute import AddressSpace, ReductionOp, Uint8, make_ptr
from numba_cute.compat.cutlass import nvvm, pointer_types
from numba_cute.ir.text import registry
from numba_cute.seam import CuteError

from .texts import ran

HEAD = """
import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass._mlir.dialects import llvm, math as _math, nvvm
from cutlass.cute.runtime import from_dlpack
from numba_cute.tilelang.cpasync import extract_tensormap_ptr
"""

LOGARITHM = """
@cute.kernel
def kernel(x):
    if nvvm.elect_sync():
        x[1] = _math.log(x[0])

@cute.jit
def launch(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)

x = np.array([np.e, 0], np.float32)
launch(from_dlpack(x))
"""

LOAD = """
@cute.kernel
def kernel(atom, x, out):
    smem = cutlass.utils.SmemAllocator()
    tile = smem.allocate_tensor(cutlass.Float32, cute.make_layout((8, 8), stride=(8, 1)), 128)
    bar = smem.allocate_array(cutlass.Int64, 1)
    chosen = nvvm.elect_sync()
    if chosen:
        cute.arch.mbarrier_init(bar, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_warp()
    if chosen:
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 256)
    nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp(
        tile.iterator.llvm_ptr, extract_tensormap_ptr(atom).llvm_ptr,
        [cutlass.Int32(8).ir_value(), cutlass.Int32(0)], bar.llvm_ptr, [], predicate=chosen, mode=nvvm.TMALoadMode.TILE,
    )
    cute.arch.mbarrier_wait(bar, 0)
    lane = cute.arch.lane_idx()
    out[lane] = tile[lane // 8, lane % 8]

@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    tiled = cute.nvgpu.cpasync.make_tiled_tma_atom(
        cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, cute.make_layout((8, 8), stride=(8, 1)), (8, 8)
    )
    kernel(tiled[0], tiled[1], out).launch(grid=1, block=32)

x, out = np.arange(16 * 16, dtype=np.float32).reshape(16, 16), np.zeros(32, np.float32)
launch(from_dlpack(x, assumed_align=16), from_dlpack(out))
assert (out.reshape(4, 8) == x[:4, 8:]).all() or SIMULATES is False, out
"""

REDUCTION = """
@cute.kernel
def kernel(x):
    total = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(1))
    lane = cute.arch.lane_idx()
    if lane == 0:
        total[0] = 0
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    nvvm.red(
        nvvm.ReductionOp.ADD, nvvm.ReductionType.S32, cute.arch.mapa(total.iterator, 1), lane.ir_value(),
        mem_order=nvvm.MemOrderKind.RELAXED, mem_scope=nvvm.MemScopeKind.CLUSTER,
        shared_space=nvvm.SharedSpace.shared_cluster,
    )
    nvvm.red(nvvm.ReductionOp.MAX, nvvm.ReductionType.S32, x.iterator, lane.ir_value())
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    if cute.arch.block_idx_in_cluster() == 1 and lane == 0:
        x[1] = total[0]

@cute.jit
def launch(x: cute.Tensor):
    kernel(x).launch(grid=2, block=32, cluster=2)

x = np.zeros(2, np.int32)
launch(from_dlpack(x))
"""


def test_a_function_of_the_math_dialect_is_cutes(tmp_path):
    check = "assert abs(x[1] - 1) < 1e-6, x\n"
    assert ran(tmp_path, HEAD + LOGARITHM + check).launched == 1
    assert len(ran(tmp_path, HEAD + LOGARITHM, simulates=False).kernels) == 1


def test_a_tma_load_under_a_predicate(tmp_path):
    ran(tmp_path, HEAD + "SIMULATES = True\n" + LOAD)
    (kernel,) = ran(tmp_path, HEAD + "SIMULATES = False\n" + LOAD, simulates=False).kernels
    assert "cp.async.bulk.tensor.2d.shared::cluster.global" in kernel.ptx


def test_a_reduction_goes_to_the_memory_that_it_names(tmp_path):
    ran(tmp_path, HEAD + REDUCTION + "assert x.tolist() == [31, 2 * 31 * 16], x\n")
    (kernel,) = ran(tmp_path, HEAD + REDUCTION, simulates=False).kernels
    assert "red.relaxed.cluster.shared::cluster.add.u32" in kernel.ptx and "red.relaxed.gpu.global.max" in kernel.ptx


DESCRIPTOR = """
from cutlass._mlir.dialects import cute as cute_ir, cute_nvgpu
from cutlass.cute.arch.nvvm_wrappers import prefetch
from cutlass.cutlass_dsl import dsl_user_op

@dsl_user_op
def views(maps, *, loc=None, ip=None):
    ptr = maps.iterator.to_llvm_ptr()
    generic = cute.make_ptr(maps.element_type, llvm.addrspacecast(
        llvm.PointerType.get(cute.AddressSpace.generic), ptr), cute.AddressSpace.generic, assumed_align=128)
    kind = cute_ir.PtrType.get(cute_nvgpu.TmaDescriptorTiledType.get(), generic.memspace, generic.alignment)
    of_map = cute_ir.recast_iter(kind, generic.value)
    words = cute_ir.recast_iter(cute_ir.PtrType.get(cutlass.Int32, cute.AddressSpace.generic, 4), generic)
    return of_map, words

@dsl_user_op
def fetch(of_map, *, loc=None, ip=None):
    prefetch(of_map, tensormap=True)

@cute.kernel
def kernel(maps, out):
    of_map, words = views(maps)
    if out[0] < 0:
        fetch(of_map)
    out[0] = cute.make_tensor(words, 4)[1]

@cute.jit
def launch(maps: cute.Tensor, out: cute.Tensor):
    kernel(maps, out).launch(grid=1, block=1)

raw = np.zeros(256, np.uint8)
maps = raw[-raw.ctypes.data % 128:][:128]
maps[4] = 7
x = np.zeros(1, np.int32)
launch(from_dlpack(maps, assumed_align=128), from_dlpack(x))
assert x[0] == 7
"""


def test_pointers_become_those_to_maps(tmp_path):
    ran(tmp_path, HEAD + DESCRIPTOR)
    aligned = pointer_types.PtrType.get(pointer_types.TmaDescriptorTiledType.get(), AddressSpace.smem, 128)
    with pytest.raises(CuteError, match="the memory must be the same"):
        pointer_types.recast_iter(aligned, make_ptr(Uint8, 0, AddressSpace.gmem))
    with pytest.raises(CuteError, match="has no address in smem memory"):
        make_ptr(Uint8, make_ptr(Uint8, 0, AddressSpace.gmem), AddressSpace.smem)


def test_what_is_not_there_is_refused_by_its_name(tmp_path):
    with pytest.raises(CuteError, match="outerproduct"):
        ran(tmp_path, HEAD + LOGARITHM.replace("_math.log(x[0])", "_math.outerproduct(x[0])"))


def test_enumerations_of_others_names_leave_the_irs_alone():
    registry.enumerations.cache_clear()
    assert registry.enumerations()["numba_cute.ReductionOp"] is ReductionOp is not nvvm.ReductionOp
