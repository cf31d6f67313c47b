# SPDX-License-Identifier: Apache-2.0
"""Every refusal names the argument, its value, the rule and the mend. One line of the table for each message."""

import numba
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import CopyUniversalOp, cpasync, warp, warpgroup
from numba_cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_tensor
from numba_cute.tensor.pointer import Pointer
from numba_cute.utils import mixed_input_helpers

K_MAJOR, MN_MAJOR = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
SMEM, RMEM = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
LOAD, STORE = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
SW128 = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16)
F16, F32, BF16 = cute.Float16, cute.Float32, cute.BFloat16


def mma(ab=F16, acc=F32, shape=(64, 64, 16), a_src=SMEM, a=K_MAJOR, b=K_MAJOR):
    return warpgroup.MmaF16BF16Op(ab, acc, shape, a_src, a, b)


def tma(shape=(512, 384), stride=(384, 1), smem=(64, 64), tiler=(64, 64), parts=1, op=LOAD, dtype=F16, atom=SW128):
    lay = cute.tile_to_shape(atom, smem, (0, 1)) if isinstance(smem, tuple) else smem
    return cpasync.make_tiled_tma_atom(op, make_fake_tensor(dtype, shape, stride, assumed_align=16), lay, tiler, parts)


def used(info):
    """What a kernel does first with an atom."""
    return info.atom.__cute_allocations__()


def unaligned():
    raw = np.zeros(64 * 64 + 16, np.float16)
    skip = 1 if raw.ctypes.data % 16 == 0 else 0
    return from_dlpack(raw[skip : skip + 4096].reshape(64, 64))


def host_tensor():
    return make_fake_tensor(F32, (8, 4), (4, 1))


