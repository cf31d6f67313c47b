# SPDX-License-Identifier: Apache-2.0
"""`numba_cute.kernels.matmul`: right against float64 on ragged shapes, types, majors, cuts and epilogues, on a GPU."""

import math

import pytest

from numba_cute import CuteError

from numba_cute.kernels.gemm import launches  # isort: skip
from numba_cute.kernels.gemm import Epilogue, amax, bias, columns, gelu, matmul, residual, scale, swiglu, total
from numba_cute.kernels.gemm.plan import Plan

pytestmark = pytest.mark.gpu
# Of |row of A| |column of B|: what the tensor cores' sums and the operands' rounding may do.
OF_SCALE = {"float32": 4e-3, "float8_e4m3fn": 1e-3, "int8": 0.0}


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch


def operands(torch, m, n, k, dtype="bfloat16", batch=(), majors="kk"):
    """A (M, K) and B (K, N), contiguous along the modes that are named."""
    kind = getattr(torch, dtype)

    def one(rows, columns, turned):
        shape = (*batch, columns, rows) if turned else (*batch, rows, columns)
        if kind == torch.int8:
            x = torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8)
        else:
            x = torch.randn(shape, device="cuda").to(kind)
        return x.mT if turned else x

    return one(m, k, majors[0] == "m"), one(n, k, majors[1] == "n").mT


def assert_close(torch, got, want, a, b):
    """Compare with float64: an element may be off by its rounding, and by what the sums may be."""
    unit = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}.get(got.dtype, 0.0)
    x, y = a.double(), b.double()
    room = x.square().sum(-1, keepdim=True).sqrt() * y.square().sum(-2, keepdim=True).sqrt()
    of_scale = OF_SCALE.get(str(a.dtype).removeprefix("torch."), 1e-5)
    if got.shape[-1] != room.shape[-1]:
        room = room[..., : got.shape[-1]] + room[..., got.shape[-1] :]
    off = (got.double() - want).abs() - unit * want.abs() - 2 * of_scale * room
    assert not off.isnan().any() and off.max() <= 1e-30


@pytest.mark.parametrize(
    "shape, majors",
    [
        ((1000, 1048, 1016), "kk"),
        ((1000, 1048, 1016), "mn"),
        ((8, 8, 8), "kk"),
        ((64, 4096, 1024), "kk"),
        ((3, 136, 520), "kk"),
        ((3, 136, 520), "mn"),
        ((127, 1001, 333), "kk"),
        ((333, 127, 1001), "mn"),
        ((1, 1, 1), "kk"),
        ((5, 3, 0), "kk"),
    ],
)
def test_matmul_is_right_on_ragged_shapes(torch, shape, majors):
    a, b = operands(torch, *shape, majors=majors)
    assert_close(torch, matmul(a, b), a.double() @ b.double(), a, b)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float8_e4m3fn", "int8"])
def test_matmul_takes_every_type(torch, dtype):
    a, b = operands(torch, 200, 264, 528, dtype)
    assert_close(torch, matmul(a, b), a.double() @ b.double(), a, b)


@pytest.mark.parametrize(
    "cut",
    [
        Plan(192),
        Plan(128, 1),
        Plan(64, 1, 2, turned=True),
        Plan(128, 2, 2),
        Plan(64, 1, 8, turned=True),
        Plan(128, 1, splits=4),
        Plan(64, 1, 2, 2, True),
        Plan(64, 1, splits=4, tail=True),
        Plan(64, 2, splits=2, tail=True),
        Plan(256, stages=4, slots=2),
    ],
    ids=lambda c: f"n{c.tile_n}s{c.sharers}k{c.parts}x{c.splits}" + "turned" * c.turned + "tail" * c.tail,
)
def test_matmul_is_right_however_it_is_cut(torch, cut):
    m = 1112 if cut.tail else 456  # more tiles than there are SMs
    a, b = operands(torch, m, 1032, 1208)
    v, r = torch.randn(1032, device="cuda"), torch.randn(m, 1032, device="cuda", dtype=torch.bfloat16)
    epilogue = bias(v) | residual(r)
    want = a.double() @ b.double() + v.double() + r.double()
    for _ in range(3):  # counters of splits are ready for the next launch
        assert_close(torch, matmul(a, b, epilogue=epilogue, cut=cut), want, a, b)


@pytest.mark.parametrize("cut", [None, Plan(64, 1, splits=2)], ids=str)
def test_other_addresses_run_no_python_of_the_plan(torch, monkeypatch, cut):
    v, of_rows = torch.randn(264, device="cuda"), torch.zeros(136, device="cuda")
    kept = []
    for i in range(40):
        a, b = operands(torch, 136, 264, 328)
        r = torch.randn(136, 264, device="cuda", dtype=torch.bfloat16)
        if i == 36:  # templates have been made by then
            monkeypatch.setattr(launches, "arguments", None)
        got = matmul(a, b, epilogue=bias(v) | residual(r) | total(of_rows.zero_()), cut=cut)
        kept.append((a, b, r, got))
        if i > 34:
            want = a.double() @ b.double() + v.double() + r.double()
            assert_close(torch, got, want, a, b)
            torch.testing.assert_close(of_rows.double(), want.sum(1), rtol=1e-4, atol=1e-1)


