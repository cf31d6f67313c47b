# SPDX-License-Identifier: Apache-2.0
"""`matmul` of any extents, strides and batches: results and gradients, on tensors of the CPU in a simulation, against
float64."""

import pytest

import numba_cute as cute
from numba_cute import CuteError, kernels
from numba_cute.kernels.gemm import bias, gelu, matmul, residual, swiglu, total

torch = pytest.importorskip("torch")

SLOW = pytest.mark.slow
BF16, F32, F8 = torch.bfloat16, torch.float32, torch.float8_e4m3fn
pytestmark = pytest.mark.usefixtures("simulated")


def normal(*shape, dtype=BF16):
    return torch.randn(shape).to(dtype)


def shifted(*shape, dtype=BF16):
    """A tensor that begins one element behind a multiple of 16 bytes."""
    whole = normal(torch.Size(shape).numel() + 1, dtype=dtype)
    return whole[1:].view(shape)


# What TMA reads as it lies is nowhere among these.
OPERANDS = {
    "odd K": lambda: (normal(5, 19), normal(8, 19).mT),
    "odd N": lambda: (normal(5, 24), normal(24, 9)),
    "rows that begin elsewhere": lambda: (shifted(5, 24), normal(24, 8)),
    "every other element": lambda: (normal(8, 48)[:, ::2], normal(24, 16)),
    "turned and odd": lambda: (normal(19, 5).mT, normal(19, 9)),
    "float32 along N": lambda: (normal(8, 20, dtype=F32), normal(20, 6, dtype=F32)),
    "one of K": lambda: (normal(8, 1, dtype=F32), normal(1, 3, dtype=F32)),
    "one of all": lambda: (normal(1, 1), normal(1, 1)),
    "none of K": lambda: (normal(5, 0), normal(0, 9)),
    "none of M": lambda: (normal(0, 8), normal(8, 9)),
    "none of N": lambda: (normal(3, 8), normal(8, 0)),
}
BATCHES = {
    "a vector first": lambda: (normal(24), normal(24, 9)),
    "a vector last": lambda: (normal(2, 3, 8, 24), normal(24)),
    "two vectors": lambda: (normal(19), normal(19)),
    "a vector and batches": lambda: (normal(24), normal(2, 24, 8)),
    "one and three": lambda: (normal(1, 8, 24), normal(3, 24, 8)),
    "both repeated": lambda: (normal(2, 1, 8, 24), normal(3, 24, 8)),
    "heads in groups": lambda: (normal(2, 2, 3, 8, 16), normal(2, 2, 1, 16, 8)),
    "four modes": lambda: (normal(1, 2, 1, 2, 8, 16), normal(2, 1, 2, 1, 16, 8)),
    "too many modes": lambda: (normal(2, 1, 2, 1, 2, 1, 2, 8, 8)[..., :5], normal(1, 2, 1, 2, 1, 2, 1, 5, 8)),
    "modes in another order": lambda: (normal(3, 2, 8, 24).transpose(0, 1), normal(2, 3, 24, 8)),
    "a stride of 0": lambda: (normal(1, 8, 24).expand(3, 8, 24), normal(3, 24, 8)),
    "no batches": lambda: (normal(0, 8, 24), normal(24, 8)),
}  # fmt: skip


def check(a, b, made=lambda *given: None, want=lambda z, *given: z, given=()):
    """Compare a result and all gradients with float64's."""
    mine = [t.detach().requires_grad_() for t in (a, b, *given)]
    y = kernels.matmul(*mine[:2], epilogue=made(*mine[2:]))
    exact = [t.detach().double().requires_grad_() for t in mine]
    right = want(exact[0] @ exact[1], *exact[2:])
    assert y.shape == right.shape and y.is_contiguous()
    assert (y.double() - right).norm() <= 0.004 * right.norm()
    dy = torch.randn(y.shape).to(y.dtype)
    found, wanted = torch.autograd.grad(y, mine, dy), torch.autograd.grad(right, exact, dy.double())
    for i, (got, of, like) in enumerate(zip(found, wanted, mine, strict=True)):
        assert (got.dtype, got.shape) == (like.dtype, like.shape)
        assert (got.double() - of).norm() <= 0.006 * of.norm() + 1e-6, f"operand {i}"


def forward(a, b):
    """Compare a result with float64's."""
    y, want = kernels.matmul(a, b), a.double() @ b.double()
    assert y.shape == want.shape and (y.double() - want).norm() <= 0.004 * want.norm()


QUICK = ("none of K", "none of M", "none of N", "no batches", "a stride of 0")


@pytest.mark.parametrize("name", QUICK)
def test_some_are_quickly_multiplied(name):
    forward(*(OPERANDS | BATCHES)[name]())


@SLOW
@pytest.mark.parametrize("name", OPERANDS)
def test_every_extent_and_layout_is_taken(name):
    check(*OPERANDS[name]())