HOST = [
    (lambda: mma(ab=F32), r"ab_dtype Float32 must be Float16 or BFloat16"),
    (lambda: mma(ab=BF16, acc=F16), r"acc_dtype Float16 must be Float32 for ab_dtype BFloat16"),
    (lambda: mma(shape=(128, 64, 16)), r"instruction_shape \(128, 64, 16\) must be \(64, n, 16\)"),
    (lambda: mma(shape=(64, 60, 16)), r"instruction_shape \(64, 60, 16\) must have n a multiple of 8 in \[8, 256\]"),
    (lambda: mma(b="K"), r"b_major_mode 'K' must be OperandMajorMode.K or .MN"),
    (lambda: cute.make_tiled_mma("wgmma"), r"op 'wgmma' is not a matrix operation"),
    (lambda: cute.make_tiled_mma(mma(), (2, 1)), r"atom_layout_mnk \(2,1\).* must have 3 static modes"),
    (lambda: cute.make_tiled_mma(mma(), (1, 1, 1), (64,)), r"permutation_mnk \(64,\) must have 3 entries"),
    (lambda: cute.make_tiled_mma(mma()).get_slice(0).partition_A((64, 64)), r"is not a tensor; use partition_shape_A"),
    (lambda: cute.make_copy_atom(CopyUniversalOp(), F32, 48), r"num_bits_per_copy 48 must be 8, 16, 32, 64"),
    (lambda: cute.make_copy_atom(LOAD, F32), r"made by cpasync.make_tiled_tma_atom, on the host"),
    (lambda: cute.make_copy_atom("copy", F32), r"op 'copy' is not a copy operation"),
    (lambda: warp.StMatrix8x8x16bOp(False, 3), r"num_matrices 3 must be 1, 2 or 4"),
    (lambda: warpgroup.make_smem_layout_atom("K_SW128", F16), r"kind 'K_SW128' is not a member"),
    # TMA
    (lambda: tma(dtype=F16, stride=(385, 1)), r"stride of dimension 1 is 770 bytes.*multiple of 16"),
    (lambda: used(tma(stride=(1, 512))), r"stride 512 along the mode that is contiguous in shared memory.*same major"),
    (lambda: tma(smem=(64, 128)), r"has 8192 elements, but cta_tiler \(64, 64\) has 4096; give the layout of one tile"),
    (lambda: tma(smem=(512, 64), tiler=(512, 64)), r"box\[1\] is 512 elements; it must be in 1 to 256"),
    (lambda: tma(parts=2), r"num_multicast 2 needs CopyBulkTensorTileG2SMulticastOp"),
    (lambda: tma(parts=0), r"num_multicast 0 must be a static number in \[1, 16\]"),
    (lambda: tma(op=CopyUniversalOp()), r"is not a TMA tensor operation"),
    (lambda: tma(smem=5), r"smem_layout 5 is not a layout"),
    (
        lambda: tma(atom=cute.make_composed_layout(cute.Swizzle(3, 3, 3), 0, SW128.outer)),
        r"S<3,3,3>.*TMA's swizzles are S<0,4,3> to S<3,4,3>",
    ),
    (lambda: cpasync.make_tiled_tma_atom(LOAD, unaligned(), SW128, (8, 64)), r"address 0x\w+ is not a multiple of 16"),
    (lambda: cpasync.make_tiled_tma_atom(LOAD, 3, SW128, (8, 64)), r"gmem_tensor 3 must be a tensor in global memory"),
    # The host's tensors
    (lambda: from_dlpack([1, 2]), r"list is not an array"),
    (lambda: from_dlpack(np.zeros(4, np.complex64)), r"dtype complex64 has no CuTe element type"),
    (lambda: from_dlpack(np.zeros((), np.float32)), r"has no dimension; reshape it to \(1,\)"),
    (lambda: from_dlpack(np.zeros(8, np.float32), assumed_align=3), r"assumed_align 3 must be a power of two"),
    (lambda: from_dlpack(np.zeros(64, np.float32)[1:2], assumed_align=16), r"is not a multiple of assumed_align = 16"),
    (lambda: host_tensor().mark_layout_dynamic(0), r"leading_dim 0 has stride 4 in \(8,4\):\(4,1\), not 1"),
    (lambda: host_tensor().mark_layout_dynamic(5), r"leading_dim 5 is not a mode"),
    (lambda: make_fake_tensor(F32, (8, 4), (8, 2)).mark_layout_dynamic(), r"0 modes of stride 1; say which"),
    (lambda: host_tensor().mark_compact_shape_dynamic(0, divisibility=3), r"extent 8 of mode 0 is not a multiple"),
    (lambda: host_tensor().mark_compact_shape_dynamic(2), r"mode 2 is not a mode"),
    (lambda: host_tensor().mark_compact_shape_dynamic(0, (0, 0)), r"stride_order \(0, 0\) must list each"),
    (lambda: make_fake_tensor(F32, (8, 4), (8, 1)).mark_compact_shape_dynamic(1), r"is not compact in stride_order"),
    (lambda: make_fake_compact_tensor(F32, (8, 4), stride_order=(0, 2)), r"stride_order \(0, 2\) must place each mode"),
    (lambda: make_fake_tensor("f32", (8,), (1,)), r"dtype 'f32' is not an element type"),
    (lambda: cute.compile(cute.simulate(lambda x: None), (1,)), r"compile takes a @cuda.jit kernel or a function"),
    (lambda: cute.cluster_shape(cute.Boolean(True)), r"up to three positive ints"),
    (lambda: cute.testing.Comparison("warm", {}, "a", failed="b"), r"failed 'b', a str: give a dict of texts, by name"),
    (lambda: cute.sym_int(symbol=3), r"symbol 3 must be a text or None"),
    (lambda: cute.round_up(3, cute.E(1)), r"a=3, b=1@1 must be integers, not bases"),
    (lambda: cute.find_if((4, 8), int), r"`pred_fn` of `find_if` is the class int"),
    (lambda: cute.make_layout_image_mask(cute.make_layout((4, 2)), (None, 0), 1), r"must say where the CTA is along"),
    # Pointers and tensors
    (lambda: Pointer(F32, "gmem", 0), r"space 'gmem' is not a member of cute.AddressSpace"),
    (lambda: Pointer(F32, cute.AddressSpace.gmem, 0, 0, 3), r"alignment 3 bytes is not a power of two"),
    (lambda: cute.make_ptr(F32, 6, assumed_align=4), r"address 0x6 is not a multiple of assumed_align = 4"),
    (lambda: cute.make_ptr(F32, 0, assumed_align=2), r"assumed_align 2 bytes is not a multiple of Float32's 4"),
    (lambda: cute.recast_ptr(5), r"recast_ptr: 5 is not a pointer"),
    (lambda: cute.make_tensor(5, (4, 4)), r"iterator 5 is neither a Pointer nor a coordinate tuple"),
    (lambda: host_tensor()[0, 0, 0], r"3 modes, but \(8,4\):\(4,1\) has 2"),
    (lambda: cute.make_identity_tensor((4, 4)).memspace, r"has no memory; its elements are coordinates"),
    (lambda: cute.make_identity_tensor((4, 4)).__setitem__((0, 0), 1), r"elements are coordinates and cannot be set"),
    (lambda: cute.make_rmem_tensor((4, cute.Int32(4)), F32), r"it is known only at run time: make it static"),
    (lambda: cute.make_rmem_tensor(4, "f32"), r"dtype 'f32' is not an element type"),
    (lambda: cute.make_rmem_tensor_like(cute.make_layout(4)), r"src is a layout, so dtype must be given"),
    (lambda: cute.local_tile(host_tensor(), (4, 4), (0, 0, 0)), r"coord \(0, 0, 0\) has more modes than the 2"),
    (lambda: cute.copy(5, host_tensor(), host_tensor()), r"atom 5 is neither a CopyAtom nor a TiledCopy"),
    (lambda: cute.autovec_copy(cute.make_identity_tensor((4,)), host_tensor()), r"must be a tensor in memory"),
    (lambda: cute.testing.tune(lambda a: None, {"a": 1}), r"`params_dict` of `tune` has in it 1"),
    (lambda: cute.transform_apply((1,), f=int, g=iter), r"`g` of `transform_apply` is .* is called and raises"),
    (lambda: cute.Timeline([], "ns").chrome("a\0b"), r"`file` of `Timeline.chrome` has a zero character"),
    (lambda: cute.TensorSSA(cute.E(0), 4, F32), r"`vector` of `TensorSSA` is .* expected is a vector of registers"),
    (lambda: cute.testing.convert(host_tensor(), cute.make_identity_tensor((8, 4))), r"must be a tensor in memory"),
    (lambda: cute.transform_leaf(numba.float32[:], (1, 2)), r"`f` of `transform_leaf` .* is called and raises NotImpl"),
    (lambda: cute.testing.allowed_error((1, 1), F32, terms=4, magnitude=(4, 8, 2)), r"magnitude has the shape \(3,\)"),
    (lambda: arch.thread_idx(), r"works only inside a kernel"),
]  # fmt: skip


