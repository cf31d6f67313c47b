# SPDX-License-Identifier: Apache-2.0
"""Operations as the CuTe DSL prints them are read, verified and printed to the letter, and read again in both forms;
wrong ones are refused at their line."""

import re

import pytest

pytest.importorskip("xdsl")

from numba_cute.ir.dialect import modules  # noqa: E402
from numba_cute.ir.dialect.printed_operations import ROWS  # noqa: E402
from tests import printed_ir  # noqa: E402

TYPES = {
    "GMEM": '!cute.memref<f32, gmem, align<16>, "(8,(4,?)):(4,(1,32))">',
    "RMEM": '!cute.memref<f32, rmem, align<32>, "(2,4):(4,1)">',
    "SMEM": '!cute.memref<f16, smem, align<128>, S<2,4,3>, "(16,(32,1)):(32,(1,0))">',
    "CT": '!cute.coord_tensor<"(0,0)", "(8,(4,?)):(1@0,(1@1,4@1))">',
    "DESC": '!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,4):(0,2)">',
    "SPTR": "!cute.ptr<i64, smem, align<8>>",
    "GPTR": "!cute.ptr<f32, gmem, align<16>>",
    "TPTR": "!cute.ptr<f32, tmem, align<16>>",
    "COPY": "!cute_nvgpu.atom.universal_copy<f32, 64 b>",
    "TCOPY": "!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32, 64 b>, "
    'layout_copy_tv = <"(8,4):(4,1)">, tiler_mn = <"[4:1;8:1]">>',
    "MMA": "!cute_nvgpu.atom.universal_fma<1x1x1, (f32, f32) -> f32 >",
    "TMMA": "!cute.tiled_mma<!cute_nvgpu.atom.universal_fma<1x1x1, (f32, f32) -> f32 >, "
    'atom_layout_MNK = <"(4,4,1):(4,1,0)">, permutation_MNK = <"[_;_;_]">>',
    "LOADS": "!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f16, copy_bits = 8192, "
    'tma_gbasis = <"(16,32):(1@1,1@0)">, tma_format = F16_RN>',
    "LOAD": "!cute_nvgpu.atom.tma_load<f16, copy_bits = 8192, mode = tiled, num_cta = 1, "
    'g_stride = <"()"> tma_gbasis = <"(16,32):(1@1,1@0)">>',
    "STORES": '!cute_nvgpu.atom.non_exec_tiled_tma_store<f16, copy_bits = 8192, tma_gbasis = <"(16,32):(1@1,1@0)">, '
    "tma_format = F16_RN>",
    "TMEM": '!cute.memref<f32, tmem, align<16>, "(128,64):(65536,1)">',
    "CFG": "!cuda.launch_cfg<max_attrs = 4>",
    "BAR": "!llvm.ptr<3>",
}

