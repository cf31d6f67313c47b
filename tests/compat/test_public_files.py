# SPDX-License-Identifier: Apache-2.0
"""Constructs that public files of the CuTe DSL hold, each in a text of our own that is right in the simulator and
compiles."""

from __future__ import annotations

import inspect
import sys

import pytest
from numba.cuda.compiler import run_frontend

from numba_cute.compat.cutlass.primitives import AtomicOp, atomicrmw
from numba_cute.compiler.passes.ssa import in_ssa_form
from numba_cute.seam import CuteError

from .texts import ran

HEAD = """
import functools, math, operator
import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass import Float32, Int32, const_expr
from cutlass._mlir.dialects import llvm, nvvm
from cutlass.cutlass_dsl import T, dsl_user_op
from cutlass.cute.runtime import from_dlpack
"""

REDUCED = """
@dsl_user_op
def reduced(val: Int32, op, lanes: Int32, *, loc=None, ip=None):
    rounds = Int32(math.log2(lanes))  # a number of run time, over which a loop of Python's goes
    for i in range(rounds - 1, -1, -1):
        val = op(val, cute.arch.shuffle_sync_down(val, 1 << i))
    return val

@cute.kernel
def kernel(x):
    t, _, _ = cute.arch.thread_idx()
    total = reduced(x[t], operator.add, cute.arch.WARP_SIZE)
    if t == 0:
        x[0] = total

@cute.jit
def launch(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)

x = np.arange(32, dtype=np.int32)
cute.compile(launch, from_dlpack(x))
launch(from_dlpack(x))
WANTED = x[0] == 496
"""

ATOMICS = """
@dsl_user_op
def counted(to, add, *, loc=None, ip=None):
    nvvm.atomicrmw(res=T.f32(), op=nvvm.AtomicOpKind.FADD, ptr=to.iterator.llvm_ptr, a=add.ir_value())
    return nvvm.atomicrmw(T.f32(), nvvm.AtomicOpKind.FADD, (to.iterator + 1).llvm_ptr, add.ir_value())

@cute.kernel
def kernel(x):
    counted(x, Float32(0.5))

@cute.jit
def launch(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)

x = np.zeros(2, np.float32)
cute.compile(launch, from_dlpack(x))
launch(from_dlpack(x))
WANTED = (x == 16).all()
"""

BITS = """
def made(n):
    @cute.kernel
    def kernel(x):
        room = cute.make_rmem_tensor(const_expr(n.bit_length() - 1), Int32)
        x[0] = cute.size(room) * 10 + n.bit_count()
        for i in cutlass.range_constexpr(3):
            x[1 + i] = i.bit_length()

    @cute.jit
    def launch(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    return launch

x = np.zeros(4, np.int32)
cute.compile(made(48), from_dlpack(x))
made(48)(from_dlpack(x))
WANTED = x.tolist() == [52, 0, 1, 2]
"""

PARTIAL = """
@cute.kernel
def kernel(x, y, factor: cutlass.Constexpr, plus):
    x[0] += y[0] * factor + plus

@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Constexpr, plus: Int32 = 0):
    kernel(x, y, factor, plus).launch(grid=1, block=1)

x, y = np.zeros(1, np.int32), np.ones(1, np.int32)
held = functools.partial(launch, from_dlpack(x), factor=3, plus=Int32(1))
cute.compile(held, from_dlpack(y))(from_dlpack(y))
cute.compile(held, y)(y)
held(from_dlpack(y))
WANTED = x[0] == 12
"""

