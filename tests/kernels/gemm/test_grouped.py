# SPDX-License-Identifier: Apache-2.0
"""Grouped GEMMs, plain and with scales of blocks: right whatever rows a group has, and nobody's rows but its own."""

import gc
import weakref

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import kernels
from numba_cute.kernels.carried import name_of
from numba_cute.kernels.gemm import blockscaled, grouped, grouped_entry, grouped_outer

from ...conftest import _need_gpu
from . import problems

try:
    import torch
except ImportError:
    torch = None

BF16, F16, E4M3, E5M2 = cute.BFloat16, cute.Float16, cute.Float8E4M3FN, cute.Float8E5M2
ALONE, NARROW, ROWS, COLUMNS = (
    grouped.Cut(*x) for x in ((256, (1, 1), True), (128, (1, 1), True), (256, (2, 1)), (256, (1, 2)))
)
SLOW = pytest.mark.slow


@pytest.fixture(autouse=True)
def _on_gpus_alone(request):
    if request.node.get_closest_marker("gpu"):
        _need_gpu("sm_90a")
        pytest.importorskip("torch")


def planned(a, b, ends, scales, c, cut):
    return grouped.plan(a, b, ends, c, *scales, cut=cut)


@pytest.mark.parametrize(
    ("rows", "n", "k", "dtype", "cut", "how"),
    [
        ((5, 0, 70), 24, 24, BF16, NARROW, {}),
        pytest.param((3, 0, 270, 130), 264, 72, BF16, ROWS, {}, marks=SLOW),
        pytest.param((70, 130), 136, 72, F16, ROWS, {"b_turned": True}, marks=SLOW),
        pytest.param((3, 0, 70, 1), 264, 144, E5M2, COLUMNS, {}, marks=SLOW),
        pytest.param((1,) * 70, 24, 72, BF16, NARROW, {}, marks=SLOW),  # more groups than lanes
        pytest.param((0, 0), 24, 72, BF16, NARROW, {}, marks=SLOW),
        pytest.param((3, 0, 70, 1), 264, 144, E4M3, ALONE, {"scaled": True}, marks=SLOW),
        pytest.param((130, 3), 24, 400, E4M3, COLUMNS, {"scaled": True}, marks=SLOW),
        pytest.param((130, 3), 136, 272, E4M3, NARROW, {"scaled": True}, marks=SLOW),
    ],
)
def test_each_group_is_multiplied_by_its_own_matrix(rows, n, k, dtype, cut, how):
    a, b, ends, scales, c, want = problems.grouped(rows, n, k, dtype, **how)
    planned(a, b, ends, scales, c, cut).simulate()
    scale = 2 * np.sqrt(k) * np.sqrt(k)
    assert not len(problems.wrong(c, want, scale, 1e-5 if dtype.width == 16 else 1e-3))


@SLOW
def test_small_tiles_are_drawn_and_the_counter_is_zero_again(monkeypatch):
    monkeypatch.setattr(grouped, "most_clusters", lambda array, ctas: 3)
    a, b, ends, scales, c, want = problems.grouped((5, 0, 130, 70), 136, 24, BF16)
    work = planned(a, b, ends, scales, c, NARROW)
    assert work.grid == (3, 1, 1)
    for _ in range(2):
        c[:] = np.nan
        work.simulate()
        assert work.given()[-3].tolist() == [0]
        assert not len(problems.wrong(c, want, 2 * 24))


@SLOW
@pytest.mark.parametrize(("cut", "scaled"), [(ALONE, False), (ROWS, False), (ALONE, True), (ROWS, True)])
def test_sums_stay_in_registers(cut, scaled):
    a, b, ends, scales, c, _ = problems.grouped((300,), 512, 512, E4M3, scaled=scaled)
    found = planned(a, b, ends, scales, c, cut).compile()
    assert found.resources.local == 0 and not found.notes


