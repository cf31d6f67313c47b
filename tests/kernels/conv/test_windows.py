# SPDX-License-Identifier: Apache-2.0
"""Gradients of filters whose taps share windows of pixels, parts of the pixels, and their sums: against float64."""

import math

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels import entry
from numba_cute.kernels.conv import plan, sums as of_sums, windows
from numba_cute.kernels.conv.operands import Columns
from numba_cute.kernels.conv.windows import Window
from numba_cute.kernels.gemm import Plan
from numba_cute.kernels.gemm.launches import simulate
from numba_cute.kernels.gemm.operands import view

from ...conftest import _need_gpu
from .test_conv import BF16, SLOW, assert_close, walk
from .test_gradients import UNIT, of_filters, problem

CASES = [
    ((5, 6), 64, 64, walk((3, 3), 1, 1), Window(3, 3, 1)),
    ((9, 8), 72, 72, walk((3, 3), 1, 1), Window(3, 3, 3)),  # a part that is smaller; more than a tile of channels
    ((9, 8), 64, 24, walk((3, 3), 1, 2, (2, 2)), Window(1, 3, 2)),
    ((9, 8), 64, 64, walk((5, 4), 1, (2, 1), (1, 2)), Window(3, 2, 1)),  # rows and taps that are none
    ((9, 8), 24, 64, walk((3, 3), (2, 1), 1), Window(2, 3, 1)),
    ((40,), 64, 64, walk((3,), 1, 1), Window(1, 3, 1)),
    ((4, 5, 6), 64, 64, walk((3, 2, 3), (2, 1, 1), (1, 0, 1), (1, 2, 1)), Window(3, 3, 1)),
]


EVERY = [CASES[0], *(pytest.param(*case, marks=SLOW) for case in CASES[1:])]


