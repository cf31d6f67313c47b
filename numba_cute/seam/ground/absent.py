# SPDX-License-Identifier: Apache-2.0
"""Names of the CuTe DSL that this library lacks: what to write instead, or why. Data of the errors that an unknown name
gives (`names`) and of docs/compatibility.md.

A key is a name as it stands under `numba_cute`, such as "arch.inline_ptx"; under a class, such as "Tensor.fill_"; or,
with "*" for the class, one of any object.
"""

from __future__ import annotations

_NUMBA = "use Numba: `cuda.declare_device(name, signature, link=…)` calls external device code"
_SM107 = "the matrix operations of sm_107 are not supported yet"
_MAINLOOP = "write a loop of `consumer_wait_and_get_stage`, `dot` and `consumer_release_and_advance`"

ABSENT = {
    "ffi.BitCode": _NUMBA,
    "ffi.ConstValue": _NUMBA,
    "ffi.extern": _NUMBA,
    "ffi.ffi": _NUMBA,
    "ffi.mangle": _NUMBA,
    "nvgpu.tcgen05.SM107MmaF16BF16SparseOp": _SM107,
    "nvgpu.tcgen05.SM107MmaFP8Op": _SM107,
    "nvgpu.tcgen05.SM107MmaFP8SparseOp": _SM107,
    "nvgpu.tcgen05.append_s2t_broadcast_mode": "no public documentation describes it",
    "utils.Band": "undocumented",
    "utils.create_tensor_a": "it makes torch tensors for tests; `runtime.from_dlpack` takes any array",
    "experimental.mainloop_mma_sm120": _MAINLOOP,
    "experimental.dot_sparse": "`dot` with an atom that has Field.METADATA set",
    "experimental.CLCPipeline": "`pipeline.PipelineClcFetchAsync`",
}
"""The reasons why names of the CuTe DSL's lists are absent. One that exists by now is not looked up here."""

_UNSHOWN = "no public kernel uses it"

ABSENT_MODULES = {
    "experimental": (
        _UNSHOWN,
        (
            "AccumulatorBufferingKind", "AccumulatorBufferingPlan", "AccumulatorDrain", "AccumulatorOverlapPolicy",
            "AllocationRequirement", "B32PayloadCodec", "CTA_PAIR_PEER_LOCALE", "CircularBufferPipelineState",
            "ClusterMailbox", "GroupedGemmSchedulerPipeline", "MbarrierOwner", "PipelineLocale",
            "TMAToUMMACircularPipeline", "TmemAllocationRequest", "b32_payload",
            "circular_buffer_pipeline_advance_iterator", "circular_buffer_pipeline_consume",
            "circular_buffer_pipeline_consumer_release", "create_circular_buffer_pipeline", "elementwise",
            "is_preferred_cluster", "plan_accumulator_buffering", "predicated_tensor_origin", "warp_reduce",
        ),
    ),
}  # fmt: skip
"""By module, why names of it are absent that have no reason of their own, and which these are."""

_TORCH = "it makes torch tensors for tests; `runtime.from_dlpack` takes any array"
_COMPILER = "part of the DSL's compiler; this library uses Numba"