def test_a_vector_made_by_hand_has_its_elements_in_a_row():
    def kernel():
        cute.TensorSSA(np.full((2, 4), [3, 5, 6, 7], np.uint8), (2,), cute.Uint8).reduce(cute.ReductionOp.OR, 0)

    with pytest.raises(cute.CuteError, match=r"the vector is an array of shape \(., 4\): give its elements in a row"):
        cute.simulate(kernel)[1, 1]()


@pytest.mark.parametrize("call, message", HOST, ids=[m[:40] for _, m in HOST])
def test_on_the_host(call, message):
    with pytest.raises(cute.CuteError, match=message):
        call()


def shared(dtype=F16, layout=(64, 64), align=1024, swizzle=None):
    return cute.utils.SmemAllocator().allocate_tensor(dtype, layout, align, swizzle)


def beside(nbytes, swizzle):
    smem = cute.utils.SmemAllocator()
    smem.allocate(nbytes)
    return smem.allocate_tensor(F16, (64, 64), 16, swizzle)


def registers(shape=4, dtype=F32):
    return cute.make_rmem_tensor(shape, dtype)


def fragment(operation=None, **kwargs):
    tiled = cute.make_tiled_mma(operation or mma())
    return tiled.make_fragment_A(tiled.get_slice(0).partition_A(shared(**kwargs)))


