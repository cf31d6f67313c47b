# SPDX-License-Identifier: Apache-2.0
"""What differs from other systems' names: the words of docs/compatibility.md. Why some are absent is in
`numba_cute/seam/ground/absent.py`, which errors read too."""

from __future__ import annotations

_SIGNED = "`signed=` and `width=` give the operands' type"
_TUPLES = "vectors are `TensorSSA`; short ones are tuples"
_COPY_TRAITS = "one traits class for all copies"

DIFFERENCES = {
    "experimental.kernel": "makes a `cuda.jit` kernel; also of a method",
    "experimental.compile": "`cute.compile`",
    "experimental.jit": "`cute.jit`",
    "experimental.create_pipeline": "takes the parameters of `GenericPipeline.create`",
    "experimental.create_pipeline_with_mask": "the mask follows from `cluster_layout_vmnk`",
    "experimental.allocate": (
        "one call per line, in the kernel, not in a device function; for tensor memory, allocate the largest first"
    ),
    "experimental.tma_load": "for tensors that are kernel arguments, not for those made from pointers",
    "experimental.dot": "write `atom = atom.set(…)`: atoms are immutable",
    "experimental.dot_block_scaled": "write `atom = atom.set(…)`: atoms are immutable",
    "experimental.consumer_tail": "call it in the producing threads, with their state",
    "experimental.OperationTypeEnum": "only operations that have a pipeline or are TMA loads",
    "IntValue": "the class of run-time integers; static ones are ints",
    "Numeric": "the class of element types, which are objects (`cute.Float32`)",
    "compile": "takes a kernel, example arguments and a target; needs no GPU",
    "kernel": "makes a `cuda.jit` kernel; also `k[grid, block](…)`; also of a method",
    "jit": "plain Python on the host, a device function in a kernel",
    "struct": "also makes classes of run-time values",
    "union": "members share the same shared memory",
    "is_int_tuple_type": "for Python types and element types",
    "assume": "checked on the host, at launch and in the simulator",
    "gemm": "the first k-block uses ACCUMULATE, later ones always accumulate",
    "copy": "accepts `unroll_factor`, but unrolls all instructions",
    "printf": "checks its format against its values; adds a newline unless `end=` is given",
    "static": "the same as `const_expr`",
    "autovec_copy": "at most 16 bytes per access",
    "Swizzle": "fields `bits`, `base`, `shift`, also as `num_bits`, `num_base`, `num_shift`",
    "round": "rounds halves away from zero",
    "find": "`hierarchical=False` searches only the top-level modes",
    "arch.load": "`count=` returns a tuple; the DSL uses a vector type",
    "arch.store": "takes a tuple of adjacent values",
    "arch.red": "takes a tuple of adjacent values",
    "arch.elect_one": "also `if elect_one():`",
    "arch.bfe": _SIGNED,
    "arch.bfind": _SIGNED,
    "arch.mul_hi": _SIGNED,
    "arch.popc": _SIGNED,
    "arch.match_sync": _SIGNED,
    "arch.add_cc": "the carry is a value in the calling function",
    "arch.sub_cc": "the carry is a value in the calling function",
    "arch.mad_cc": "the carry is a value in the calling function",
    "arch.warp_redux_sync": '"umax" and "umin" compare unsigned numbers',
    "arch.cvt_i8_bf16_intrinsic": _TUPLES,
    "arch.cvt_i4_bf16_intrinsic": _TUPLES,
    "arch.cvt_f4e2m1_f16_intrinsic": _TUPLES,
    "nvgpu.CopyG2RTrait": _COPY_TRAITS,
    "nvgpu.CopyR2GTrait": _COPY_TRAITS,
    "nvgpu.CopyR2STrait": _COPY_TRAITS,
    "nvgpu.CopyS2RTrait": _COPY_TRAITS,
    "nvgpu.CopyUniversalTrait": _COPY_TRAITS,
    "nvgpu.CopyG2ROp": "also takes an L2 policy",
    "nvgpu.CopyR2GOp": "also takes an L2 policy",
    "nvgpu.cpasync.CopyG2SOp": "`zfill=False` leaves predicated-off elements unchanged",
    "nvgpu.cpasync.CopyBulkS2SOp": "also takes `peer=`",
    "nvgpu.cpasync.CopyDsmemStoreOp": "also takes `peer=`",
    "nvgpu.cpasync.make_tiled_tma_atom": "also takes `element_strides=`, `oob_fill=`, `l2_promotion=`, `interleave=`",
    "nvgpu.make_im2col_tma_atom_A": "the tensor is (pixels, (C, S, R, T))",
    "pipeline.compute_k_tile": "returns (first tile, count) of a split of K; the DSL's version is undocumented",
    "pipeline.CooperativeGroup": "counts by agent: `Agent.Warp` is 32 threads",
    "pipeline.make_pipeline_state": "refuses `ProducerConsumer`: make two states, one for each side",
    "pipeline.PipelineTmaMultiConsumersAsync": "has no `force_deprecated_per_lane_signaling`",
    "utils.HardwareInfo": "asks the driver; in a kernel or the simulator, answers for the target",
}
"""By a name here, in what it differs."""