WRITTEN = """
%ptr = cute.add_offset(%a, %b) : (GPTR, !cute.int_tuple<"4">) -> GPTR
%iv = cute.assume(%a) : (i32) -> !cute.i32<divby 4>
%shp = cute.ceil_div(%a, %b) : !cute.int_tuple<"(?,9)">, !cute.tile<"[4:1;2:1]">
%0 = cute.composed_get_inner(%a) : (!cute.composed_layout<"S<1,2,3> o 0 o 8:1">) -> !cute.swizzle<"S<1,2,3>">
%0 = cute.composed_get_offset(%a) : (!cute.composed_layout<"S<1,2,3> o 0 o 8:1">) -> !cute.int_tuple<"0">
%0 = cute.composed_get_outer(%a) : (!cute.composed_layout<"S<1,2,3> o 0 o 8:1">) -> !cute.layout<"8:1">
cute.copy(%a, %b, %c) : (COPY, GMEM, RMEM)
%cosz = cute.cosize(%a) : (!cute.layout<"(4,3):(3,1)">) -> !cute.int_tuple<"12">
%sz = cute.size(%a) <{mode = [0]}> : (RMEM) -> !cute.int_tuple<"2">
%sz = cute.size(%a) : (!cute.shape<"(4,?)">) -> !cute.int_tuple<"?{div=4}">
%idx = cute.crd2idx(%a, %b) : (!cute.coord<"(1,?)">, !cute.layout<"(4,8):(8,1)">) -> !cute.int_tuple<"?">
%tup = cute.deref_arith_tuple_iter(%a) : !cute.arith_tuple_iter<"(?,0)">
%dice = cute.dice(%a, "(1,_)") : (!cute.layout<"(3,5):(5,1)">) -> !cute.layout<"(3):(5)">
%0 = cute.elem_less(%a, %b) : !cute.coord<"(1,?)">, !cute.coord<"(2,3)">
%filtered = cute.filter(%a) : !cute.layout<"(4,2):(0,1)">
%filtered = cute.filter_zeros(%a) : GMEM
cute.gemm(%a, %b, %c, %d, %b) : (TMMA, RMEM, DESC, DESC, RMEM)
%0 = cute.get(%a) <{mode = [1]}> : !cute.layout<"(4,2):(1,4)"> -> !cute.layout<"2:4">
%0 = cute.get_flat_coord(%a, %b) : (i32, !cute.layout<"(4,?):(1,4)">) -> !cute.coord<"(?,?)">
%0 = cute.get_hier_coord(%a, %b) : (i32, !cute.layout<"(4,(2,2)):(1,(4,8))">) -> !cute.coord<"(?,(?,?))">
%iter = cute.get_iter(%a) : CT
%lay = cute.get_layout(%a) : SMEM
%e0, %e1 = cute.get_leaves(%a) : !cute.shape<"(?,7)">
%0 = cute.get_scalars(%a) : !cute.int_tuple<"?{div=2}">
%0 = cute.get_shape(%a) : (GMEM) -> !cute.shape<"(8,(4,?))">
%0 = cute.get_stride(%a) : (!cute.layout<"(4,2):(1,4)">) -> !cute.stride<"(1,4)">
%grouped = cute.group_modes(%a) <0, 2> : (RMEM) -> !cute.memref<f32, rmem, align<32>, "((2,4)):((4,1))">
%0 = cute.inttoptr(%a) : !cute.i32<divby 4> to TPTR
%0 = cute.kernel_smem_size @kernels::@k : i64
%tiled_view = cute.local_tile(%a, %b, %c, "(1,_)") : (RMEM, !cute.tile<"[2:1;2:1]">, !cute.coord<"(?,_)">) -> RMEM
%div = cute.logical_divide(%a, %b) : RMEM, !cute.layout<"2:1">
%int_tup_iter = cute.make_arith_tuple_iter(%a) : (!cute.int_tuple<"(0,?)">) -> !cute.arith_tuple_iter<"(0,?)">
%atom = cute.make_atom() : () -> COPY
%lay = cute.make_composed_layout(%a, %b, %c) : !cute.composed_layout<"S<2,4,3> o 0 o (8,32):(32,1)">
%0 = cute.make_identity_layout(%a) : !cute.layout<"(3,?):(1@0,1@1)">
%0 = cute.make_identity_tensor(%a) : !cute.coord_tensor<"(0,0)", "(3,?):(1@0,1@1)">
%lay = cute.make_layout(%a) : !cute.layout<"(2,(1,3)):(1,(0,2))">
%lay = cute.make_layout(%a, %b) : !cute.layout<"(2,3):(7,1)">
%0 = cute.make_layout_like(%a) : !cute.layout<"(3,5):(10,2)"> to !cute.layout<"(3,5):(5,1)">
%0 = cute.make_tiled_copy(%a) : TCOPY
%0 = cute.make_tiled_mma(%a) : TMMA
%view = cute.make_view(%a, %b) : SMEM
%rmem = cute.memref.alloca(%a) : RMEM
%smem = cute.memref.alloca() {smem.partition_id = 2 : i32} : SMEM
%0 = cute.memref.load(%a, %b) : (RMEM, !cute.coord<"(1,?)">) -> f32
%0 = cute.memref.load_vec(%a) : (RMEM) -> vector<8xf32>
cute.memref.store(%a, %b, %c) : (RMEM, !cute.coord<"(1,?)">, f32) -> ()
cute.memref.store_vec(%a, %b) : (vector<8xf32>, RMEM) -> ()
%frg_B = cute.mma.make_fragment B (%a, %b) : (TMMA, !cute.memref<f32, smem, "(1,(4,2),8):(0,(8,64),1)">) -> !cute.memref<f32, rmem, "(1,(4,2),8):(0,(8,32),1)">
cute.print("say \\22{}\\22\\0A", %a) : i64
cute.print("done\\0A")
%iter = cute.recast_iter(%a) : SPTR to !cute.ptr<f16, smem, align<1024>, S<3,4,3>>
%0 = cute.recast_layout<32, 16> (%a) : !cute.layout<"(8,4):(1,8)"> to !cute.layout<"(4,4):(1,4)">
%0 = cute.select<[1]> (%a) : (!cute.layout<"(8,4):(1,8)">) -> !cute.layout<"(4):(8)">
%0 = cute.shape_div(%a, %b) : !cute.shape<"(8,6)">, !cute.shape<"(2,3)">
%slice = cute.slice(%a, %b) : CT, !cute.coord<"(?,_)">
%src_partitioned = cute.tiled.copy.partition_S(%a, %b, %c) : (TCOPY, GMEM, !cute.coord<"?">) -> !cute.memref<f32, gmem, align<16>, "((2,2),2,?):((4,8),16,64)">
%dst_partitioned = cute.tiled.copy.partition_D(%a, %b, %c) : (TCOPY, CT, !cute.coord<"?">) -> !cute.coord_tensor<"(0,?)", "((2,2),2,?):((1@0,2@0),4@0,8@1)">
%retiled = cute.tiled.copy.retile(%a, %b) : (TCOPY, !cute.memref<f32, rmem, align<32>, "((4,1),2,3):((1,0),4,8)">) -> !cute.memref<f32, rmem, align<32>, "((2,2),2,3):((1,2),4,8)">
%ptn_C = cute.tiled.mma.partition C (%a, %b, %c) : (TMMA, GMEM, !cute.coord<"?">) -> !cute.memref<f32, gmem, align<16>, "(1,2,?):(0,16,32)">
%0 = cute.tiled.mma.partition_shape A (%a, %b) : (TMMA, !cute.shape<"(8,8)">) -> !cute.shape<"(1,2,8)">
%div = cute.tiled_divide(%a, %b) : RMEM, !cute.tile<"[2:1;2:1]">
%tile_to_shape = cute.tile_to_shape(%a, %b, %c) : (!cute.layout<"(2,2):(1,2)">, !cute.shape<"(4,4)">, !cute.int_tuple<"(2,1)">) -> !cute.layout<"((2,2),(2,2)):((1,8),(2,4))">
%itup = cute.to_int_tuple(%a) : !cute.shape<"?"> to !cute.int_tuple<"?">
%res = cute.tuple.product(%a) : (!cute.int_tuple<"(3,(2,4))">) -> !cute.int_tuple<"24">
%res = cute.tuple.product_each(%a) : (!cute.int_tuple<"(3,(2,4))">) -> !cute.int_tuple<"(3,8)">
%add = cute.tuple_add(%a, %b) : (!cute.int_tuple<"?">, !cute.int_tuple<"3">) -> !cute.int_tuple<"?">
%mod = cute.tuple_mod(%a, %b) : (!cute.int_tuple<"?">, !cute.int_tuple<"3">) -> !cute.int_tuple<"?">
%mul = cute.tuple_mul(%a, %b) : (!cute.int_tuple<"?">, !cute.int_tuple<"3">) -> !cute.int_tuple<"?{div=3}">
%sub = cute.tuple_sub(%a, %b) : (!cute.int_tuple<"?">, !cute.int_tuple<"3">) -> !cute.int_tuple<"?">
%div = cute.zipped_divide(%a, %b) : CT, !cute.tile<"[2:1;2:1]">
%0 = cute_nvgpu.arch.make_warp_uniform(%a) : i32
cute_nvgpu.arch.sm100.alloc_tmem(%a, %b) [ cta_2] : i32, SPTR
cute_nvgpu.arch.sm100.dealloc_tmem(%a, %b) [ cta_2] : TPTR, i32
cute_nvgpu.arch.sm100.relinquish_tmem_alloc_permit [ cta_2]
%tmem_ptr = cute_nvgpu.arch.sm100.retrieve_tmem_ptr(%a) : SPTR -> TPTR
%0 = cute_nvgpu.atom.get_copy_s2t_smem_desc_view(%a, %b) : (TCOPY, SMEM) -> DESC
%0 = cute_nvgpu.atom.make_exec_tma(%a) : (LOADS) -> LOAD
%non_exec_atom, %tma_tensor = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%a, %b, %c) <{kind = <sm_90> num_multicast = 2}> : (GMEM, !cute.layout<"8:1">, !cute.layout<"8:1@0">) -> (LOADS, CT)
%non_exec_atom, %tma_tensor = cute_nvgpu.atom.make_non_exec_tiled_tma_store(%a, %b, %c) : (GMEM, !cute.layout<"8:1">, !cute.layout<"8:1@0">) -> (STORES, CT)
%0 = cute_nvgpu.atom.make_s2t_copy(%a, %b) : (COPY, TMEM) -> TCOPY
%0 = cute_nvgpu.atom.make_tmem_copy(%a, %b) : (COPY, TMEM) -> TCOPY
%0 = cute_nvgpu.atom.set_value<tma_bar>(%a, %b) : (LOAD, SPTR)
%res_smem_tensor, %res_target_tensors = cute_nvgpu.atom.tma_partition(%a, %b, %c, %d, %e) : (LOADS, !cute.coord<"0">, !cute.layout<"1:0">, !cute.memref<f16, smem, align<128>, "((16,32),3):((32,1),512)">, !cute.coord_tensor<"(0,0)", "((16,32),?):((1@1,1@0),16@1)">) -> (!cute.memref<f16, smem, align<128>, "((512,1),3):((1,0),512)">, !cute.coord_tensor<"(0,0)", "(((32,16),1),?):(((1@0,1@1),0),16@1)">)
cute_nvgpu.prefetch_tma_desc(%a) : (STORES) -> ()
%0 = cuda.cast %a : i64 -> !cuda.stream
cuda.launch_cfg.cluster_dim[%a] (%b, %c, %d) : CFG, i32, i32, i32
cuda.launch_cfg.cooperative[%a] %b : CFG, i32
%0 = cuda.launch_cfg.create<max_attrs = 4 : i32> (blockDim = (%a, %a, %a), dynamicSmemBytes = %b, gridDim = (%a, %a, %a), stream = %c) : i32, i32, i32, i64, i32, i32, i32, !cuda.stream -> CFG
cuda.launch_cfg.programmatic_stream_serialization_allowed[%a] %b : CFG, i32
%0 = cuda.launch_ex @kernels::@k<%a> (%b, %c) {assume_kernel_attr = #cuda.assume_kernel_attr<true>} : CFG, (GMEM, i32) -> !cuda.result
cuda.return_if_error %a : i32
nvvm.barrier
nvvm.barrier id = %a
nvvm.barrier id = %a number_of_threads = %b
nvvm.cluster.arrive
nvvm.cluster.wait
nvvm.cp.async.bulk.commit.group
nvvm.cp.async.bulk.wait_group 1 {read}
nvvm.cp.async.commit.group
nvvm.cp.async.wait.group 2
%0 = nvvm.elect.sync -> i1
nvvm.fence.mbarrier.init
nvvm.fence.proxy {kind = #nvvm.proxy_kind<alias>}
%0 = nvvm.mbarrier.arrive %a, %b : BAR -> i64
%0 = nvvm.mbarrier.arrive.expect_tx %a, %b : BAR, i32 -> i64
nvvm.mbarrier.expect_tx %a, %b : BAR, i32
nvvm.mbarrier.init %a, %b : BAR, i32
nvvm.mbarrier.try_wait.parity %a, %b, %c : BAR, i32, i32
%0 = nvvm.mbarrier.wait.parity %a, %b {kind = #nvvm.mbar_wait<test>} : BAR, i32 -> i1
nvvm.tcgen05.commit %a : BAR
nvvm.wgmma.commit.group.sync.aligned
nvvm.wgmma.fence.aligned
nvvm.wgmma.wait.group.sync.aligned 0
%0 = vector.broadcast %a : f32 to vector<8xf32>
%0 = vector.from_elements %a, %b : vector<2xi32>
%0 = nvvm.read.ptx.sreg.cluster.ctarank : i32
%0 = scf.for %arg9 = %a to %b step %c iter_args(%arg8 = %d) -> (RMEM)  : i32 {
%0:2 = scf.if %a -> (RMEM, i32) {
scf.yield %a : RMEM
gpu.module @kernels {
%0 = builtin.unrealized_conversion_cast %a : SPTR to BAR
cf.assert %a, "columns"
"""  # noqa: E501