def gemm_of(d, c=None):
    tiled = cute.make_tiled_mma(mma()).set(warpgroup.Field.ACCUMULATE, True)
    k_major = cute.tile_to_shape(SW128, (64, 64), (0, 1))
    a = fragment(layout=k_major.outer, swizzle=k_major.inner)
    cute.gemm(tiled, d, a, a, d if c is None else c)


def copy_of(op, src, dst, **kwargs):
    cute.copy(cute.make_copy_atom(op, F32, 32 if op == CopyUniversalOp() else 0), src, dst, **kwargs)


IN_KERNEL = [
    (lambda: arch.mbarrier_init(shared(), 0), r"cnt 0 is not in \[1, 2\^20 - 1\]"),
    (lambda: arch.mbarrier_wait(cute.make_ptr(F32, 4, cute.AddressSpace.smem), 0), r"must be 8-byte aligned"),
    (lambda: arch.mbarrier_wait(cute.make_ptr(F32, 8, cute.AddressSpace.gmem, 8), 0), r"must point to shared memory"),
    (lambda: arch.mbarrier_expect_tx(8, 1 << 20), r"bytes 1048576 is not in \[0, 2\^20 - 1\]"),
    (lambda: arch.barrier(16, 32), r"barrier_id 16 is not in \[0, 15\]"),
    (lambda: arch.barrier(1, 48), r"number_of_threads 48 is not a positive multiple of 32"),
    (lambda: mixed_input_helpers.make_contiguous_group_work_tile_info(1, cute.Int32(0)), r"expected is a Tensor"),
    (lambda: arch.barrier_arrive(1), r"number_of_threads must be given"),
    (lambda: arch.fence_proxy("async.shared"), r"kind 'async.shared' with space None is not a proxy fence"),
    (lambda: arch.setmaxregister_increase(100), r"reg_count 100 must be a static multiple of 8"),
    (lambda: arch.cp_async_bulk_wait_group(40), r"group 40 must be a static number in \[0, 31\]"),
    (lambda: warpgroup.wait_group(8), r"group 8 must be a static number in \[0, 7\]"),
    (lambda: arch.sync_warp(0), r"mask 0 names no lane"),
    (lambda: arch.warp_redux_sync(1, "mul"), r"kind 'mul' is none of"),
    (lambda: cute.utils.SmemAllocator().allocate(cute.Int32(4)), r"must be a static number of bytes"),
    (lambda: cute.utils.SmemAllocator().allocate(-4), r"size -4 must be a static number of bytes"),
    (lambda: cute.utils.SmemAllocator().allocate(16, 3), r"byte_alignment 3 must be a power of two, at most 1024"),
    (lambda: shared(layout=SW128, swizzle=SW128.inner), r"swizzles its elements, and swizzle=S<3,4,3> the bytes of"),
    (lambda: beside(16, swizzle=SW128.inner), r"period is 1024 bytes, but .* aligned to 16; give .*=1024"),
    (lambda: shared().load().to("f32"), r"dtype 'f32' is not an element type"),
    (lambda: shared().store(1.0), r"is not a TensorSSA; use t.fill"),
    (lambda: registers().store(registers(8).load()), r"value of shape .*8.* does not fit a tensor of shape .*4"),
    (lambda: registers(dtype=F16).store(registers().load()), r"Float32 into Float16 elements; convert with"),
    (lambda: cute.autovec_copy(registers(), registers(8)), r"src has 4 elements, 4:1, but dst has 8"),
    (lambda: cute.autovec_copy(registers(dtype=F16), registers()), r"Float16 cannot be copied to Float32; convert"),
    (lambda: fragment(), r"wgmma operand of layout .* with a 0-byte swizzle: element \(\d+, \d+\) lies at byte"),
    (lambda: fragment(dtype=BF16), r"elements are BFloat16, but the operation takes Float16"),
    (lambda: cute.make_tiled_mma(mma()).make_fragment_A(registers((4, 1, 1), F16)), r"must lie in shared memory"),
    (lambda: cute.make_tiled_mma(mma()).make_fragment_B((64, 1, 4)), r"must be a partitioned tensor in shared memory"),
    (lambda: gemm_of(registers(((2, 2, 8), 2, 1))), r"d has shape .*, but a and b make \(V, 1, 1\)"),
    (lambda: gemm_of(registers(((2, 2, 8), 1, 1)), registers(32)), r"must be accumulators of one shape and type"),
    (lambda: gemm_of(*(registers(((2, 2, 8), 1, 1)) for _ in "dc")), r"is not d: MmaF16BF16Op adds in place"),
    (lambda: gemm_of(registers(((2, 2, 4), 1, 1))), r"must be 32 consecutive registers of one instruction"),
    (lambda: copy_of(CopyUniversalOp(), registers(1), registers(1), mcast_mask=1), r"mcast_mask is for TMA operations"),
    (lambda: copy_of(CopyUniversalOp(), registers((1, 4)), registers((1, 8))), r"src .* makes 4 .* dst .* 8"),
    (lambda: copy_of(warp.StMatrix8x8x16bOp(), registers(1), shared(F32, cute.make_layout(4, stride=2))),
     r"must be a row of 16 bytes"),
]  # fmt: skip


