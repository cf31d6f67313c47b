# SPDX-License-Identifier: Apache-2.0
"""Operations as they are written with all that they may say: each is read, printed the same, and lifted."""

import pytest

pytest.importorskip("xdsl")

import numba_cute as cute  # noqa: E402
from numba_cute import ir  # noqa: E402
from tests.ir.lift import texts  # noqa: E402

PARAMETERS = "%arg0: !llvm.ptr<3>, %arg1: i32, %arg2: i16, %arg3: f32, %arg4: i1"
PEER = "%0 = nvvm.mapa %arg0, %arg1 : !llvm.ptr<3> -> !llvm.ptr<7>\n      "
CLUSTER = "{scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>"


def elected(line):
    return f"%0 = nvvm.elect.sync -> i1\n      scf.if %0 {{\n        {line}\n      }}"


FORMS = {
    PEER + f"nvvm.mbarrier.arrive %0, %arg1 {CLUSTER}": (
        "cute.arch.mbarrier_arrive(arg0, peer_cta_rank_in_cluster=arg1, arrive_count=arg1)"
    ),
    PEER + f"nvvm.mbarrier.arrive.expect_tx %0, %arg1 {CLUSTER}, i32": (
        "cute.arch.mbarrier_arrive_and_expect_tx(arg0, arg1, peer_cta_rank_in_cluster=arg1)"
    ),
    PEER + f"nvvm.mbarrier.expect_tx %0, %arg1 {CLUSTER}, i32": (
        "cute.arch.mbarrier_expect_tx(arg0, arg1, peer_cta_rank_in_cluster=arg1)"
    ),
    "%0 = nvvm.mbarrier.arrive %arg0 : !llvm.ptr<3> -> i64": "cute.arch.mbarrier_arrive(arg0)",
    elected("nvvm.tcgen05.commit %arg0, multicast_mask = %arg2 {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>, i16"): (
        "cute.nvgpu.tcgen05.commit(arg0, arg2, cta_group=cute.nvgpu.tcgen05.CtaGroup.TWO)"
    ),
    elected("nvvm.tcgen05.commit.arrive %arg0 {group = #nvvm.tcgen05_group<cta_2>} : !llvm.ptr<3>"): (
        "cute.nvgpu.tcgen05.commit(arg0, cta_group=cute.nvgpu.tcgen05.CtaGroup.TWO)"
    ),
    "nvvm.barrier.arrive id = %arg1 number_of_threads = %arg1": (
        "cute.arch.barrier_arrive(barrier_id=arg1, number_of_threads=arg1)"
    ),
    "nvvm.cp.async.mbarrier.arrive %arg0 {noinc = true} : !llvm.ptr<3>": (
        "cute.arch.cp_async_mbarrier_arrive_noinc(arg0)"
    ),
    "nvvm.griddepcontrol wait": "cute.arch.griddepcontrol_wait()",
    "%0 = nvvm.vote.sync ballot %arg1, %arg4 -> i32": "cute.Int32(cute.arch.vote_ballot_sync(arg4, mask=arg1))",
    "%0 = nvvm.vote.sync any %arg1, %arg4 -> i1": "cute.arch.vote_any_sync(arg4, mask=arg1)",
    "%0 = nvvm.redux.sync add %arg1, %arg1 : i32 -> i32": 'cute.Int32(cute.arch.warp_redux_sync(arg1, "add", arg1))',
    "%0 = nvvm.fmin %arg3, %arg3": None,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_read_printed_and_lifted(form):
    module = ir.parse(texts.kernel(f"      {form}", PARAMETERS))
    assert form.replace("\n", "") in str(module).replace("\n", "")
    source = ir.to_python(module)
    assert FORMS[form] is None or FORMS[form] in source


def test_the_smaller_of_two_floats():
    out = texts.FLOATS
    body = f"""      %c = cute.make_coord() : () -> !cute.coord<"0">
      %0 = nvvm.fmin %arg1, %arg2
      cute.memref.store(%arg0, %c, %0) : ({out}, !cute.coord<"0">, f32) -> ()"""
    source = ir.to_python(ir.parse(texts.kernel(body, f"%arg0: {out}, %arg1: f32, %arg2: f32")))
    assert "cute.arch.fmin(arg1, arg2)" in source


def test_an_arrival_that_counts_twice_is_refused():
    module = ir.parse(texts.kernel("      nvvm.cp.async.mbarrier.arrive %arg0 : !llvm.ptr<3>", PARAMETERS))
    with pytest.raises(cute.CuteError, match="noinc"):
        ir.to_python(module)


def test_strides_of_extents_of_one_are_told_in_two_ways():
    line = '%div = cute.tiled_divide(%arg0, %tile) : !cute.layout<"(2,1,1):(1,0,0)">, !cute.tile<"[2:1]">'
    body = f"""      %tile = cute.make_tile() : () -> !cute.tile<"[2:1]">
      {line}
      %0 = cute.get_shape(%div) : (!cute.layout<"((2),1,1,1):((1),0,0,0)">) -> !cute.shape<"((2),1,1,1)">"""
    ir.parse(texts.kernel(body, '%arg0: !cute.layout<"(2,1,1):(1,0,0)">'))


LOCATED = """#loc = loc("/a/loc(1).py":234:0)
#loc1 = loc("<module>"(#loc))
module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @kernel(%arg0: i32 loc("x"(#loc1))) attributes {cute.kernel} {
      cf.assert %true, "loc(of this)" loc(#loc1)
      nvvm.bar.warp.sync %arg0 : i32 loc(callsite(#loc1 at #loc))
      return loc(#loc1)
    } loc(#loc1)
  } loc(#loc)
} loc(#loc)
"""


def test_where_operations_came_from_is_left_out():
    module = ir.parse(LOCATED.replace("cf.assert %true", "%true = arith.constant true\n      cf.assert %true"))
    assert "loc(of this)" in str(module) and "#loc" not in str(module)
    assert "cute.arch.sync_warp(arg0)" in ir.to_python(module)
    with pytest.raises(cute.CuteError, match=r":6:17: "):
        ir.parse(LOCATED)


@pytest.mark.parametrize("times", [1, 2])
def test_a_cluster_meets_where_a_barrier_begins_first(times):
    begin = "      nvvm.mbarrier.init %arg0, %arg1 : !llvm.ptr<3>, i32\n      nvvm.fence.mbarrier.init\n"
    arrive = f"      {PEER}nvvm.mbarrier.arrive %0, %arg1 {CLUSTER}"
    source = ir.to_python(ir.parse(texts.kernel(times * begin + arrive, PARAMETERS)))
    assert source.count("cute.arch.cluster_wait()") == 1
    assert source.index("cluster_wait") < source.rindex("mbarrier_init_fence()") or times == 1