@SLOW
@pytest.mark.parametrize("name", BATCHES)
def test_batches_broadcast_as_torchs_do(name):
    check(*BATCHES[name]())


@SLOW
@pytest.mark.parametrize("arch", ["sm_80", "sm_120a"])
@pytest.mark.parametrize("name", ["odd K", "turned and odd", "float32 along N", "none of K", "heads in groups"])
def test_those_of_warps_take_them_too(name, arch):
    with cute.simulation(arch, checks=False, sms=4):
        forward(*(OPERANDS | BATCHES)[name]())


@SLOW
@pytest.mark.parametrize("kind", [F8, torch.int8], ids=str)
def test_8_bits_are_turned_and_padded(kind):
    a, b = ((torch.randn(s) * 4).to(kind) for s in ((5, 19), (19, 9)))
    y, want = kernels.matmul(a, b), a.double() @ b.double()
    assert (y.double() - want).norm() <= (0.004 if kind == F8 else 0) * want.norm()


@SLOW
@pytest.mark.parametrize("m, n", [(5, 9), (8, 1)])
def test_epilogues_of_odd_columns_have_all_that_others_have(m, n):
    a, b = normal(m, 19), normal(19, n)
    want = lambda z, v, r: torch.nn.functional.gelu(z + v, approximate="tanh") + r  # noqa: E731
    check(a, b, lambda v, r: bias(v) | gelu() | residual(r), want, [normal(n), normal(n, m).mT])
    found = torch.zeros(n)
    y = kernels.matmul(a, b, epilogue=total(found, "columns"), out_dtype=F32)
    assert torch.allclose(found, y.sum(0), rtol=1e-4, atol=1e-4)


@SLOW
def test_halves_may_be_odd():
    check(normal(5, 19), normal(19, 34), lambda v: bias(v) | swiglu(),
          lambda z, v: torch.nn.functional.silu((z + v)[:, :17]) * (z + v)[:, 17:], [normal(34)])  # fmt: skip