@pytest.mark.parametrize("call, message", IN_KERNEL, ids=[str(m)[:40] for _, m in IN_KERNEL])
def test_in_a_kernel(call, message, run_sim):
    @cuda.jit
    def kernel():
        call()

    with pytest.raises(cute.CuteError, match=message):
        run_sim(kernel, 1)


def test_tma_copies_say_what_they_lack(run_sim):
    atom, coords = tma()
    lay = cute.tile_to_shape(SW128, (64, 64), (0, 1))

    def attempt(**kwargs):
        def kernel(atom, coords):
            s = shared(layout=lay.outer, swizzle=lay.inner)
            g = cute.local_tile(coords, (64, 64), (0, 0))
            one = cute.make_layout(1)
            part_s, part_g = cpasync.tma_partition(atom, 0, one, cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
            cute.copy(atom, part_g, part_s, **kwargs)

        run_sim(kernel, 1, atom, coords)

    for kwargs, message in (
        ({}, "needs tma_bar_ptr"),
        ({"tma_bar_ptr": 8, "mcast_mask": 3}, "needs an atom of CopyBulkTensorTileG2SMulticastOp"),
    ):
        with pytest.raises(cute.CuteError, match=message):
            attempt(**kwargs)


# ------------------------------------------------------------------ what cannot be written, or read


def _nested(levels):
    x = 1
    for _ in range(levels):
        x = (x,)
    return x


UNREADABLE = {
    "digits that Python does not read": "9" * 5000,
    "brackets": "(" * 400,
    "a tuple too deep to write": _nested(3000),
}
ASKED = {
    "to of a symbol": lambda x: cute.sym_int().to(x), "to of a number": lambda x: cute.Int32(1).to(x),
    "a symbol's divisor": lambda x: cute.sym_int(divisibility=x), "divisor": lambda x: cute.assume(8, x),
    "an element type": lambda x: cute.dtypes.from_numpy(x),
    "allowed error": lambda x: cute.testing.allowed_error(x, 4),
    "view": lambda x: cute.simulate(lambda: cute.exp2(cute.Float32(3)).view(x))[1, 1](),
    "to in a kernel": lambda x: cute.simulate(lambda: cute.Int32(3).to(x))[1, 1](),
}  # fmt: skip


@pytest.mark.parametrize("given", UNREADABLE)
@pytest.mark.parametrize("asked", ASKED)
def test_what_cannot_be_written_or_read_is_refused_in_words(asked, given):
    with pytest.raises(cute.CuteError):
        ASKED[asked](UNREADABLE[given])


def test_a_mask_of_too_many_ctas_is_refused_at_once():
    with pytest.raises(cute.CuteError, match="more than 16 CTAs"):
        cute.make_layout_image_mask(cute.make_layout((1 << 40, 1 << 40)), (0, 0), 0)
    assert repr(cute.Constexpr(_nested(3000))).startswith("Constexpr(")


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_what_is_no_integer_is_said(number):
    with pytest.raises(cute.CuteError, match="has no integer"):
        int(cute.Float32(number))


@pytest.mark.parametrize("number", [1.0, 1.5, float("inf"), float("nan")])
def test_a_float_is_no_index(number):
    for ask in (range, (1, 2, 3).__getitem__):
        with pytest.raises(cute.CuteError, match="is not an index: give an integer"):
            ask(cute.Float32(number))


@pytest.mark.parametrize("given", ["", "not a type"])
def test_a_text_that_names_no_type_is_refused_in_a_union(given):
    with pytest.raises(cute.CuteError, match="cannot be in a union with an element type"):
        cute.Float32 | given


WRONG_KIND = {
    "more modes than there can be": (lambda: cute.prepend_ones(4, 2**64), "more modes than can be computed with"),
    "a copy as an extent": (lambda: cute.shape_div((0, 1), LOAD), "is not"),
    "an array as a shape": (
        lambda: cute.simulate(lambda: cute.full((), 64, cute.Uint8).broadcast_to(np.arange(4)))[1, 1](), "target_shape"
    ),
    "a class of NumPy's as a tensor": (
        lambda: cute.simulate(
            lambda: cute.utils.mixed_input_helpers.make_contiguous_group_work_tile_info(2, np.int64)
        )[1, 1](), "tile_info"
    ),
    "the bits of floats": (
        lambda: cute.simulate(lambda: cute.full(1, 1.5, F32).reduce(cute.ReductionOp.OR, 0.0))[1, 1](), "no bits"
    ),
    "facts that are no dict": (lambda: cute.testing.machine(7), "must be a dict"),
    "a kernel that is simulated": (lambda: cute.experimental.kernel(cute.simulate(used)), "is not a function"),
    "a host function that is simulated": (lambda: cute.jit(cute.simulate(used)), "jit: .* is not a function"),
    "an operation that is simulated": (lambda: cute.dsl_user_op(cute.simulate(used)), "is not a function"),
    "a fragment's shape": (lambda: warp.MmaB1Op().fragment("A", 16), "shape 16 must be"),
    "a timeline's lost": (lambda: cute.Timeline([], "ns", "some"), "lost 'some' an int"),
    "a generator that is called otherwise": (
        lambda: cute.testing.benchmark(len, workspace_generator=chr, workspace_count=1), "is called and raises"
    ),
    "a class that filters": (lambda: cute.filter_tuple(int, (0, 4), (2, 1)), "`f` of .* is called and raises"),
    "a class that transforms": (lambda: cute.transform_leaf(dict, (0, 4)), "`f` of .* is called and raises"),
    "a stride where an extent is meant": (lambda: cute.ceil_div(cute.E(0), cute.make_layout(4)), "is a stride"),
    "a cluster of negative CTAs": (
        lambda: cute.make_layout_image_mask(cute.make_layout((4, 2), stride=(-1, 4)), (1, 1), 0), "reaches offset"
    ),
    "a CTA before the first": (
        lambda: cute.make_layout_image_mask(cute.make_layout((4, 2), stride=(-4, 1)), (1, 1), 1), "from 0"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_KIND)
def test_a_value_of_another_kind_is_refused(case):
    call, said = WRONG_KIND[case]
    with pytest.raises(cute.CuteError, match=said):
        call()
