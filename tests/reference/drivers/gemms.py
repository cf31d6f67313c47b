# SPDX-License-Identifier: Apache-2.0
"""Small problems of matrix multiplication for Quack's drivers: each calls a function of Quack's for the GPU that there
is, and notes what it gave beside what torch says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from compared import compare
from quack import gemm_interface as quack
from quack.gemm import gemm
from quack.gemm_config import GemmConfig, SplitKMode
from quack.gemm_symmetric import gemm_symmetric

M, N, K = 72, 80, 72
ONE = {"tile_M": 128, "tile_N": 64, "cluster_M": 1, "cluster_N": 1}
CLOSE = {"atol": 1e-1, "rtol": 2e-2}


def config(tile_n: int = 64, **more: Any) -> GemmConfig:
    """Return a configuration of one CTA a cluster, for the GPU that there is."""
    major = torch.cuda.get_device_capability()[0]
    usual = {"tile_m": 128, "pingpong": False, "is_dynamic_persistent": major == 10, "cluster_m": 1}
    return GemmConfig(**(usual | more), tile_n=tile_n, device_capacity=major)


def matrix(*shape: int, dtype: torch.dtype = torch.bfloat16, scale: float = 1.0) -> torch.Tensor:
    """Return a random matrix on the GPU."""
    return (torch.randn(*shape, device="cuda") * scale).to(dtype)


def operands(n: int = N) -> tuple[torch.Tensor, ...]:
    """Return A (M, K), B (K, n) and C (M, n), whose product is of the size of one."""
    torch.manual_seed(0)
    return matrix(M, K), matrix(n, K, scale=K**-0.5).mT, matrix(M, n)


def close(given: Any, expected: Any) -> None:
    """Note a result, and what it should be, in float32."""
    compare(given.float(), expected.float(), **CLOSE)


def linear() -> None:
    """alpha A B + beta C + bias, by its columns or rows."""
    a, b, c = operands()
    d, row, column = torch.empty_like(c), torch.randn(N, device="cuda"), torch.randn(M, device="cuda")
    gemm(
        a[None], b.mT[None], d[None], c[None], None, **ONE, rowvec_bias=row[None], colvec_bias=column[None], alpha=2.0,
        beta=torch.tensor(0.5, device="cuda"),
    )  # fmt: skip
    close(d, 2 * (a.float() @ b.float()) + 0.5 * c.float() + row + column[:, None])


def added() -> None:
    """D += A B."""
    a, b, c = operands()
    d = c.clone()
    gemm(a[None], b.mT[None], d[None], None, None, **ONE, add_to_output=True)
    close(d, a.float() @ b.float() + c.float())


def activated() -> None:
    """An activation of the product, which is stored too."""
    a, b, c = operands()
    bias = torch.randn(N, device="cuda")
    before, after = quack.gemm_act(a, b, c, bias, activation="gelu_tanh_approx", config=config())
    expected = a.float() @ b.float() + c.float() + bias
    close(before, expected)
    close(after, torch.nn.functional.gelu(expected, approximate="tanh"))


def gated() -> None:
    """SwiGLU of the product's pairs of columns."""
    a, b, _ = operands()
    before, after = quack.gemm_gated(a, b, activation="swiglu", config=config())
    product = a.float() @ b.float()
    close(before, product)
    close(after, torch.nn.functional.silu(product[:, ::2]) * product[:, 1::2])


def activated_backward() -> None:
    """The gradient of an activation's argument."""
    a, b, before = operands()
    dx, after = quack.gemm_dact(a, b, before, activation="relu_sq", config=config(), dynamic_scheduler=False)
    x = before.float()
    close(dx, (a.float() @ b.float()) * 2 * x.relu())
    close(after, x.relu() ** 2)


def gated_backward() -> None:
    """The gradient of SwiGLU's arguments."""
    a, b, _ = operands()
    before = matrix(M, 2 * N)
    dx, after = quack.gemm_dgated(a, b, before, activation="swiglu", config=config(), dynamic_scheduler=False)
    x = before.float().requires_grad_()
    y = torch.nn.functional.silu(x[:, ::2]) * x[:, 1::2]
    y.backward(a.float() @ b.float())
    close(dx, x.grad)
    close(after, y.detach())


def squares() -> None:
    """The product, times a weight, and the root of its rows' mean square."""
    a, b, c = operands()
    weight = torch.randn(N, device="cuda")
    d, rstd = quack.gemm_rms(a, b, c, weight, config=config())
    product = a.float() @ b.float() + c.float()
    close(d, product * weight)
    close(rstd, torch.rsqrt(product.square().mean(-1) + 1e-6))


def normalised() -> None:
    """An activation of the product's rows, each scaled."""
    a, b, c = operands()
    rstd = torch.rand(M, device="cuda")
    _, after = quack.gemm_norm_act(a, b, rstd, c, activation="relu", config=config())
    close(after, ((a.float() @ b.float() + c.float()) * rstd[:, None]).relu())


def symmetric() -> None:
    """A times its transpose, of which half is computed."""
    torch.manual_seed(0)
    a = matrix(1, 256, 72, scale=0.3)
    d = torch.empty(1, 256, 256, device="cuda", dtype=torch.bfloat16)
    gemm_symmetric(a, a, d, None, None, tile_M=128, tile_N=128, cluster_M=1, cluster_N=1)
    close(d, a.float() @ a.float().mT)


def split_k() -> None:
    """K split over CTAs, in order or as they come, and by a kernel that adds up."""
    a, b, c = operands()
    for mode in (SplitKMode.SERIAL, SplitKMode.PARALLEL, SplitKMode.SEPARATE):
        d = torch.empty_like(c)
        gemm(
            a[None], b.mT[None], d[None], c[None], None, **ONE, split_k=2,
            split_k_mode=mode,
        )  # fmt: skip
        close(d, a.float() @ b.float() + c.float())


def _ends(*lengths: int) -> torch.Tensor:
    return torch.tensor([0, *lengths], device="cuda").cumsum(0).to(torch.int32)


def rows_of_many() -> None:
    """Matrices of different numbers of rows, one behind the other, with rows as they lie or gathered."""
    torch.manual_seed(0)
    ends = _ends(100, 28)
    a, b = matrix(128, 72), matrix(2, 72, 64, scale=0.1)
    chosen = torch.randperm(128, device="cuda").to(torch.int32)
    for rows in (None, chosen):
        d = torch.empty(128, 64, device="cuda", dtype=a.dtype)
        gemm(a, b.mT.contiguous(), d, None, None, **ONE, cu_seqlens_m=ends, A_idx=rows)
        x = (a if rows is None else a[rows.long()]).float()
        close(d, torch.cat([x[:100] @ b[0].float(), x[100:] @ b[1].float()]))


def sums_of_many() -> None:
    """Matrices of different K, one behind the other."""
    torch.manual_seed(0)
    ends = _ends(100, 28)
    a, b = matrix(128, 128, scale=0.1).mT, matrix(128, 64)
    d = torch.empty(2, 128, 64, device="cuda", dtype=a.dtype)
    gemm(a, b.mT, d, None, None, **ONE, cu_seqlens_k=ends)
    x, y = a.float(), b.float()
    close(d, torch.stack([x[:, :100] @ y[:100], x[:, 100:] @ y[100:]]))


def run(problems: Iterable[Any]) -> None:
    """Run problems, each by itself."""
    for problem in problems:
        problem()