WRITTEN += """\
%0 = cute.composition(%a, %b) : (RMEM, !cute.layout<"4:1">) -> !cute.memref<f32, rmem, align<32>, "(2,2):(4,1)">
%div = cute.flat_divide(%a, %b) : RMEM, !cute.tile<"[1:1;2:1]">
%0 = cute.fast_divmod.create_divisor(%a) : i32 -> !cute.fast_divmod_divisor<32>
%int_tuple = cute.make_int_tuple(%a) : (!cute.i32<divby 8>) -> !cute.int_tuple<"?{div=8}">
%coord = cute.make_coord(%a, %b) : (!cute.i32<divby 8>, i32) -> !cute.coord<"(?{div=8},?)">
%shape = cute.make_shape(%a) : (!cute.i32<divby 4>) -> !cute.shape<"(?{div=4},8)">
%stride = cute.make_stride(%a) : (!cute.i64<divby 4>) -> !cute.stride<"(?{i64 div=4},1)">
cute.prefetch(%a, %b) : (LOAD, CT)
cute.print_view(%a) : GMEM
%0 = cute.ptrtoint(%a) : GPTR to i64
%div = cute.tuple_div(%a, %b) : (!cute.int_tuple<"?">, !cute.int_tuple<"4">) -> !cute.int_tuple<"?">
%smem_ptr = cute_nvgpu.arch.get_dyn_smem() : !cute.ptr<i8, smem, align<128>>
%smem_size = cute_nvgpu.arch.get_dyn_smem_size() : i32
%0 = cute_nvgpu.atom.get_value<accum_c>(%a) : (TMMA) -> i1
%non_exec_atom, %tma_tensor = cute_nvgpu.atom.make_non_exec_tiled_tma_reduce(%a, %b, %c) <{kind = <ADD>}> : (GMEM, !cute.layout<"(16,16):(16,1)">, !cute.layout<"(16,16):(1@0,1@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_reduce<ADD, f32, copy_bits = 8192, tma_gbasis = <"(16,16):(1@1,1@0)">, tma_format = F32_RN>, !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">)
cute_nvgpu.copy_tma_desc(%a, %b) : (LOADS, SPTR) -> ()
cute_nvgpu.update_tma_desc(%a, %b, %c) : (LOADS, GMEM, SPTR) -> ()
%0 = arith.extsi %a : vector<4xi1> to vector<4xi8>
%0 = arith.extui %a : i16 to i32
%0 = arith.trunci %a : vector<2xi32> to vector<2xi16>
%0 = arith.fptosi %a : vector<4xf32> to vector<4xi32>
%0 = arith.fptoui %a : f32 to i32
%0 = arith.sitofp %a : i32 to f32
%0 = arith.uitofp %a : i8 to f16
%0 = llvm.intr.ctpop(%a) : (i32) -> i32
%0 = nvgpu.cvt_fptrunc %a : vector<4xf32> to vector<4xf8E5M2>
%0 = nvvm.add.packed.f32x2 %a, %b : vector<2xf32>, vector<2xf32> -> vector<2xf32>
%0 = nvvm.mul.packed.f32x2 %a, %b : vector<2xf32>, vector<2xf32> -> vector<2xf32>
%0 = nvvm.fma.packed.f32x2 %a, %b, %c : vector<2xf32>, vector<2xf32>, vector<2xf32> -> vector<2xf32>
nvvm.bar.warp.sync %a : i32
nvvm.cluster.arrive.relaxed
nvvm.cp.async.mbarrier.arrive.shared %a : BAR
nvvm.mbarrier.init.shared %a, %b : BAR, i32
nvvm.mbarrier.try_wait.parity.shared %a, %b, %c : BAR, i32, i32
nvvm.mbarrier.txn %a, %b {kind = #nvvm.mbar_txn_kind<arrive>} : BAR, i32
nvvm.setmaxregister  decrease 24
nvvm.tcgen05.commit.arrive %a : BAR
nvvm.tcgen05.commit.arrive %a, multicast_mask = %b {group = #nvvm.tcgen05_group<cta_2>} : BAR, i16
nvvm.tcgen05.commit %a, multicast_mask = %b {group = #nvvm.cta_group<cta_2>} : BAR, i16
nvvm.mbarrier.arrive %a : !llvm.ptr<7>
nvvm.mbarrier.arrive.expect_tx %a, %b : !llvm.ptr<7>, i32
nvvm.cp.async.mbarrier.arrive %a {noinc = true} : BAR
%0 = llvm.mlir.zero : vector<32xbf16>
nvvm.griddepcontrol launch_dependents
%0 = nvvm.mapa %a, %b : BAR -> !llvm.ptr<7>
%0 = nvvm.redux.sync max %a, %b : i32 -> i32
nvvm.tcgen05.wait <load>
%0 = vector.extract_strided_slice %a {offsets = [4 : i64], sizes = [4 : i64], strides = [1 : i64]} : vector<8xf32> to vector<4xf32>
%0 = vector.splat %a : vector<4xf32>
"""  # noqa: E501


