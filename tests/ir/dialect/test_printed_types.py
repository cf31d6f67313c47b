# SPDX-License-Identifier: Apache-2.0
"""Types that the CuTe DSL prints beside the published ones are read, verified and printed to the letter."""

import pytest

pytest.importorskip("xdsl")

from numba_cute.ir.dialect import modules  # noqa: E402
from numba_cute.ir.dialect.printed_types import FORMS  # noqa: E402

WRITTEN = """
!cuda.launch_cfg<max_attrs = 3>
!cuda.result
!cuda.stream
!cute.ptr<f16, gmem>
!cute.ptr<bf16, smem, align<128>, S<2,4,3>>
!cute.memref<f32, rmem, "(4,2):(1,4)">
!cute.memref<f8E4M3FN, smem, align<64>, S<3,4,3>, "(64,?):(1,?{i64 div=64})">
!cute.memref<f16, smem, align<64>, "S<3,4,3> o 0 o (8,64):(64,1)">
!cute.coord_tensor<"(0,?{div=4})", "(8,(4,2)):(1@0,(1@1,1/2@0))">
!cute.arith_tuple_iter<"(?,0)">
!cute.i32
!cute.i32<divby 8>
!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16, 64 b>, layout_copy_tv = <"(32,4):(4,1)">, tiler_mn = <"[8:1;16:1]">>
!cute.tiled_mma<!cute_nvgpu.atom.universal_fma<1x1x1, (f32, f32) -> f32 >, atom_layout_MNK = <"(8,8,1):(8,1,0)">, permutation_MNK = <"[_;(8,2):(2,1);_]">>
!cute.tiled_mma<!cute_nvgpu.sm90.mma<64x64x16, ab_major = (k, mn), elem_type = (bf16, bf16, f32), frag_kind = rs>>
!cute_nvgpu.smem_desc
!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,4):(0,2)">
!cute_nvgpu.atom.universal_copy<i8>
!cute_nvgpu.atom.universal_fma<1x1x1, (f16, f16) -> f32 >
!cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
!cute_nvgpu.atom.ldsm<val_type = f16, mode = <"(8,8)">, sz_pattern = u16, num_matrices = 2, t>
!cute_nvgpu.atom.universal_copy<f16, 64 b, l1_cache_eviction_priority=no_allocate>
!cute_nvgpu.atom.tmem_store<f32, 32 DP, 32 bit, x16>
!cute_nvgpu.atom.tma_reduce<f32, copy_bits = 8192, mode = tiled, kind = ADD, g_stride = <"()"> tma_gbasis = <"(16,16):(1@1,1@0)">>
!cute_nvgpu.atom.non_exec_tiled_tma_reduce<ADD, f32, copy_bits = 8192, tma_gbasis = <"(16,16):(1@1,1@0)">, tma_format = F32_RN>
!cute_nvgpu.tma_descriptor_tiled
!cute_nvgpu.sm80.mma<16x8x8, elem_type = (bf16, bf16, f32) >
!cute.fast_divmod_divisor<32>
!cute.i64<divby 16>
!cute.ptr<!cute_nvgpu.tma_descriptor_tiled, gmem, align<64>>
!cute.tiled_mma<!cute_nvgpu.sm80.mma<16x8x8, elem_type = (bf16, bf16, f32) >, atom_layout_MNK = <"(2,1,1):(1,0,0)">>
!cute_nvgpu.atom.stsm<f16, mode = <"(8,8)">, num_matrices = 1, n>
!cute_nvgpu.atom.tmem_load<f32, 32 DP, 32 bit, x8>
!cute_nvgpu.atom.s2t_copy<f8E4M3FN, 32 DP, 128 bit, 2 cta, x4>
!cute_nvgpu.atom.tma_load<f16, copy_bits = 4096, mode = tiled, num_cta = 2, g_stride = <"()"> tma_gbasis = <"(16,16):(1@0,1@1)">>
!cute_nvgpu.atom.tma_store<f16, copy_bits = 4096, mode = tiled, g_stride = <"()"> tma_gbasis = <"(16,16):(1@0,1@1)">>
!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f16, copy_bits = 4096, tma_gbasis = <"(16,16):(1@0,1@1)">, tma_format = F16_RN>
!cute_nvgpu.atom.non_exec_tiled_tma_store<f16, copy_bits = 4096, tma_gbasis = <"(16,16):(1@0,1@1)">, tma_format = F16_RN>
!cute_nvgpu.sm90.mma<64x256x16, ab_major = (mn, k), elem_type = (f16, f16, f16), frag_kind = ss>
!cute_nvgpu.sm100.mma<128x64x32, num_cta = 2, ab_major = (k, k), elem_type = (f8E5M2, f8E4M3FN, f32), frag_kind = ss, c_scale_exp = 0>
!cute_nvgpu.sm100.mma_bs<128x64x32, num_cta = 1, ab_major = (k, k), elem_type = (f8E5M2, f8E5M2, f32), sf_type = f8E8M0FNU, frag_kind = ss, vec_size = 32>
"""  # noqa: E501

