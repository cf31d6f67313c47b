# SPDX-License-Identifier: Apache-2.0
"""The examples' GEMMs in the experimental API: right on ragged shapes, and with the resources of those with atoms."""

import sys
from pathlib import Path

import pytest

import numba_cute as cute

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import blackwell_blockscaled_gemm as blockscaled  # noqa: E402
import experimental_blackwell_gemm as blackwell  # noqa: E402
import experimental_blockscaled_gemm  # noqa: E402
import experimental_gemm  # noqa: E402

import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402

SLOW = pytest.mark.slow
BF16, E4M3 = cute.BFloat16, cute.Float8E4M3FN


@pytest.mark.parametrize(
    ("shape", "dtype", "majors"),
    [
        ((8, 8, 8), BF16, "kkn"),
        pytest.param((136, 264, 136), BF16, "kkn", marks=SLOW),
        pytest.param((104, 40, 72), cute.Float16, "mnm", marks=SLOW),
        pytest.param((64, 256, 128), E4M3, "kkn", marks=SLOW),
    ],
    ids=str,
)
def test_hopper(shape, dtype, majors):
    arrays = gemm_host.problem(*shape, dtype, majors=majors)
    experimental_gemm.simulate(*arrays, dtype)
    gemm_host.check(*arrays)


@pytest.mark.gpu
@pytest.mark.parametrize("majors", ["kkn", "mnm"])
@pytest.mark.parametrize("shape", [(1000, 1048, 1016), (130, 520, 72)], ids=str)
def test_hopper_on_a_gpu(shape, majors):
    from numba import cuda

    pytest.importorskip("torch")
    if not cuda.is_available() or tuple(cuda.get_current_device().compute_capability) != (9, 0):
        pytest.skip("needs a Hopper GPU")
    shape = tuple(-(-n // 8) * 8 for n in shape)
    a, b, c = gemm_host.problem(*shape, BF16, majors=majors)
    placed = [gemm_host.to_device(x) for x in (a, b, c)]
    launch = experimental_gemm.launcher(*placed, BF16)
    for _ in range(3):
        launch()
    cuda.synchronize()
    gemm_host.check(a, b, gemm_host.to_host(placed[2], c))


def test_hopper_takes_what_the_one_with_atoms_takes():
    arrays = gemm_host.problem(256, 256, 64, BF16)
    kernel, args, _ = experimental_gemm.arguments(*arrays, BF16, 66)
    own = cute.compile(kernel, args, arch="sm_90a")
    other = cute.compile(hopper_gemm.gemm, hopper_gemm.arguments(*arrays, BF16, 66)[0], arch="sm_90a")
    assert own.resources.registers == other.resources.registers == 168
    assert own.resources.spill_stores == own.resources.local == 0 and not own.notes
    assert own.ptx.count("wgmma.mma_async") == other.ptx.count("wgmma.mma_async")


PLANS = [
    ((128, 128, 64), BF16, "kkn", blackwell.Plan()),
    pytest.param((104, 136, 72), BF16, "mnm", blackwell.Plan(), marks=SLOW),
    pytest.param((256, 128, 64), BF16, "kkn", blackwell.Plan(2, (2, 1)), marks=SLOW),
    pytest.param((136, 136, 128), E4M3, "kkn", blackwell.Plan(1, (2, 2)), marks=SLOW),
    pytest.param((264, 128, 64), cute.Float16, "mkn", blackwell.Plan(2, (4, 2)), marks=SLOW),
]


@pytest.mark.parametrize(("shape", "dtype", "majors", "plan"), PLANS, ids=str)
def test_blackwell(shape, dtype, majors, plan):
    arrays = gemm_host.problem(*shape, dtype, majors=majors)
    blackwell.simulate(*arrays, dtype, plan)
    gemm_host.check(*arrays)


@pytest.mark.parametrize(
    "plan",
    [blackwell.Plan(), pytest.param(blackwell.Plan(2, (2, 1)), marks=SLOW), blackwell.Plan(2, (2, 2))],
    ids=str,
)
def test_blackwell_is_assembled(plan):
    kernel, args, _ = blackwell.arguments(*gemm_host.problem(256, 128, 64, BF16), BF16, plan)
    compiled = cute.compile(kernel, args, arch="sm_100a")
    assert compiled.resources.spill_stores == compiled.resources.local == 0
    assert "tcgen05.dealloc." in compiled.ptx
    assert f".cta_group::{plan.ctas}" in compiled.ptx
    assert ("multicast::cluster" in compiled.ptx) == (plan.cluster[0] * plan.cluster[1] > plan.ctas or plan.ctas == 2)


BLOCK_SCALED = [
    ("mxf8", 1, (128, 128, 128)),
    ("mxf8", 2, (256, 128, 128)),
    *(
        pytest.param(*case, marks=SLOW)
        for case in (
            ("mxf4", 1, (128, 136, 512)),
            ("nvf4", 1, (128, 128, 256)),
            ("mxf8", 2, (264, 136, 768)),  # more tiles along K than stages; parts of tiles along M and N
            ("mxf4", 2, (104, 104, 1536)),  # a block of a pair with nothing to store
            ("nvf4", 2, (264, 136, 512)),
        )
    ),
]


@pytest.mark.parametrize(("name", "ctas", "shape"), BLOCK_SCALED, ids=str)
def test_block_scaled(name, ctas, shape):
    kind = blockscaled.KINDS[name]
    p, a, b = blockscaled.problem(*shape, kind)
    experimental_blockscaled_gemm.simulate(p, kind, ctas)
    gemm_host.check(a, b, p.c)


@pytest.mark.parametrize(
    ("name", "ctas", "arch"),
    [
        ("mxf8", 2, "sm_100a"),
        *(
            pytest.param(name, ctas, arch, marks=SLOW)
            for name in blockscaled.KINDS
            for ctas in (1, 2)
            for arch in ("sm_100a", "sm_103a")
            if (name, ctas, arch) != ("mxf8", 2, "sm_100a")
        ),
    ],
)
def test_block_scaled_is_assembled(name, ctas, arch):
    kind = blockscaled.KINDS[name]
    problem = blockscaled.problem(128, 128, 256, kind)[0]
    compiled = cute.compile(*experimental_blockscaled_gemm.arguments(problem, kind, ctas)[:2], arch=arch)
    assert "block_scale" in compiled.ptx and not compiled.notes
    words = [word for word in compiled.ptx.split() if word.startswith(("tcgen05.mma", "tcgen05.cp", "tcgen05.dealloc"))]
    for what in ("tcgen05.mma.", "tcgen05.cp.", "tcgen05.dealloc."):
        assert any(word.startswith(what) for word in words)
    assert all(f".cta_group::{ctas}" in word for word in words)
    assert compiled.ptx.count("tcgen05.dealloc.") % 3 == 0
    assert compiled.resources.spill_stores == compiled.resources.local == 0