def test_a_result_may_be_what_was_added_to_it(torch):
    a, b = operands(torch, 136, 264, 328)
    c = torch.randn(136, 264, device="cuda", dtype=torch.bfloat16)
    want = a.double() @ b.double() + c.double()
    assert matmul(a, b, epilogue=residual(c), out=c) is c
    assert_close(torch, c, want, a, b)


def test_batches_are_multiplied_one_by_one_and_a_matrix_with_all(torch):
    a, b = operands(torch, 136, 264, 200, batch=(5,))
    v = torch.randn(5, 264, device="cuda")
    assert_close(torch, matmul(a, b), a.double() @ b.double(), a, b)
    got = matmul(a, b[2], epilogue=bias(v))
    assert_close(torch, got, a.double() @ b[2].double() + v.double()[:, None], a, b[2])


def test_a_column_of_the_result_may_be_made_of_two(torch):
    a, b = operands(torch, 264, 1040, 328)
    v, r = torch.randn(1040, device="cuda"), torch.randn(264, 520, device="cuda", dtype=torch.bfloat16)
    x = a.double() @ b.double() / 16 + v.double()
    want = torch.nn.functional.silu(x[:, :520]) * x[:, 520:] + r.double()
    got = matmul(a, b, epilogue=scale(1 / 16) | bias(v) | swiglu() | residual(r))
    assert got.shape == (264, 520)
    got_turned = matmul(a, b, epilogue=scale(1 / 16) | bias(v) | swiglu() | residual(r.mT.contiguous().mT),
                        out=torch.empty(520, 264, device="cuda", dtype=torch.bfloat16).mT)  # fmt: skip
    assert torch.equal(got, got_turned)
    assert (got.double() - want).abs().max() <= 2.0**-7 * want.abs().max()


def test_steps_take_vectors_and_give_sums_and_magnitudes(torch):
    a, b = operands(torch, 456, 1032, 520)
    rows, cols = torch.randn(456, device="cuda"), torch.randn(1032, device="cuda", dtype=torch.bfloat16)
    of_rows, of_columns, most = (torch.zeros(n, device="cuda") for n in (456, 1032, 1))
    epilogue = scale(rows, "rows") | bias(cols) | total(of_rows) | total(of_columns, "columns") | amax(most)
    want = a.double() @ b.double() * rows.double()[:, None] + cols.double()
    got = matmul(a, b, epilogue=epilogue, out_dtype=torch.float32)
    torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(of_rows.double(), want.sum(1), rtol=1e-4, atol=1e-1)
    torch.testing.assert_close(of_columns.double(), want.sum(0), rtol=1e-4, atol=1e-1)
    torch.testing.assert_close(most.double(), want.abs().max()[None], rtol=1e-5, atol=0)


def _leaky(x, slopes):
    import numba_cute as cute

    return cute.where(x > 0.0, x, slopes * x)


def test_an_epilogue_may_be_any_function(torch):
    a, b = operands(torch, 136, 264, 72)
    slopes, out = torch.rand(264, device="cuda"), torch.empty(264, 136, device="cuda", dtype=torch.bfloat16).mT
    x = a.double() @ b.double()
    got = matmul(a, b, epilogue=Epilogue(_leaky, columns(slopes)), out=out)
    assert got is out
    assert_close(torch, got, torch.where(x > 0, x, slopes.double() * x), a, b)
    x = matmul(a, b, epilogue=gelu())
    want = torch.nn.functional.gelu(a.double() @ b.double(), approximate="tanh")
    assert (x.double() - want).abs().max() < 2.0**-7 * math.sqrt(72) * 4


def test_what_does_not_fit_is_refused_in_words(torch):
    a, b = operands(torch, 64, 64, 64)
    with pytest.raises(CuteError, match="as many columns as b has rows"):
        matmul(a, b[:32])
    with pytest.raises(CuteError, match="its shape must be"):
        matmul(a, b, epilogue=bias(torch.zeros(63, device="cuda")))
    with pytest.raises(CuteError, match="on cpu along 'columns' must be a tensor on cuda"):
        matmul(a, b, epilogue=bias(torch.zeros(64)))
    with pytest.raises(CuteError, match="a is int 3; give a tensor"):
        matmul(3, b)
    with pytest.raises(CuteError, match="cut is int 3; give a Plan"):
        matmul(a, b, cut=3)
    with pytest.raises(CuteError, match="epilogue is str 'gelu'; give an Epilogue"):
        matmul(a, b, epilogue="gelu")
    with pytest.raises(CuteError, match="elements"):
        matmul(a.double(), b.double())