REFUSED = """
%r = cute.add_offset(%a) : (GPTR) -> GPTR | expected 2 operands
%r = cute.add_offset(%a, %b) : (GPTR, !cute.int_tuple<"4">) -> SPTR | points to
%r = cute.add_offset(%a, %b) : (i32, !cute.int_tuple<"4">) -> GPTR | must be ptr or arith_tuple_iter
%r = cute.get_shape(%a) : (GMEM) -> !cute.shape<"(8,4)"> | incompatible with return type
%r = cute.get_iter(%a) : !cute.layout<"4:1"> | must be memref
%r = cute.make_atom() : () -> i32 | must be atom
%r = cute.memref.load(%a, %b) : (RMEM, !cute.coord<"(1,?)">) -> f16 | the tensor holds f32, and the value is f16
%r = cute.memref.load_vec(%a) : (RMEM) -> vector<4xf32> | holds 8 elements, and the vector 4
%r = cute.recast_iter(%a) : SPTR to GPTR | points to smem
%r = cute.mma.make_fragment (%a, %b) : (TMMA, SMEM) -> DESC | expected
%r = cute.group_modes(%a) <0> : (RMEM) -> RMEM | Expected ','
%r = cute.dice(%a, "(1,") : (!cute.layout<"(3,5):(5,1)">) -> !cute.layout<"3:5"> | expected
%r = cute.mma.make_fragment E (%a, %b) : (TMMA, SMEM) -> DESC | takes A or B or C
nvvm.barrier number_of_threads = %a | before operand
nvvm.fence.proxy {kind = #nvvm.proxy_kind<none>} | is one of alias
nvvm.mbarrier.init %a, %b : i32, i32 | must be llvm.ptr
cuda.launch_cfg.cooperative[%a] %b : CFG | operand types
"""


