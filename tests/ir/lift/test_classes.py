# SPDX-License-Identifier: Apache-2.0
"""What several printed kernels had in common, each by a small text: brackets, shapes and bits of vectors, lanes that
arrive for a warp, answers of cluster launch control, and what the host's functions ask."""

import numpy as np
import pytest

pytest.importorskip("xdsl")

import numba_cute as cute  # noqa: E402
from numba_cute import ir  # noqa: E402
from tests.ir.lift import texts  # noqa: E402

BAR = "%arg0: !llvm.ptr<3>"


def python(body, parameters=""):
    return ir.to_python(ir.parse(texts.kernel(body, parameters)))


def test_a_sum_within_a_quotient_keeps_its_brackets():
    x = np.arange(7, 39, dtype=np.float32)
    want = np.sqrt((x.astype(np.float64) + 2) / 4 - 2)
    kernel = ir.to_kernel(ir.parse(texts.QUOTIENT))
    cute.simulate(kernel)[1, 32](cute.runtime.from_dlpack(x), np.float32(2), np.float32(4))
    np.testing.assert_allclose(x, want, rtol=1e-6)


def test_vectors_meet_in_one_shape_and_their_bits_are_those_of_memory():
    x = np.arange(-3, 5, dtype=np.float32)
    out = np.zeros(8, np.int8)
    nested = cute.make_tensor(cute.runtime.from_dlpack(x).iterator, cute.make_layout(((2, 2), 2)))
    args = nested, cute.runtime.from_dlpack(out), np.float32(2), 3
    nibbles = x.astype(np.int8).view(np.uint8) & 15
    joined = (nibbles[::2] | nibbles[1::2] << 4).view(np.int32)
    kernel = ir.to_kernel(ir.parse(texts.VECTORS))
    want = np.tile(2 * x[4:], 2) + 2 * x
    cute.simulate(kernel)[1, 1](*args)
    np.testing.assert_array_equal(x, want)
    np.testing.assert_array_equal(out.view(np.int32), [joined[0] + 3, joined[0]])
    assert cute.compile(kernel, *args, arch="sm_80").resources.local == 0


def test_a_loop_does_not_allocate_dynamic_memory():
    body = """      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %c7_i8 = arith.constant 7 : i8
      %coord = cute.make_coord() : () -> !cute.coord<"0">
      scf.for %arg0 = %c0_i32 to %c1_i32 step %c1_i32  : i32 {
        %smem = cute.memref.alloca() : !cute.memref<i8, smem, align<16>, "65536:1">
        cute.memref.store(%smem, %coord, %c7_i8) : (!cute.memref<i8, smem, align<16>, "65536:1">, !cute.coord<"0">, i8) -> ()
      }"""  # noqa: E501
    with pytest.raises(cute.CuteError, match="a loop allocates shared memory"):
        python(body)


LEADERS = {
    "nvvm.elect.sync -> i1": True,
    "arith.cmpi eq, %0, %c1_i32 : i32": False,
}


@pytest.mark.parametrize("leads", LEADERS)
def test_a_warp_meets_before_one_lane_arrives_for_it(leads):
    source = python(texts.RELEASED.replace("LEADS", leads), BAR)
    lines = [line.strip() for line in source.splitlines()]
    at = lines.index("cute.arch.mbarrier_arrive(arg0)")
    assert (lines[at - 2] == "cute.arch.sync_warp()") is LEADERS[leads]


def test_a_warp_of_which_only_some_lanes_come_does_not_meet():
    body = texts.RELEASED.replace("nvvm.read.ptx.sreg.ctaid.x", "nvvm.read.ptx.sreg.tid.x")
    assert "sync_warp" not in python(body.replace("LEADS", "arith.cmpi eq, %0, %c1_i32 : i32"), BAR)


def test_an_answer_of_cluster_launch_control_is_read_once():
    source = ir.to_python(ir.parse(texts.CLUSTERS.replace("BETWEEN", "")))
    assert source.count("cute.arch.clc_response(arg0)") == 1
    assert "arg1[cluster_x] = cute.Int32(taken != 0)" in source


def test_an_answer_that_may_have_changed_is_refused():
    module = ir.parse(texts.CLUSTERS.replace("BETWEEN", "nvvm.cluster.wait"))
    with pytest.raises(cute.CuteError, match="is lifted where it is loaded"):
        ir.to_python(module)