_SAME_COPY = "issued by `cute.copy` or `cute.copy_atom_call`"
_SAME_MMA = "issued by `cute.gemm` or `cute.mma_atom_call`"

IR: dict[str, tuple[tuple[str, ...], str]] = {
    "get_shape": (("get_shape",), "also `x.shape`"),
    "get_stride": (("get_stride",), "also `x.stride`"),
    "crd2idx": (("crd2idx",), "also `layout((i, j))`"),
    "slice_": (("slice_",), "for a tensor also `t[None, j]`"),
    "make_tensor": (("make_tensor",), "for registers, `cute.make_rmem_tensor`"),
    "load": (("load",), "also `t.load()`; for one element, `t[i, j]`"),
    "store": (("store",), "also `t.store(v)`; for one element, `t[i, j] = x`"),
    "clear": (("clear",), "also `t.fill(0)`"),
    "fill": (("fill",), "also `t.fill(x)`"),
    "mma_make_fragment_a": (("mma_make_fragment_a",), "also `mma.make_fragment_A(x)`"),
    "mma_make_fragment_b": (("mma_make_fragment_b",), "also `mma.make_fragment_B(x)`"),
    "mma_make_fragment_c": (("mma_make_fragment_c",), "also `mma.make_fragment_C(x)`"),
    "make_tiled_copy": (("make_tiled_copy",), "also `make_tiled_copy_tv`, `_A`, `_B`, `_C`, `_S`, `_D`"),
    "partition_s": (("partition_s",), "also `thr_copy.partition_S(x)`"),
    "partition_d": (("partition_d",), "also `thr_copy.partition_D(x)`"),
    "copy_atom_call": (("copy_atom_call",), "one instruction"),
    "make_tma_load": (("nvgpu.cpasync.make_tiled_tma_atom",), "with `CopyBulkTensorTileG2SOp()`, on the host"),
    "make_tma_store": (("nvgpu.cpasync.make_tiled_tma_atom",), "with `CopyBulkTensorTileS2GOp()`, on the host"),
    "make_exec_tma_load": (("copy",), "`tma_bar_ptr=`, `mcast_mask=`, `cache_policy=` are given to the copy"),
    "make_exec_tma_store": (("copy",), "`cache_policy=` likewise"),
    "atom_get_value": (("MmaAtom.get",), "also for a `TiledMma`"),
    "atom_set_value": (("MmaAtom.set",), "returns the changed atom"),
    "warp_mma_f16bf16": (("nvgpu.warp.MmaF16BF16Op",), _SAME_MMA),
    "warp_mma_tf32": (("nvgpu.warp.MmaTF32Op",), _SAME_MMA),
    "warp_mma_sparse": (
        ("nvgpu.warp.MmaF16BF16SparseOp",),
        "and `MmaTF32SparseOp`, `MmaFP8SparseOp`, `MmaI8SparseOp`, `MmaI4SparseOp`, `MmaF8F6F4SparseOp`; block-scaled "
        "`MmaMXF8F6F4SparseOp`, `MmaMXF4SparseOp`, `MmaMXF4NVF4SparseOp`",
    ),
    "warpgroup_mma": (("nvgpu.warpgroup.MmaF16BF16Op",), "and `MmaTF32Op`, `MmaF8Op`, `MmaI8Op`, `MmaB1Op`"),
    "warpgroup_mma_sparse": (
        ("nvgpu.warpgroup.MmaF16BF16SparseOp",), "and `MmaTF32SparseOp`, `MmaF8SparseOp`, `MmaI8SparseOp`",
    ),
    "tcgen05_mma": (
        ("nvgpu.tcgen05.MmaF16BF16Op",), "and `MmaTF32Op`, `MmaI8Op`, `MmaFP8Op`, `MmaF8F6F4Op`; " + _SAME_MMA,
    ),
    "tcgen05_block_scaled_mma": (("nvgpu.tcgen05.MmaMXF8Op", "nvgpu.tcgen05.MmaMXF4Op"), _SAME_MMA),
    "copy_universal": (("nvgpu.CopyUniversalOp",), _SAME_COPY),
    "ldmatrix": (
        ("nvgpu.warp.LdMatrix8x8x16bOp",), "and `LdMatrix16x16x8bOp`, `LdMatrix16x8x8bOp`, `LdMatrix8x16x8bOp`",
    ),
    "cpasync_g2s": (("nvgpu.cpasync.CopyG2SOp",), _SAME_COPY),
    "tma_load_execute": (("copy",), "with an atom of `CopyBulkTensorTileG2SOp`"),
    "tma_store_execute": (("copy",), "with an atom of `CopyBulkTensorTileS2GOp`"),
    "mbarrier_init": (("arch.mbarrier_init",), ""),
    "mbarrier_arrive": (("arch.mbarrier_arrive",), ""),
    "mbarrier_wait": (("arch.mbarrier_wait",), ""),
}  # fmt: skip
"""By an operation of the CuTe IR, its names here, of which the first that there is counts, and what is to be said."""