def lines(text):
    for name, type_ in TYPES.items():
        text = re.sub(rf"\b{name}\b", lambda _, t=type_: t, text)
    return text.strip().splitlines()


def name_of(line):
    return re.search(r"\b(?:cute|cute_nvgpu|cuda|nvvm|vector|scf|gpu|builtin|cf|arith|llvm|nvgpu)\.[\w.]*\w", line)[0]


@pytest.mark.parametrize("line", lines(WRITTEN), ids=name_of)
def test_operation_prints_as_it_is_written_and_reads_again(line):
    assert printed_ir.problem(name_of(line), line) is None


UNTYPED = """func.func @f(%arg0: f32, %arg1: i32, %arg2: i1, %arg3: vector<2xf32>, %arg4: !cute.fast_divmod_divisor<32>, %arg5: vector<8xf32>, %arg6: BAR, %arg7: i128) {
  %quotient, %remainder = cute.fast_divmod.compute(%arg1, %arg4) : i32, !cute.fast_divmod_divisor<32> -> i32
  %0 = nvvm.rcp.approx.ftz.f %arg0 : f32
  %1 = nvvm.shfl.sync  bfly %arg1, %arg0, %arg1, %arg1 : f32 -> f32
  %2 = nvvm.vote.ballot.sync %arg1, %arg2 : i32
  %3 = vector.extractelement %arg3[%arg1 : i32] : vector<2xf32>
  %4 = nvvm.fmax %arg0, %3
  %5 = vector.insert_strided_slice %arg3, %arg5 {offsets = [4 : i64], strides = [1 : i64]} : vector<2xf32> into vector<8xf32>
  %6 = nvvm.mapa.shared.cluster %arg6, %arg1 : BAR, i32 -> BAR
  nvvm.clusterlaunchcontrol.try_cancel.multicast %arg6, %arg6
  %7 = nvvm.clusterlaunchcontrol.query_cancel.is_canceled %arg7 : i1
  %8 = nvvm.clusterlaunchcontrol.query_cancel.get_first_ctaid.x %arg7 : i32
  %9 = nvvm.clusterlaunchcontrol.query_cancel.get_first_ctaid.y %arg7 : i32
  %10 = nvvm.clusterlaunchcontrol.query_cancel.get_first_ctaid.z %arg7 : i32
  %11 = nvvm.fmin %arg0, %3
  %12 = nvvm.vote.sync ballot %arg1, %arg2 -> i32
  nvvm.barrier.arrive id = %arg1 number_of_threads = %arg1
  return
}
"""  # noqa: E501