REFUSED = """
!cute.ptr<f16> | is written as
!cute.ptr<half, gmem> | is written as
!cute.ptr<f16, lmem> | is none of generic, gmem
!cute.ptr<f16, smem, align<-8>> | negative
!cute.ptr<f16, smem, S<3,4,2>> | not a swizzle
!cute.memref<f16, smem, "(4,2):(1)"> | no stride for each extent
!cute.memref<f16, smem, "(4,2"> | expected ')'
!cute.coord_tensor<"(0,_)", "4:1@0"> | expected an integer
!cute.i32<divby 99999999999999999999> | does not fit
!cute.tiled_copy<!cute_nvgpu.atom.none, layout_copy_tv = <"1:0">, tiler_mn = <"[1:0]">> | not a type of an atom
!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f16>, layout_copy_tv = <"1:0">> | is written as
!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc> | is written as
!cute_nvgpu.sm90.mma<64xNx16> | is written as
"""


def lines(text):
    return text.strip().splitlines()


@pytest.mark.parametrize("written", lines(WRITTEN))
def test_type_prints_as_it_is_written(written):
    found = modules.read(f"func.func @f(%a: {written}) {{\n  return\n}}")
    assert not found.problems, found.problems
    printed = modules.printed(found.op)
    assert f"%arg0: {written})" in printed
    assert modules.printed(modules.read(printed).op) == printed


def test_every_type_is_written_here():
    names = {line[1:].partition("<")[0] for line in lines(WRITTEN)}
    assert names == set(FORMS)


def test_spaces_within_a_type_do_not_count():
    source = "func.func @f(%a: !cute.ptr< f16 ,gmem,align< 16 > >, %b: !cute.i32) {\n  return\n}"
    assert "%arg0: !cute.ptr<f16, gmem, align<16>>, %arg1: !cute.i32)" in modules.printed(modules.read(source).op)


@pytest.mark.parametrize("line", lines(REFUSED))
def test_wrong_type_is_refused_at_its_place_in_words(line):
    written, words = line.split(" | ")
    found = modules.read(f"func.func @f(%b: i32,\n  %a: {written}) {{\n  return\n}}")
    assert [d.line for d in found.problems] == [2]
    assert words in found.problems[0].message


def test_values_of_these_types_pass_through_control_flow():
    source = """func.func @f(%c: i1, %p: !cute.ptr<f16, gmem>) -> !cute.ptr<f16, gmem> {
      %r = scf.if %c -> (!cute.ptr<f16, gmem>) {
        scf.yield %p : !cute.ptr<f16, gmem>
      } else {
        scf.yield %p : !cute.ptr<f16, gmem>
      }
      return %r : !cute.ptr<f16, gmem>
    }"""
    assert not modules.read(source).problems