@pytest.mark.parametrize(("extents", "channels", "outs", "how", "cut"), EVERY, ids=str)
def test_taps_of_a_row_share_a_window(extents, channels, outs, how, cut):
    x, _, dy = problem(2, extents, channels, outs, how)
    shape = cut.parts, -(-outs // UNIT) * UNIT, math.prod(how.taps), -(-channels // UNIT) * UNIT
    sums = np.full(shape, np.nan, np.float32)
    args = windows.arguments(*(view(t.view(np.int16), 16) for t in (x, dy)), view(sums, 16), how, cut, BF16)
    grid = windows.grid_of(how, outs, channels, cut)
    cute.simulate(windows.kernel_of(cut.rows))[grid, windows.threads_of(cut.rows)](*args)
    assert_close(sums.sum(0)[:outs].reshape(outs, *how.taps, -1)[..., :channels], of_filters(x, dy, how))


@pytest.mark.parametrize(
    ("outs", "how", "cut", "clusters", "apart"),
    [
        (40, walk((3, 2), 1, 1), Plan(64, 1, splits=2, tail=True), 4, 0),
        (40, walk((3, 2), 1, 1), Plan(64, 1, splits=2), 4, 3),
        pytest.param(264, walk((3, 2), 1, 1), Plan(64, 2, splits=3), 4, 3, marks=SLOW),
        pytest.param(40, walk((3, 3), 1, 1), Plan(64, 1, splits=3), 4, 0, marks=SLOW),
        pytest.param(136, walk((3, 2), 1, 1), Plan(64, 1, splits=3, tail=True), 5, 0, marks=SLOW),
    ],
    ids=str,
)
def test_parts_are_matrices_of_the_result(outs, how, cut, clusters, apart, channels=64):
    """Of tiles of whole rounds the first alone."""
    x, _, dy = problem(1, (9, 15), channels, outs, how)
    b = Columns(x, how, UNIT, None)
    columns, pixels = b.shape
    sums = np.full((cut.splits, outs, columns), np.nan, np.float32)
    dy_rows = dy.reshape(pixels, outs).T
    simulate(dy_rows, b, sums, BF16, cut, c_dtype=cute.Float32, clusters=clusters, apart=apart, checks=False)
    edge = plan.edge_of(cut, outs, columns, clusters)
    assert (edge > 0) == cut.tail and edge < columns
    assert np.isnan(sums[1:, :, :edge]).all() and not np.isnan(sums[:, :, edge:]).any()
    assert_close(np.nansum(sums, 0).reshape(outs, *how.taps, -1), of_filters(x, dy, how))


@pytest.mark.parametrize(("parts", "edge", "order"), [(3, 0, (0, 1)), (20, 64, (1, 0))], ids=str)
def test_sums_are_added_where_they_are(parts, edge, order):
    """Vectors, or elements of a matrix that lies otherwise; of the first columns the first part alone."""
    torch = pytest.importorskip("torch")
    sums = torch.randn(parts, 6, 192)
    sums[1:, :, :edge] = math.nan
    made = torch.empty([(5, 184)[i] for i in order]).permute(order)
    with cute.simulation():
        of_sums.ADD_UP((sums, made), ((192, 1), edge))
    assert torch.allclose(made.double(), torch.nansum(sums.double(), 0)[:5, :184], atol=1e-5)


def test_a_model_chooses_windows_where_tiles_would_be_empty():
    def chosen(images, channels, extent, outs, how):
        x = np.empty((1, 1, 1, 1), np.int8).reshape(1, 1, 1, 1)
        x = np.lib.stride_tricks.as_strided(x, (images, channels, extent, extent), (0, 0, 0, 0))
        pixels = images * math.prod(how.out((extent, extent)))
        return plan.chosen_parts(entry.WARPGROUPS, x, outs, how, pixels)

    with cute.simulation():
        assert isinstance(chosen(256, 64, 56, 64, walk((3, 3), 1, 1)), Window)
        assert isinstance(chosen(16, 320, 64, 320, walk((3, 3), 1, 1)), Window)
        many = chosen(8, 1024, 64, 768, walk((3, 3), 2, 1)).cut
        assert many.tail and many.splits == 5, "288 tiles: 264 alone, 24 in 5 parts each"
        assert not isinstance(chosen(256, 64, 56, 64, walk((3, 3), 2, 1)), Window), "steps along W"
        assert not isinstance(chosen(256, 64, 56, 64, walk((1, 1))), Window), "one tap has nobody to share with"


@pytest.mark.slow
def test_what_a_gradient_of_filters_needs_is_planned_once(monkeypatch):
    torch = pytest.importorskip("torch")
    from numba_cute.kernels.conv import gradients

    monkeypatch.setattr(gradients, "_known", {})
    asked = []
    planned = gradients._planned
    monkeypatch.setattr(gradients, "_planned", lambda *given: asked.append(given) or planned(*given))
    made = torch.empty(8, 8, 1, 1).bfloat16()
    with cute.simulation(arch="sm_90a"):
        for seed in (0, 1):
            torch.manual_seed(seed)
            x, dy = (torch.randn(1, 8, 3, 3).bfloat16().to(memory_format=torch.channels_last) for _ in "xy")
            gradients.gradient_of_filters("conv2d", x, dy, made, walk((1, 1)))
            want = torch.nn.grad.conv2d_weight(x.double(), made.shape, dy.double())
            assert (made.double() - want).norm() <= 0.004 * want.norm()
    assert len(asked) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("cut", [None, Window(3, 3, 5), Window(1, 3, 7), Window(2, 2, 4)], ids=str)
@pytest.mark.parametrize("outs", [64, 200])
def test_windows_are_right_on_a_gpu(outs, cut):
    _need_gpu("sm_90a")
    torch = pytest.importorskip("torch")
    from numba_cute.kernels.conv.gradients import gradient_of_filters

    how = walk((3, 3), 1, 1)
    x = torch.randn(20, 136, 23, 31, device="cuda").bfloat16().contiguous(memory_format=torch.channels_last)
    dy = torch.randn(20, outs, 23, 31, device="cuda").bfloat16().contiguous(memory_format=torch.channels_last)
    dw = torch.empty(outs, 136, 3, 3, device="cuda", dtype=torch.bfloat16)
    gradient_of_filters("conv2d", x, dy, dw, how, cut)
    want = torch.nn.grad.conv2d_weight(x.double(), dw.shape, dy.double(), padding=1)
    assert (dw.double() - want).norm() <= 0.004 * want.norm()