EXAMPLES = {
    "Float8E4M3": "the only use of it rejects it; `Float8E4M3FN` is the hardware's type",
    "GridConstant": "not needed: tensor maps and layouts are passed as grid constants automatically",
    "arch.Arch": 'a target is a string, `arch="sm_100a"`; `cute.target("sm_100a")` describes it',
    "arch.nvvm_wrappers.prefetch": "`cute.prefetch(atom, src)` prefetches what TMA or a bulk copy will load; the "
    "other functions are in `cute.arch`",
    "nvgpu.cpasync.CopyBulkTensorTileG2SNonExecTrait": _COMPILER,
    "_mlir": _COMPILER,
    "cutlass_dsl.dsl_user_op": _COMPILER,
    "dtype": "`runtime.from_dlpack(array).element_type`, or the type itself",
    "runtime.make_fake_stream": "`cute.compile` takes no stream",
    "torch.RandomInitConfig": _TORCH,
    "torch.TensorInitType": _TORCH,
    "torch.convert_cute_tensor": _TORCH,
    "torch.create_and_permute_torch_tensor": _TORCH,
    "torch.cute_tensor_like": _TORCH,
    "torch.default_stream": "kernels take torch streams directly",
    "torch.dtype": _TORCH,
    "torch.matrix": _TORCH,
    "nvgpu.warp.mma.MXF8F6F4_SUPPORTED_PAIRS": "`nvgpu.warp.MXF8F6F4_SUPPORTED_PAIRS`",
}
"""The reasons why names are absent that the CuTe DSL's public examples use, besides the names that are listed."""

_IF = "plain Python in the kernel: `if`, `for` and `while` are compiled"
_PLAIN_CAST = "`cute.Float32(x)`, or another element type"
_TUPLES = "a Python tuple"
_OPTIONS = "`cute.compile(kernel, *args, arch=…)` takes the target; pass other options to `@cuda.jit(…)`"
_RANGE = "`range(n)` (a loop of the kernel), or `cute.range(n, unroll=…)`"
_FLAT = "its names are in `nvgpu.warp`, `nvgpu.warpgroup`, `nvgpu.tcgen05` and `nvgpu.cpasync`"
_HERE = "its names are in `numba_cute` itself"