NAMES = """
from cutlass.cute.nvgpu import tcgen05, warp
from cutlass.utils.distributed import atomicAdd

assert issubclass(warp.MmaF16BF16Op, warp.WarpMmaOp)

@cute.kernel
def kernel(x):
    before = atomicAdd(x.iterator, cute.arch.log2_of_pow2_int(Int32(1) << x[1]))
    rows = cute.make_layout((64, 64), stride=(64, 1))
    tile = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float16, rows, 1024, cute.make_swizzle(3, 4, 3))
    one = cute.make_layout((64, 16), stride=(64, 1))
    word = tcgen05.smem_descriptor_to_int(tcgen05.make_umma_smem_desc(tile.iterator, one, "k"))
    x[2] = Int32(word >> 61 & 7) + before
    here, there = llvm.ptrtoint(T.i64(), x.iterator.llvm_ptr), llvm.ptrtoint(T.i64(), (x.iterator + 3).llvm_ptr)
    x[3] = Int32(there - here) + llvm.ptrtoint(T.i32(), tile.iterator.llvm_ptr) % 1024

@cute.jit
def launch(x: cute.Tensor):
    kernel(x).launch(grid=1, block=1)

x = np.array([10, 5, 0, 0], np.int32)
cute.compile(launch, from_dlpack(x))
launch(from_dlpack(x))
WANTED = x.tolist() == [15, 5, 12, 12]  # 2, the swizzle of 128 bytes, and 10
"""

PIPELINE = """
from dataclasses import dataclass
from cutlass.pipeline import (
    Agent, CooperativeGroup, MbarrierArray, PipelineAsync, PipelineOp, PipelineUserType, make_pipeline_state)

@dataclass(frozen=True)
class Mine(PipelineAsync):
    step: int
    is_leader: bool

    @staticmethod
    def create(*, num_stages, producer_group, consumer_group, barrier_storage):
        producer, consumer = (PipelineOp.AsyncThread, producer_group), (PipelineOp.AsyncThread, consumer_group)
        full = PipelineAsync._make_sync_object(barrier_storage.align(min_align=8), num_stages, producer)
        empty = MbarrierArray(barrier_storage=barrier_storage + num_stages, num_stages=num_stages, agent=consumer)
        cute.arch.mbarrier_init_fence()
        cute.arch.barrier()
        return Mine(full, empty, num_stages, None, None, 1, True)

    def consumer_release(self, state, *, loc=None, ip=None):
        if cutlass.const_expr(self.is_leader):
            self.sync_object_empty.arrive(state.index, self.consumer_mask)

@cute.kernel
def kernel(x: cute.Tensor):
    smem = cutlass.utils.SmemAllocator()
    bars = smem.allocate_array(cutlass.Int64, 4)
    room = smem.allocate_tensor(Int32, cute.make_layout((32, 2)), 16)
    w, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
    group = CooperativeGroup(Agent.Thread, 32)
    pipe = Mine.create(num_stages=2, producer_group=group, consumer_group=group, barrier_storage=bars)
    if w == 0:
        st = make_pipeline_state(PipelineUserType.Producer, 2)
        for i in range(5):
            pipe.producer_acquire(st)
            room[lane, st.index] = i * pipe.step
            pipe.producer_commit(st)
            st.advance()
        pipe.producer_tail(st)
    else:
        st = make_pipeline_state(PipelineUserType.Consumer, 2)
        for i in range(5):
            pipe.consumer_wait(st)
            x[lane] += room[lane, st.index]
            pipe.consumer_release(st)
            st.advance()

@cute.jit
def launch(x: cute.Tensor):
    kernel(x).launch(grid=1, block=64)

x = np.zeros(32, np.int32)
cute.compile(launch, from_dlpack(x))
launch(from_dlpack(x))
WANTED = (x == 10).all()
"""