def test_one_group_of_all_rows_needs_no_ends():
    a, b, _, scales, c, _ = problems.grouped((40,), 24, 144, E4M3, scaled=True, beyond=0)
    work = grouped.plan(a, b, None, c, *scales)
    assert work.ready.tolist() == [40] and any(x is work.ready for x in work.given())


def test_a_launch_holds_no_tensor_that_it_was_planned_for():
    a, b, ends, _, c, _ = problems.grouped((40,), 24, 144, BF16, beyond=0)
    watched = [weakref.ref(x) for x in (a, b, ends, c)]
    launch = grouped.plan(a, b, ends, c).launcher()
    del a, b, ends, c
    gc.collect()
    assert callable(launch) and not any(x() is not None for x in watched)


@pytest.mark.parametrize("cut", [grouped.Cut(192), grouped.Cut(256, (2, 1), True), grouped.Cut(256, (3, 1))])
def test_a_cut_that_does_not_fit_is_refused_in_words(cut):
    a, b, ends, _, c, _ = problems.grouped((40,), 24, 144, BF16, beyond=0)
    with pytest.raises(cute.CuteError, match="grouped_gemm: Cut.*tile_n is 128 or 256, a cluster has 1, 2 or 4 CTAs"):
        grouped.plan(a, b, ends, c, cut=cut)