WIDE = '!cute.memref<f32, rmem, align<32>, "((4,1),2):((1,0),4)">'
HALVES = '!cute.memref<f16, rmem, align<32>, "(4,4):(1,4)">'
COLUMN = '!cute.memref<f16, rmem, align<32>, "(4):(1)">'
RECAST = f"""      %rmem = cute.memref.alloca() : {WIDE}
      %iter = cute.get_iter(%rmem) : {WIDE}
      %half = cute.recast_iter(%iter) : !cute.ptr<f32, rmem, align<32>> to !cute.ptr<f16, rmem, align<32>>
      %lay = cute.static : !cute.layout<"(4,4):(1,4)">
      %view = cute.make_view(%half, %lay) : {HALVES}
"""
HALVES_WRITTEN = f"""      %c0_i32 = arith.constant 0 : i32
      %c4_i32 = arith.constant 4 : i32
      %c1_i32 = arith.constant 1 : i32
      scf.for %arg2 = %c0_i32 to %c4_i32 step %c1_i32  : i32 {{
        %coord = cute.make_coord(%arg2) : (i32) -> !cute.coord<"(_,?)">
        %slice = cute.slice(%view, %coord) : {HALVES}, !cute.coord<"(_,?)">
        %0 = arith.sitofp %arg2 : i32 to f16
        %1 = vector.broadcast %0 : f16 to vector<4xf16>
        cute.memref.store_vec(%1, %slice) : (vector<4xf16>, {COLUMN}) -> ()
      }}
"""
EIGHT = '!cute.memref<f32, gmem, align<16>, "(8):(1)">'
SIXTEEN = '!cute.memref<f16, gmem, align<16>, "(16):(1)">'
WIDE_READ = f"""      %2 = cute.memref.load_vec(%rmem) : ({WIDE}) -> vector<8xf32>
      cute.memref.store_vec(%2, %arg0) : (vector<8xf32>, {EIGHT}) -> ()
"""
WIDE_WRITTEN = f"""      %3 = cute.memref.load_vec(%arg0) : ({EIGHT}) -> vector<8xf32>
      cute.memref.store_vec(%3, %rmem) : (vector<8xf32>, {WIDE}) -> ()
"""
HALVES_READ = f"""      %4 = cute.memref.load_vec(%view) : ({HALVES}) -> vector<16xf16>
      cute.memref.store_vec(%4, %arg1) : (vector<16xf16>, {SIXTEEN}) -> ()
"""


def recast(body):
    return ir.parse(texts.kernel(RECAST + body, f"%arg0: {EIGHT}, %arg1: {SIXTEEN}"))


@pytest.mark.parametrize("written", ["halves", "wide"])
def test_registers_of_another_width_take_the_bits_before_they_are_read(written):
    halves = np.repeat(np.arange(4), 4).astype(np.float16)
    kernel = ir.to_kernel(recast(HALVES_WRITTEN + WIDE_READ if written == "halves" else WIDE_WRITTEN + HALVES_READ))
    x = np.zeros(8, np.float32) if written == "halves" else halves.view(np.float32).copy()
    y = np.zeros(16, np.float16)
    args = cute.runtime.from_dlpack(x), cute.runtime.from_dlpack(y)
    cute.simulate(kernel)[1, 1](*args)
    np.testing.assert_array_equal(x.view(np.float16) if written == "halves" else y, halves)
    assert cute.compile(kernel, *args, arch="sm_80").resources.local == 0


def test_registers_that_are_written_in_two_widths_are_refused():
    with pytest.raises(cute.CuteError, match="registers of f32 are not viewed as f16: both are written"):
        ir.to_python(recast(HALVES_WRITTEN + WIDE_WRITTEN + WIDE_READ))


def test_registers_that_another_operation_takes_are_not_viewed_in_two_widths():
    carried = f"""      %true = arith.constant true
      %other = cute.memref.alloca() : {WIDE}
      %5 = scf.if %true -> ({WIDE}) {{
        scf.yield %rmem : {WIDE}
      }} else {{
        scf.yield %other : {WIDE}
      }}
"""
    with pytest.raises(cute.CuteError, match="a loop or a branch gives others"):
        ir.to_python(recast(HALVES_WRITTEN + carried + WIDE_READ))


def test_a_composed_layout_without_a_swizzle_stays_one():
    body = """      %0 = cute.composed_get_inner(%arg0) : (!cute.composed_layout<"(64,2):(1,64)">) -> !cute.swizzle<"S<0,4,3>">
      %1 = cute.composed_get_outer(%arg0) : (!cute.composed_layout<"(64,2):(1,64)">) -> !cute.layout<"(64,2):(1,64)">
      %2 = cute.composed_get_offset(%arg0) : (!cute.composed_layout<"(64,2):(1,64)">) -> !cute.int_tuple<"0">
      %lay = cute.make_composed_layout(%0, %2, %1) : !cute.composed_layout<"(64,2):(1,64)">
      %3 = cute.select<[0]> (%lay) : (!cute.composed_layout<"(64,2):(1,64)">) -> !cute.composed_layout<"(64):(1)">"""  # noqa: E501
    module = ir.parse(texts.kernel(body, '%arg0: !cute.composed_layout<"(64,2):(1,64)">'))
    assert str(ir.parse(str(module))) == str(module)
    assert "make_composed_layout(%0, %2, %1)" in str(module)


