# SPDX-License-Identifier: Apache-2.0
"""Products of 8 and 4 bits with scale factors of 16 or 32 along K: right against float64 in the simulator."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError, kernels
from numba_cute.kernels.gemm import Umma, bias, microscaled, scale, swiglu, umma_plan
from numba_cute.kernels.gemm.umma_scaled import Scales
from numba_cute.utils import blockscaled_layout

SLOW = pytest.mark.slow
NAMES = ["-".join(kind) for kind in microscaled.KINDS]
FOURS = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]


@pytest.fixture
def torch():
    """PyTorch, whose entries run as on a B200."""
    found = pytest.importorskip("torch")
    found.manual_seed(0)
    with cute.simulation("sm_100a", checks=False, sms=4):
        yield found


def operand(torch, rows, k, element):
    """Random numbers, and the same in float64."""
    if element != "float4_e2m1fn_x2":
        x = torch.randn(rows, k).to(getattr(torch, element))
        return x, x.double()
    codes, known = torch.randint(0, 16, (rows, k)), torch.tensor(FOURS, dtype=torch.float64)
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)
    return packed.view(torch.float4_e2m1fn_x2), known[codes]


def factors(torch, rows, k, kind, name):
    """Random factors, and for each element its own in float64."""
    shape = rows, -(-k // kind.vector)
    if name == "float8_e8m0fnu":
        powers = torch.randint(124, 131, shape, dtype=torch.uint8)
        found, wide = powers.view(torch.float8_e8m0fnu), 2.0 ** (powers.double() - 127)
    else:
        found = (torch.rand(shape) + 0.25).to(torch.float8_e4m3fn)
        wide = found.double()
    return found, wide.repeat_interleave(kind.vector, 1)[:, :k]


def problem(torch, name, m, n, k):
    """A, B, their factors, and the product in float64."""
    element, factor = name.split("-")
    kind = microscaled.KINDS[element, factor]
    (a, exact_a), (b, exact_b) = (operand(torch, rows, k, element) for rows in (m, n))
    (of_a, wide_a), (of_b, wide_b) = (factors(torch, rows, k, kind, factor) for rows in (m, n))
    return a, b, of_a, of_b, (exact_a * wide_a) @ (exact_b * wide_b).T


@SLOW
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_is_scaled(torch, name):
    a, b, of_a, of_b, want = problem(torch, name, 40, 24, 96)
    got = kernels.blockscaled_gemm(a, b, of_a, of_b)
    assert (got.double() - want).abs().max() <= 2.0**-8 * want.abs().max()
    factor, v, out = torch.tensor([0.5]), torch.randn(24), torch.empty(40, 24, dtype=torch.bfloat16)
    chunks = kernels.chunked_scales(of_a), kernels.chunked_scales(of_b)
    kernels.blockscaled_gemm(a, b, *chunks, epilogue=scale(factor) | bias(v), out=out)
    assert (out.double() - want / 2 - v.double()).abs().max() <= 2.0**-8 * want.abs().max()


@SLOW
@pytest.mark.parametrize("cut", [Umma(128, 1), Umma(128, 2)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_it_is_right_in_every_order(name, cut):
    """With all checks of the simulator; the last tile of K is a part of one, and so are those of rows and columns."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    kind = list(microscaled.KINDS.values())[NAMES.index(name)]
    a, b, *of, want = problem(torch, name, 300, 136, 320)
    with cute.simulation("sm_100a"):
        given = [x.view(torch.uint8).numpy() for x in (a, b, *map(kernels.chunked_scales, of))]
    c = np.full((300, 136), np.nan, cute.BFloat16.numpy)
    scales, target = Scales(kind, *given[2:]), cute.target("sm_100a")
    args, grid = umma_plan.arguments(
        *given[:2], c, kind.element, target, cut, None, cute.BFloat16, clusters=1, scales=scales
    )
    cute.simulate(umma_plan.kernel_of(cut), arch="sm_100a")[grid, cut.threads](*args)
    assert np.abs(c.astype(np.float64) - want.numpy()).max() <= 2.0**-8 * want.abs().max()
    for arch in ("sm_100a", "sm_103a"):
        made = cute.compile(umma_plan.kernel_of(cut), args, arch=arch)
        assert (made.resources.spill_stores, made.resources.local, made.notes) == (0, 0, ())


@pytest.mark.parametrize(("rows", "along"), [(1, 1), (130, 5), (256, 8)])
def test_chunks_are_as_the_hardware_has_them(torch, rows, along):
    x = torch.randint(1, 255, (rows, along), dtype=torch.uint8)
    got = kernels.chunked_scales(x.mT.contiguous().mT.view(torch.float8_e8m0fnu)).view(torch.uint8).tolist()
    where = blockscaled_layout.tile_atom_to_shape_SF((rows, along * 32, 1), 32)
    assert len(got) == cute.cosize(where) and sum(got) == int(x.sum())
    assert all(got[where((i, j * 32, 0))] == x[i, j] for i in range(rows) for j in range(along))


def test_what_it_does_not_take_is_refused(torch):
    a, b, of_a, of_b, _ = problem(torch, NAMES[0], 16, 16, 64)
    refused = {
        "must have the same|elements must be": lambda: kernels.blockscaled_gemm(a, b.to(torch.float8_e5m2), of_a, of_b),
        "shape must be .16, 2.": lambda: kernels.blockscaled_gemm(a, b, of_a[:, :1].contiguous(), of_b),
        "shape must be .512,.": lambda: kernels.blockscaled_gemm(a, b, of_a.reshape(-1), of_b),
        "give one of": lambda: kernels.blockscaled_gemm(a, b, *(x.view(torch.float8_e4m3fn) for x in (of_a, of_b))),
        "ends is given": lambda: kernels.blockscaled_gemm(a, b, of_a, of_b, torch.tensor([16], dtype=torch.int32)),
        "without pairs": lambda: kernels.blockscaled_gemm(a, b, of_a, of_b, epilogue=swiglu()),
        "multiples of 16 bytes": lambda: kernels.blockscaled_gemm(a, b[:12], of_a, of_b[:12]),
        "its kernel is for Hopper": lambda: kernels.blockscaled_gemm(a, b, torch.ones(16, 1), torch.ones(1, 1)),
    }
    for says, call in refused.items():
        with pytest.raises(CuteError, match=says):
            call()
    with cute.simulation("sm_90a"), pytest.raises(CuteError, match="its kernel is for Blackwell"):
        kernels.blockscaled_gemm(a, b, of_a, of_b)