def test_operations_whose_lines_leave_types_out_print_as_they_are_written():
    source = UNTYPED.replace("BAR", TYPES["BAR"])
    found = printed_ir.read(source)
    assert found.problems == []
    assert source.strip() in modules.printed(found.op).replace("\n  ", "\n")
    generic = modules.printed(found.op, generic=True)
    assert modules.printed(printed_ir.read(generic).op) == modules.printed(found.op)


def test_results_have_their_names_behind_the_generic_form():
    line = '%itup = cute.to_int_tuple(%a) : !cute.shape<"?"> to !cute.int_tuple<"?">'
    generic = modules.printed(printed_ir.read(printed_ir.module_of(name_of(line), line)).op, generic=True)
    assert modules.printed(printed_ir.read(generic).op, generic=True) == generic
    assert "%itup = " in generic


OLDER = """func.func @f(%arg0: RMEM) {
  %0 = cute.memref.load_vec %arg0 : RMEM
  cute.memref.store_vec %0, %arg0 : RMEM
  return
}
"""


def test_vectors_as_an_older_release_wrote_them_are_printed_as_the_present_one_does():
    source = OLDER.replace("RMEM", TYPES["RMEM"])
    found = printed_ir.read(source)
    assert found.problems == []
    printed = modules.printed(found.op)
    assert f"%0 = cute.memref.load_vec(%arg0) : ({TYPES['RMEM']}) -> vector<8xf32>" in printed
    assert f"cute.memref.store_vec(%0, %arg0) : (vector<8xf32>, {TYPES['RMEM']}) -> ()" in printed