@pytest.mark.parametrize("threads", [160, 256])
def test_registers_of_incomplete_warpgroups_stay(threads):
    text = texts.kernel("      nvvm.setmaxregister decrease 40")
    text = text.replace("{cute.kernel}", f"{{cute.kernel, nvvm.reqntid = array<i32: {threads}, 1, 1>}}")
    source = ir.to_python(ir.parse(text))
    assert ("setmaxregister_decrease(40)" in source) is (threads == 256)
    assert f"@cuda.jit(launch_bounds=({threads}, 1))\n" in source


def test_a_module_of_no_kernel_is_lifted(capsys):
    show = ir.to_host(ir.parse(texts.PRINTING))
    show(cute.runtime.from_dlpack(np.arange(6, dtype=np.float32).reshape(2, 3)))
    assert "3.0 4.0 5.0" in capsys.readouterr().out


def test_the_host_asks_of_a_tensor_what_its_type_says():
    host = ir.to_host(ir.parse(texts.ELEMENTWISE))
    x = np.zeros((6, 20), np.float32)
    good, turned, wide = (
        cute.runtime.from_dlpack(a, assumed_align=16) for a in (x, x.T.copy().T, x.astype(np.float64))
    )
    for wrong in (turned, wide):
        with pytest.raises(AssertionError):
            host(good, wrong, None, launch=lambda *_, **__: pytest.fail("launched"))


def test_a_barrier_is_waited_for_by_a_block_or_a_cluster():
    with pytest.raises(cute.CuteError, match="scope 'gpu'"):
        cute.arch.mbarrier_wait(0, 0, scope="gpu")


DESCRIPTORS = '!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,2,4,(1,7)):(0,512,2,(0,1024))">'
FRACTIONS = '"(((512,4),1),?):(((1/2@0,1@1),0),4@1)"'


def test_the_type_of_a_slice_of_descriptors_is_known():
    coord = '!cute.coord<"(_,_,?,?)">'
    body = f"""      %c = cute.make_coord(%arg1, %arg1) : (i32, i32) -> {coord}
      %slice = cute.slice(%arg0, %c) : {DESCRIPTORS}, {coord}"""
    (part,) = [
        op for op in ir.parse(texts.kernel(body, f"%arg0: {DESCRIPTORS}, %arg1: i32")) if op.name == "cute.slice"
    ]
    assert str(part.results[0].type) == '!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,2):(0,512)">'


def test_layouts_of_a_printed_module_count_parts_of_elements():
    """A copy takes its coordinates apart, and puts them together with a mode more."""
    tensor, one = (
        f'!cute.coord_tensor<"(0,0)", {FRACTIONS}>',
        '!cute.coord_tensor<"(0,?{div=4})", "(((512,4),1)):(((1/2@0,1@1),0))">',
    )
    body = f"""      %c = cute.make_coord(%arg1) : (i32) -> !cute.coord<"(_,?)">
      %slice = cute.slice(%arg0, %c) : {tensor}, !cute.coord<"(_,?)">
      %iter = cute.get_iter(%slice) : {one}
      %lay = cute.get_layout(%slice) : {one}
      %lay_0 = cute.static : !cute.layout<"1:0">
      %append = cute.append_to_rank<2> (%lay, %lay_0) : !cute.layout<"(((512,4),1)):(((1/2@0,1@1),0))">, !cute.layout<"1:0">
      %view = cute.make_view(%iter, %append) : !cute.coord_tensor<"(0,?{{div=4}})", "(((512,4),1),1):(((1/2@0,1@1),0),0)">"""  # noqa: E501
    module = ir.parse(texts.kernel(body, f"%arg0: {tensor}, %arg1: i32"))
    assert str(ir.parse(str(module))) == str(module)
    assert "arg0.stride[0][0][0] == cute.E(0)" in ir.to_python(
        ir.parse(texts.kernel(f'      %d = cute.size(%arg0) : ({tensor}) -> !cute.int_tuple<"?">', f"%arg0: {tensor}"))
    )


def test_more_shared_memory_than_is_static_is_dynamic():
    body = """      %smem = cute.memref.alloca() {smem.partition_id = 0 : i32} : !cute.memref<i8, smem, align<1024>, "MUCH:1">
      %c0_i8 = arith.constant 7 : i8
      %coord = cute.make_coord() : () -> !cute.coord<"1000">
      cute.memref.store(%smem, %coord, %c0_i8) : (!cute.memref<i8, smem, align<1024>, "MUCH:1">, !cute.coord<"1000">, i8) -> ()"""  # noqa: E501
    for count in (4096, 65536):
        source = python(body.replace("MUCH", str(count)))
        assert ("cute.utils.SmemAllocator()" in source) is (count == 65536)
        kernel = ir.to_kernel(ir.parse(texts.kernel(body.replace("MUCH", str(count)))))
        cute.simulate(kernel, arch="sm_90a")[1, 1]()