FOREIGN = {
    "dynamic_expr": _IF,
    "range_dynamic": _RANGE,
    "for_generate": _IF,
    "if_generate": _IF,
    "while_generate": _IF,
    "yield_out": _IF,
    "Int128": "there is no 128-bit type; use two of `cute.Int64`",
    "NumericMeta": "`cute.Numeric`, the class of element types, which are objects",
    "core": _HERE,
    "typing": _HERE,
    "atom": _HERE,
    "algorithm": _HERE,
    "cute": _HERE,
    "dsl": _COMPILER,
    "base_dsl": _COMPILER,
    "cutlass_dsl": _COMPILER,
    "impl_utils": _COMPILER,
    "ffi": _NUMBA,
    "extern": _NUMBA,
    "torch": f"{_TORCH}; kernels take torch streams directly",
    "export": "use `cute.compile(…).cubin` and `.ptx`",
    "jax": "`runtime.from_dlpack` takes JAX arrays",
    "register_jit_arg_adapter": "not needed: kernels take arrays, numbers, CuTe objects and plain objects directly",
    "JitArgAdapterRegistry": "not needed: kernels take arrays, numbers, CuTe objects and plain objects directly",
    "CompileOptions": _OPTIONS,
    "OptLevel": _OPTIONS,
    "PtxasOptions": _OPTIONS,
    "GPUArch": _OPTIONS,
    "EnableAssertions": "a kernel's assertions are checked at compile time and in the simulator",
    "GenerateLineInfo": "`@cuda.jit(lineinfo=True)`",
    "KeepPTX": "`cute.compile(…).ptx`",
    "KeepCUBIN": "`cute.compile(…).cubin`",
    "DumpDir": "`cute.compile(…)` has `.ptx`, `.cubin` and `.sass`",
    "address_space": "`cute.AddressSpace`",
    "print_latex": "`utils.print_latex`",
    "print_latex_tv": "`utils.print_latex_tv`",
    "is_dynamic": "`not cute.is_static(x)`",
    "make_int_tuple": _TUPLES,
    "make_tuple": _TUPLES,
    "as_arithmetic_tuple": _TUPLES,
    "make_counting_tensor": "`cute.make_identity_tensor(shape)`",
    "make_rmem_ptr": "`cute.make_rmem_tensor(shape, element_type)`",
    "make_gmem_ptr": "`cute.make_ptr(element_type, address, cute.AddressSpace.gmem)`",
    "make_smem_ptr": "`cute.make_ptr(element_type, address, cute.AddressSpace.smem)`",
    "make_fragment_A": "a method: `tiled_mma.make_fragment_A(x)`",
    "make_fragment_B": "a method: `tiled_mma.make_fragment_B(x)`",
    "make_fragment_C": "a method: `tiled_mma.make_fragment_C(x)`",
    "partition_A": "a method: `tiled_mma.get_slice(thread).partition_A(x)`",
    "partition_B": "a method: `tiled_mma.get_slice(thread).partition_B(x)`",
    "partition_C": "a method: `tiled_mma.get_slice(thread).partition_C(x)`",
    "partition_S": "a method: `tiled_copy.get_slice(thread).partition_S(x)`",
    "partition_D": "a method: `tiled_copy.get_slice(thread).partition_D(x)`",
    "retile_S": "a method: `thr_copy.retile(x)`",
    "retile_D": "a method: `thr_copy.retile(x)`",
    "cooperative_copy": "`cute.copy(tiled_copy, src, dst)` on the threads' partitions",
    "max_alignment": "`ptr.alignment`",
    "is_layout": "`isinstance(x, cute.Layout)`",
    "back": "`cute.get(x, cute.rank(x) - 1)`",
    "take": "`cute.select(x, mode=[…])`, or a slice of a tuple",
    "concat": "`cute.append(x, y)`, or `cute.tuple_cat(x, y)`",
    "transform": "`cute.transform_leaf(f, x)`, or `cute.transform_apply(…)`",
    "tuple_map": "a Python comprehension: `tuple(f(y) for y in x)`",
    "arch.ProxyKind": 'a string: `arch.fence_proxy("async.shared", space="cta")`',
    "arch.SharedSpace": 'a string: `space="cta"` or `space="cluster"`; for copies, `nvgpu.SharedSpace`',
    "arch.mbarrier_init_tx_bytes": "`arch.mbarrier_expect_tx(ptr, nbytes)`, or `arch.mbarrier_arrive_and_expect_tx`",
    "arch.mbarrier_init_arrive_cnt": "`arch.mbarrier_init(ptr, count)`",
    "arch.mbarrier_fence_init": "`arch.mbarrier_init_fence()`",
    "arch.inline_asm": "`arch.inline_ptx`, whose `meaning=` the simulator runs",
    "arch.sync_cluster": "`arch.cluster_arrive()`, then `arch.cluster_wait()`",
    "arch.cluster_sync": "`arch.cluster_arrive()`, then `arch.cluster_wait()`",
    "arch.syncthreads": "`arch.sync_threads()`",
    "arch.syncwarp": "`arch.sync_warp()`",
    "arch.threadfence": "`arch.fence_acq_rel_gpu()`, or Numba's `cuda.threadfence()`",
    "arch.fence": "`arch.fence_acq_rel_cta()`, `arch.fence_acq_rel_gpu()` or another fence of `arch`",
    "arch.membar": "`arch.fence_acq_rel_cta()`, `arch.fence_acq_rel_gpu()` or another fence of `arch`",
    "arch.thread_id": "`arch.thread_idx()`",
    "arch.block_id": "`arch.block_idx()`",
    "arch.atomicAdd": "`arch.atomic_add(ptr, value)`, or Numba's `cuda.atomic.add(array, index, value)`",
    "arch.ld": "`arch.load(ptr, element_type)`",
    "arch.st": "`arch.store(ptr, value)`",
    "arch.ldmatrix": "`cute.copy` with an atom of `nvgpu.warp.LdMatrix8x8x16bOp`",
    "arch.exp": "`cute.math.exp(x)`",
    "arch.log2": "`cute.math.log2(x)`",
    "arch.ceil_div": "`cute.ceil_div(a, b)`",
    "arch.set_max_register": "`arch.setmaxregister_increase(n)` or `arch.setmaxregister_decrease(n)`",
    "arch.printf": "`cute.printf(format, …)`",
    "runtime.load_module": "call what `cute.compile` returns, or launch it as `kernel[grid, block](…)`",
    "runtime.nullptr": "`runtime.make_ptr(element_type, 0, …)`",
    "runtime.TensorAdapter": "kernels take arrays directly, or `runtime.from_dlpack(array)`",
    "runtime.find_runtime_libraries": _COMPILER,
    "utils.sm100.check_gemm_tma_alignment": "`cpasync.make_tiled_tma_atom` refuses tensors that TMA cannot copy",
    "utils.SMEM_CAPACITY": "`utils.get_smem_capacity_in_bytes(arch)`",
    "pipeline.helpers": "its names are in `pipeline` itself",
    "pipeline.sm90": "its names are in `pipeline` itself",
    "pipeline.sm100": "its names are in `pipeline` itself",
    "nvgpu.helpers": _FLAT,
    "nvgpu.OpError": "`CuteError`, this library's error class",
    "math.exp10": "`cute.math.exp2(x * 3.321928094887362)`",
    "math.sigmoid": "`1 / (1 + cute.math.exp(-x))`",
    "math.relu": "`cute.max(x, 0)`, or `cute.where(x > 0, x, 0)` for a vector",
    "*.llvm_ptr": "part of the DSL's compiler; use the pointer itself",
    "*.to_llvm_ptr": "part of the DSL's compiler; use the pointer itself",
    "*.with_stream": "pass it to the launch: `kernel[grid, block, stream](…)`, or `.launch(…, stream=stream)`",
    "*.__c_pointers__": _COMPILER,
    "*.__extract_mlir_values__": _COMPILER,
    "Tensor.size": "`cute.size(tensor)`",
    "Tensor.rank": "`cute.rank(tensor)`",
    "Tensor.ndim": "`cute.rank(tensor)`",
    "Tensor.clear": "`tensor.fill(0)`",
    "Tensor.fill_": "`tensor.fill(value)`",
    "Tensor.to": "`tensor.load().to(element_type)`, a vector",
    "Tensor.data": "`tensor.iterator`, the pointer",
    "Tensor.data_ptr": "`tensor.iterator`, the pointer",
    "Tensor.ptr": "`tensor.iterator`, the pointer",
    "Tensor.strides": "`tensor.stride`",
    "Tensor.numel": "`cute.size(tensor)`",
    "Tensor.T": "`cute.select(tensor, mode=[1, 0])`",
    "Tensor.reshape": "`cute.make_tensor(tensor.iterator, layout)`",
    "Tensor.view": "`cute.make_tensor(tensor.iterator, layout)`, or `cute.recast_tensor(tensor, element_type)`",
    "Layout.size": "`cute.size(layout)`",
    "Layout.rank": "`cute.rank(layout)`",
    "Layout.depth": "`cute.depth(layout)`",
    "Layout.cosize": "`cute.cosize(layout)`",
    "Layout.strides": "`layout.stride`",
    "*.astype": _PLAIN_CAST,
}
"""Other names that kernels for the CuTe DSL, CUTLASS or CUDA C++ bring with them, and what to write instead."""


def reason(path: str, name: str) -> str | None:
    """Return what to write instead of a name, or why there is no such thing; None if nothing is known of it.

    path: the name of the module under `numba_cute` (""), or the class, that was asked. name: what it lacks.
    """
    whole = f"{path}.{name}" if path else name
    for table in (ABSENT, EXAMPLES, FOREIGN):
        found = table.get(whole)
        if found is not None:
            return found
    why, names = ABSENT_MODULES.get(path, ("", ()))
    if name in names:
        return why
    within = (text for table in (ABSENT, EXAMPLES) for key, text in table.items() if key.startswith(whole + "."))
    return next(within, None) or FOREIGN.get(f"*.{name}")