@pytest.mark.parametrize(("old", "new", "words"), [
    ("load_vec %arg0", "load_vec %arg0, row_major", "Expected ':'"), ("vec %0, %arg0", "vec %arg0", "operand types"),
    ("f32", "f8E4M3FN", "gives no type"),
])  # fmt: skip
def test_older_line_that_says_more_or_less_is_refused(old, new, words):
    source = OLDER.replace("RMEM", TYPES["RMEM"]).replace(old, new)
    assert words in printed_ir.read(source).problems[0].message


def test_every_operation_is_written_here():
    registers = {name for name in ROWS if name.startswith("nvvm.read.ptx.sreg.")}
    assert set(ROWS) - registers <= {*map(name_of, lines(WRITTEN)), *re.findall(r"[a-z_]+\.[\w.]+(?=[ (])", UNTYPED)}


@pytest.mark.parametrize("line", lines(REFUSED), ids=lambda line: line.rpartition(" | ")[2])
def test_wrong_operation_is_refused_at_its_line_in_words(line):
    text, _, words = line.rpartition(" | ")
    found = printed_ir.read(printed_ir.module_of(name_of(text), text))
    assert [d.line for d in found.problems] == [3] * len(found.problems) != []
    assert words in found.problems[0].message


KERNEL = """module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @k(%arg0: GMEM, %arg1: !cute.coord_tensor<"(0,0)", "(8,(4,?)):(1/2@0,(1@1,4@1))">, %arg2: i32) attributes {cute.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %coord = cute.make_coord(%arg2) : (i32) -> !cute.coord<"(_,?)">
      %slice = cute.slice(%arg0, %coord) : GMEM, !cute.coord<"(_,?)">
      %iter = cute.get_iter(%slice) : !cute.memref<f32, gmem, align<4>, "(8):(4)">
      %lay = cute.get_layout(%slice) : !cute.memref<f32, gmem, align<4>, "(8):(4)">
      %filtered = cute.filter_zeros(%arg1) : !cute.coord_tensor<"(0,0)", "(8,(4,?)):(1/2@0,(1@1,4@1))">
      %c0_i32 = arith.constant 0 : i32
      %c0_i32_0 = arith.constant 0 : i32
      %0 = arith.cmpi slt, %arg2, %c0_i32 : i32
      scf.if %0 {
        %c0_i32_1 = arith.constant 0 : i32
        %1 = arith.addi %c0_i32_1, %c0_i32_0 : i32
        nvvm.barrier id = %1
      } else {
        %cst = arith.constant 1.000000e+00 : f32
      }
      scf.for %arg3 = %c0_i32 to %arg2 step %c0_i32_0  : i32 {
        nvvm.cluster.arrive
      }
      return
    }
  }
  func.func @host(%arg0: i64) -> i32 attributes {llvm.emit_c_interface} {
    %0 = cuda.cast %arg0 : i64 -> !cuda.stream
    %c0_i32 = arith.constant 0 : i32
    return %c0_i32 : i32
  }
}
"""  # noqa: E501


def test_module_prints_as_it_is_written_with_the_names_of_its_values():
    text = "\n".join(lines(KERNEL)) + "\n"
    found = printed_ir.read(text)
    assert not found.problems
    assert modules.printed(found.op) == text
    again = printed_ir.read(modules.printed(found.op, generic=True))
    assert not again.problems
    assert modules.printed(again.op) == text


@pytest.mark.parametrize("old,new", [("align<4>, \"(8)", "align<4>, \"(7)"), ("f32, gmem, align<4>", "f16, gmem, align<4>")])  # fmt: skip  # noqa: E501
def test_use_of_another_type_than_is_inferred_is_refused(old, new):
    text = "\n".join(lines(KERNEL)).replace(old, new)
    assert [d.line for d in printed_ir.read(text).problems] == [6]


@pytest.mark.slow
@pytest.mark.skipif(
    not printed_ir.LIST.is_file(), reason="the list of printed operations is not part of the repository"
)
def test_every_line_of_the_list_prints_the_same():
    found = {line: printed_ir.problem(name, line) for name, given in printed_ir.operations() for line in given}
    assert len(found) > 300
    assert not {line: problem for line, problem in found.items() if problem}