def test_tall_groups_share_their_matrix_and_others_are_alone():
    assert grouped.cut_of(8 * 4096, 8, 4096, lambda ctas: 132 // ctas) == ROWS
    assert grouped.cut_of(8 * 1024, 8, 4096, lambda ctas: 132 // ctas) == ALONE
    assert grouped.cut_of(8 * 1024, 8, 128, lambda ctas: 132 // ctas) == NARROW


def zeros(kind, *shape):
    return np.zeros(shape, np.dtype(kind))


@pytest.mark.parametrize(
    ("a", "b", "ends", "says"),
    [
        (("bfloat16", 8, 24), ("float16", 2, 16, 24), ("int32", 2), "its elements must be bfloat16"),
        (("bfloat16", 8, 24), ("bfloat16", 2, 16, 32), ("int32", 2), r"shape must be \(any, any, 24\)"),
        (("bfloat16", 8, 0), ("bfloat16", 2, 16, 0), ("int32", 2), "K must not be 0"),
        (("bfloat16", 8, 24), ("bfloat16", 2, 16, 24), ("int64", 2), "its elements must be int32"),
        (("bfloat16", 8, 24), ("bfloat16", 2, 16, 24), ("int32", 3), r"its shape must be \(2,\)"),
        (("float32", 8, 24), ("float32", 2, 16, 24), ("int32", 2), "elements must be bfloat16, float16"),
    ],
)
def test_what_the_kernel_cannot_take_is_refused_in_words(a, b, ends, says):
    with pytest.raises(cute.CuteError, match=says):
        grouped.check_groups("grouped_gemm", *(zeros(*x) for x in (a, b, ends)), grouped.KINDS)


def test_matrices_are_contiguous_along_one_mode():
    ends = zeros("int32", 2)
    turned = zeros("float8_e4m3fn", 2, 32, 16).transpose(0, 2, 1)
    with pytest.raises(cute.CuteError, match="it must be contiguous along K"):
        grouped.check_groups("grouped_gemm", zeros("float8_e4m3fn", 8, 32), turned, ends, grouped.KINDS)
    neither = zeros("bfloat16", 2, 64, 64)[:, ::2, ::2]
    with pytest.raises(cute.CuteError, match="contiguous along N or K"):
        grouped.check_groups("grouped_gemm", zeros("bfloat16", 8, 32), neither, ends, grouped.KINDS)


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        (((8, 20), (2, 16, 20), (8, 16)), "a is .* a stride here is 40 bytes: pad"),
        (((8, 24), (2, 12, 24), (8, 12)), "out is .* a stride here is 24 bytes: pad"),
    ],
)
def test_rows_that_tma_cannot_take_are_refused_in_words(shapes, says):
    a, b, c = (zeros("bfloat16", *shape) for shape in shapes)
    with pytest.raises(cute.CuteError, match=says):
        grouped.plan(a, b, zeros("int32", 2), c)
    whole = zeros("int16", 129 * 8)
    shifted = whole[1 - whole.ctypes.data % 16 // 2 :][:128].view(a.dtype).reshape(8, 16)
    with pytest.raises(cute.CuteError, match="out begins at no multiple of 16 bytes"):
        grouped.plan(zeros("bfloat16", 8, 24), zeros("bfloat16", 2, 16, 24), zeros("int32", 2), shifted)


def test_scales_must_be_those_of_the_blocks():
    a, b = zeros("float8_e4m3fn", 16, 144), zeros("float8_e4m3fn", 1, 136, 144)
    with pytest.raises(cute.CuteError, match=r"scales_a .* its shape must be \(16, 2\)"):
        blockscaled.check_scales("blockscaled_gemm", a, b, zeros("float32", 16, 1), zeros("float32", 1, 2, 2))
    with pytest.raises(cute.CuteError, match=r"scales_b .* its shape must be \(1, 2, 2\)"):
        blockscaled.check_scales("blockscaled_gemm", a, b, zeros("float32", 16, 2), zeros("float32", 1, 1, 2))


# ---------------------------------------------------------------- on a GPU


def on_gpu(array):
    """An array of NumPy's as torch's on the GPU, with its strides."""
    if array.ndim == 3 and array.strides[1] < array.strides[2]:
        return on_gpu(array.transpose(0, 2, 1)).transpose(1, 2)
    bits = torch.from_numpy(array.view(f"i{array.itemsize}")).cuda()
    return bits.view(getattr(torch, array.dtype.name))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("dtype", "how", "cut"),
    [
        *((BF16, {}, cut) for cut in (None, NARROW, ROWS, COLUMNS)),
        (BF16, {"b_turned": True}, None),
        (F16, {}, None),
        (E4M3, {}, None),
        (E4M3, {"scaled": True}, None),
        (E4M3, {"scaled": True}, ROWS),
    ],
    ids=str,
)
def test_ragged_groups_are_right_on_a_gpu(dtype, how, cut):
    rows = [int(x) for x in np.random.default_rng(0).integers(0, 300, 40)]
    rows[3] = rows[17] = rows[39] = 0
    a, b, ends, scales, c, want = problems.grouped(rows, 392, 528, dtype, **how)
    given = [on_gpu(x) for x in (a, b, ends, *scales)]
    out = torch.full(c.shape, -7.0, device="cuda", dtype=getattr(torch, c.dtype.name))
    if cut is not None:
        planned(*given[:3], given[3:], out, cut).launcher()(*given, out)
    elif scales:
        blockscaled.blockscaled_gemm(given[0], given[1], *given[3:], given[2], out=out)
    else:
        assert grouped_entry.grouped_gemm(*given, out=out) is out
    got = out.double().cpu().numpy()
    assert (got[sum(rows) :] == -7).all(), "rows of no group were written"
    got[sum(rows) :] = np.nan
    bound = np.abs(want) * (2.0**-8 if c.dtype.name == "bfloat16" else 2.0**-11)
    bound += (1e-5 if dtype.width == 16 else 1e-3) * 528 * (1.2 if scales else 1)
    assert (np.abs(got - want) <= bound)[: sum(rows)].all()


@pytest.mark.gpu
def test_a_second_call_elsewhere_in_memory_goes_there():
    ends = torch.tensor([5, 60], dtype=torch.int32, device="cuda")
    for _ in range(3):
        a = torch.randn(64, 72, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(2, 24, 72, device="cuda", dtype=torch.bfloat16)
        got = grouped_entry.grouped_gemm(a, b, ends)
        want = torch.cat([a[:5].double() @ b[0].double().T, a[5:60].double() @ b[1].double().T])
        torch.testing.assert_close(got[:60].double(), want, rtol=2.0**-7, atol=1e-3)
        del got


@pytest.mark.gpu
def test_a_result_may_be_the_first_in_its_memory():
    """The map for its rows begins before it, where a GPU has no memory."""
    a, b = (torch.randn(*shape, 64, device="cuda", dtype=torch.bfloat16) for shape in ((8200,), (1, 4096)))
    ends = torch.tensor([8193], dtype=torch.int32, device="cuda")
    out = torch.full((8200, 4096), -7.0, device="cuda", dtype=torch.bfloat16)  # 64 MiB: an allocation of its own
    grouped_entry.grouped_gemm(a, b, ends, out=out)
    torch.testing.assert_close(out[:8193].float(), (a[:8193] @ b[0].T).float(), rtol=2.0**-6, atol=1e-2)
    assert (out[8193:] == -7).all()


@pytest.mark.gpu
def test_it_is_an_operator_of_torch():
    a = torch.randn(64, 72, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(2, 24, 72, device="cuda", dtype=torch.bfloat16)
    ends = torch.tensor([5, 64], dtype=torch.int32, device="cuda")
    torch.library.opcheck(grouped_entry.GROUPED.made, (a, b, ends, [], None, None, name_of(())))


@SLOW
@pytest.mark.parametrize(("rows", "m", "n"), [((5, 0, 70), 24, 40), ((3, 130, 0, 64, 1), 136, 264)])
def test_products_over_the_rows_of_groups_are_right_and_see_no_others(rows, m, n):
    x, _, ends, *_ = problems.grouped(rows, n, m, BF16)
    y, *_ = problems.grouped(rows, m, n, BF16)
    x[ends[-1] :], y[ends[-1] :] = np.inf, np.nan
    c = np.full((len(rows), m, n), np.nan, x.dtype)
    work = grouped_outer.plan(x, y, ends, c)
    work.simulate(checks=m < 128)
    for group, end in enumerate(ends):
        first = ends[group - 1] if group else 0
        want = x[first:end].astype(np.float64).T @ y[first:end].astype(np.float64)
        assert not len(problems.wrong(c[group], want, 2 * (end - first)))
    made = work.compile()
    assert made.resources.local == 0 and not made.notes


@SLOW
@pytest.mark.parametrize("how", ["plain", "turned", "odd", "traced"])
def test_a_grouped_product_has_gradients(how):
    pytest.importorskip("torch")
    torch.manual_seed(0)
    ends, normal = torch.tensor([5, 5, 30], dtype=torch.int32), lambda *s: torch.randn(s).to(torch.bfloat16)
    a, b = (
        (normal(33, 24)[:, :19], normal(3, 16, 24)[..., :19]) if how == "odd" else (normal(33, 24), normal(3, 16, 24))
    )
    b = b.mT.contiguous().mT if how == "turned" else b
    mine, exact = [t.detach().requires_grad_() for t in (a, b)], [t.detach().double().requires_grad_() for t in (a, b)]
    call = lambda a, b: kernels.grouped_gemm(a, b, ends)[:30]  # noqa: E731
    with cute.simulation(checks=False, sms=4):
        traced = torch.compile(call, fullgraph=True, backend="aot_eager") if how == "traced" else call
        y, dy = traced(*mine), normal(30, 16)
        found = torch.autograd.grad(y, mine, dy)
    groups = (slice(0, 5), slice(5, 5), slice(5, 30))
    right = torch.cat([exact[0][rows] @ exact[1][g].T for g, rows in enumerate(groups)])
    for got, want in zip((y, *found), (right, *torch.autograd.grad(right, exact, dy.double())), strict=True):
        assert got.shape == want.shape and (got.double() - want).norm() <= 0.004 * want.norm()


def test_gradients_of_eight_bits_are_refused():
    pytest.importorskip("torch")
    a = torch.zeros(8, 16).to(torch.float8_e4m3fn).requires_grad_()
    with cute.simulation(), pytest.raises(cute.CuteError, match="grouped_gemm: a gradient is asked for.*a is float8"):
        kernels.grouped_gemm(a, a.detach()[None, :, :], torch.tensor([8], dtype=torch.int32))