VECTORS = """
from cutlass import BFloat16
from cutlass._mlir import ir
from cutlass._mlir.dialects import vector

@dsl_user_op
def halves(a, b, *, loc=None, ip=None):
    packed = vector.from_elements(ir.VectorType.get([2], Int32.mlir_type, loc=loc), [a.ir_value(), b.ir_value()])
    parts = llvm.bitcast(ir.VectorType.get([4], BFloat16.mlir_type), packed)
    return tuple(BFloat16(vector.extract(parts, [], [i])) for i in range(4))

@cute.jit
def pack(values):
    made = vector.from_elements(T.vector(len(values), Float32.mlir_type), values)
    return cute.TensorSSA(made, (len(values),), Float32)

@cute.kernel
def kernel(a: cute.Tensor, o: cute.Tensor):
    p = halves(a[0], a[1])
    v = pack((Float32(p[0]), Float32(p[1]), Float32(p[2]), Float32(p[3])))
    o.store(v * 2.0)

@cute.jit
def launch(a: cute.Tensor, o: cute.Tensor):
    kernel(a, o).launch(grid=1, block=1)

x, y = np.array([0xC0003FC0, 0x3E804040], np.uint32).view(np.int32), np.zeros(4, np.float32)  # 1.5, -2, 3, 0.25
cute.compile(launch, from_dlpack(x), from_dlpack(y))
launch(from_dlpack(x), from_dlpack(y))
WANTED = y.tolist() == [3, -4, 6, 0.5]
"""

CASES = {
    "vectors": VECTORS,
    "pipeline": PIPELINE,
    "names": NAMES,
    "partial": PARTIAL,
    "reduced": REDUCED,
    "atomics": ATOMICS,
    "bits": BITS,
}


@pytest.mark.parametrize("name", CASES)
def test_a_construct_is_right_and_compiles(name, tmp_path):
    run = ran(tmp_path, HEAD + CASES[name] + "assert WANTED, x\n", arch="sm_100a", compiles=True)
    assert run.kernels and run.launched


def test_what_a_file_asks_of_functions_and_modules(tmp_path):
    ran(
        tmp_path,
        HEAD
        + """
import pathlib, types

@cute.jit
def launch(x: cute.Tensor): ...

params = cutlass.utils.PersistentTileSchedulerParams
before = params.__extract_mlir_values__
params.__extract_mlir_values__ = lambda self: before(self)  # which nothing calls
params.__extract_mlir_values__ = before
assert isinstance(launch, types.FunctionType) and launch.__wrapped__.__name__ == "launch"
assert pathlib.Path(cutlass.__file__).is_file()
""",
    )


def test_what_a_file_asks_of_torch_for_cuda_is_the_hosts(tmp_path):
    pytest.importorskip("torch")
    ran(
        tmp_path,
        HEAD
        + """
import torch

torch.library.define("numba_cute_public::twice", "(Tensor x) -> Tensor")
torch.library.impl("numba_cute_public::twice", "CUDA", lambda x: 2 * x)
assert torch.ops.numba_cute_public.twice(torch.ones(1, device="cuda")).item() == 2
found = torch.cuda.get_device_properties()
assert (found.warp_size, found.max_threads_per_multi_processor, found.shared_memory_per_block) == (32, 2048, 49152)
""",
    )


def test_an_atomic_operation_says_what_it_does_not_know():
    with pytest.raises(CuteError, match=r"op 'cas' is not an AtomicOp: give one of ADD, FADD, "):
        atomicrmw("cas", None, 1)
    assert AtomicOp.ADD.value == "add"


def test_a_member_with_an_equals_sign_is_refused(tmp_path):
    text = (
        "@cute.struct\nclass Storage:\n    a: cute.struct.MemRange[Int32, 8]\n    b = cute.struct.MemRange[Int32, 8]\n"
    )
    with pytest.raises(CuteError, match="write `b: …`, with a colon"):
        ran(tmp_path, HEAD + text)


def test_a_function_of_many_branches_gets_its_ssa_form():
    space: dict = {}
    branches = "".join(f"    if a > {i}:\n        out[0] = {i}\n" for i in range(150))
    exec(f"def many(a, out):\n    x = 0\n    if a:\n        x = 1\n{branches}    return x\n", space)
    blocks, limit = run_frontend(space["many"]).blocks, sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        assert in_ssa_form(blocks)
    finally:
        sys.setrecursionlimit(limit)