@SLOW
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("n", [32, 34])
def test_halves_may_be_those_of_batches_of_many_modes(arch, n):
    """Pairs of columns take two modes of a tensor map, so that B has one left for its batches."""
    a, b = normal(2, 2, 1, 3, 16), normal(2, 1, 2, 16, 2 * n)[..., :n]
    with cute.simulation(arch, checks=False, sms=4):
        y, z = kernels.matmul(a, b, epilogue=swiglu()), a.double() @ b.double()
    want = torch.nn.functional.silu(z[..., : n // 2]) * z[..., n // 2 :]
    assert y.shape == want.shape and (y.double() - want).norm() <= 0.006 * want.norm()


@SLOW
def test_an_epilogue_has_values_of_each_matrix_of_many_modes():
    check(*BATCHES["both repeated"](), lambda v, r: bias(v) | residual(r),
          lambda z, v, r: z + v[..., None, :] + r, [normal(2, 3, 8), normal(2, 3, 8, 8)])  # fmt: skip


@SLOW
@pytest.mark.parametrize("strides", [(11, 1), (1, 7), (22, 2)], ids=str)
def test_a_result_may_be_written_to_any_strides(strides):
    a, b, whole = normal(5, 24), normal(24, 9), torch.full((140,), 7.0, dtype=BF16)
    out = whole.as_strided((5, 9), strides, 3)
    assert kernels.matmul(a, b, out=out) is out
    want = a.double() @ b.double()
    assert (out.double() - want).norm() <= 0.004 * want.norm()
    out.fill_(7.0)
    assert (whole == 7.0).all()  # nothing was written beside


@SLOW
def test_a_trace_has_them_too():
    a, b = (t.requires_grad_() for t in BATCHES["both repeated"]())
    made = torch.compile(lambda a, b: kernels.matmul(a[..., :19], b[..., :19, :5]) + 1, fullgraph=True,
                         backend="aot_eager")(a, b)  # fmt: skip
    want = a.double()[..., :19] @ b.double()[..., :19, :5] + 1
    assert (made.double() - want).norm() <= 0.01 * want.norm()
    got = torch.autograd.grad(made.sum(), (a, b))
    for one, of in zip(got, torch.autograd.grad(want.sum(), (a, b)), strict=True):
        assert (one.double() - of).norm() <= 0.01 * of.norm()


# ---------------------------------------------------------------- rows that an index names


def torchs(of_a, of_c, m, n, k, made=None, want=lambda z, *given: z, given=()):
    """Compare a result and all gradients with float64's."""
    a, b = (torch.randn(s).bfloat16() for s in ((of_a or m, k), (k, n)))
    index_a = torch.randint(0, of_a, (m,)) if of_a else None
    index_c = torch.randperm(m).int() if of_c else None
    mine = [t.detach().requires_grad_() for t in (a, b, *(torch.randn(s).bfloat16() for s in given))]
    y = kernels.matmul(*mine[:2], epilogue=made and made(*mine[2:]), rows_of_a=index_a, rows_of_c=index_c)
    exact = [t.detach().double().requires_grad_() for t in mine]
    right = want((exact[0] if index_a is None else exact[0][index_a]) @ exact[1], *exact[2:])
    right = right if index_c is None else torch.zeros_like(right).index_copy(0, index_c.long(), right)
    assert (y.double() - right).norm() <= 0.004 * right.norm()
    dy = torch.randn(y.shape).to(y.dtype)
    for got, of in zip(torch.autograd.grad(y, mine, dy), torch.autograd.grad(right, exact, dy.double()), strict=True):
        assert (got.double() - of).norm() <= 0.006 * of.norm() + 1e-6


@SLOW
@pytest.mark.parametrize("of_a, of_c", [(12, False), (None, True), (12, True)], ids=str)
def test_gradients_go_where_rows_come_from(of_a, of_c):
    torchs(of_a, of_c, 20, 17, 24)


@SLOW
def test_epilogues_count_the_products_rows():
    want = lambda z, v, r: torch.nn.functional.gelu(z + v, approximate="tanh") + r  # noqa: E731
    torchs(7, True, 20, 17, 19, lambda v, r: bias(v) | gelu() | residual(r), want, [(17,), (20, 17)])
    gated = lambda z: torch.nn.functional.silu(z[:, :16]) * z[:, 16:]  # noqa: E731
    torchs(7, True, 20, 32, 24, swiglu, gated)


@SLOW
@pytest.mark.parametrize("of_a, of_c", [(12, False), (None, True), (12, True)], ids=str)
def test_those_of_warps_have_such_rows_too(of_a, of_c):
    with cute.simulation("sm_80", checks=False, sms=4):
        torchs(of_a, of_c, 20, 17, 72)


@SLOW
def test_no_row_has_no_gradient_and_nothing_is_written_for_it():
    a, b = torch.randn(6, 24).bfloat16().requires_grad_(), torch.randn(24, 16).bfloat16().requires_grad_()
    rows_a, rows_c = torch.tensor([5, -1, 2, 6]), torch.tensor([1, -1, 4, 0])
    with torch.no_grad():
        out = torch.full((5, 16), 7.0).bfloat16()
        assert matmul(a, b, rows_of_a=rows_a, rows_of_c=rows_c, out=out) is out
    assert out[0].isnan().all() and (out[[2, 3]] == 7).all() and not out[[1, 4]].isnan().any()
    y = matmul(a, b, rows_of_a=rows_a)
    assert y[[1, 3]].isnan().all()
    da, db = torch.autograd.grad(y, (a, b), torch.ones_like(y))
    assert not db.isnan().any() and da[[0, 1, 3, 4]].eq(0).all() and da[[2, 5]].ne(0).any(1).all()


@SLOW
@pytest.mark.parametrize("strides", [(1, 1), (3, 1), (1, 9), (22, 2)], ids=str)
def test_rows_that_nothing_goes_to_keep_what_they_hold(strides):
    n = 1 if strides == (1, 1) else 3
    a, b, whole = normal(4, 24), normal(24, n), torch.full((300,), 7.0).bfloat16()
    out = whole.as_strided((9, n), strides, 5)
    matmul(a, b, rows_of_a=torch.tensor([2, 0, 1]), rows_of_c=torch.tensor([8, 2, 4]), out=out)
    want = torch.full((9, n), 7.0).double().index_copy(0, torch.tensor([8, 2, 4]), (a.double() @ b.double())[[2, 0, 1]])
    assert (out.double() - want).norm() <= 0.004 * want.norm()
    assert whole.eq(7.0).sum() >= 300 - 3 * n


REFUSED = {
    "rows_of_a is float32": dict(rows_of_a=(3.0,)),
    "rows_of_c is int64 .*; its shape must be \\(4,\\)": dict(rows_of_c=(0, 1)),
    "tune=True is not supported where an index names rows": dict(rows_of_a=(0,), tune=True),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_no_index_is_refused(words):
    a, b = torch.zeros(4, 16).bfloat16(), torch.zeros(16, 8).bfloat16()
    given = {
        k: torch.tensor(v) if isinstance(v, tuple) and k.startswith("rows") else v for k, v in REFUSED[words].items()
    }
    with pytest.raises(CuteError, match=words):
        matmul(a, b, **given)
    with pytest.raises(CuteError, match="both must be matrices"):
        matmul(a[None], b, rows_of_a=torch.tensor([0]))
    with pytest.raises(CuteError, match="int8, which has no NaN"):
        matmul(a.to(torch.int8), b.to(torch.int8), rows_of_a=torch.tensor([0]))
