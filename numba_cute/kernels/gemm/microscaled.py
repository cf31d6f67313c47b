# SPDX-License-Identifier: Apache-2.0
"""Products of numbers of 8 or 4 bits of which 16 or 32 along K share a scale factor (MXFP8, MXFP4, NVFP4), for
Blackwell: the kernel of `umma.py`, whose tensor cores scale while they multiply, with its epilogues."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numba_cute as cute
from numba_cute.seam import CuteError

from .. import entry
from . import umma_plan
from .cuts import Umma
from .epilogue import Epilogue
from .operands import check_rows
from .umma_scaled import FACTORS, ROWS, Kind, Scales

if TYPE_CHECKING:
    import torch

WHAT = "blockscaled_gemm"
KINDS = {
    ("float8_e4m3fn", "float8_e8m0fnu"): Kind(cute.Float8E4M3FN, cute.Float8E8M0FNU, 32),
    ("float8_e5m2", "float8_e8m0fnu"): Kind(cute.Float8E5M2, cute.Float8E8M0FNU, 32),
    ("float4_e2m1fn_x2", "float8_e8m0fnu"): Kind(cute.Float4E2M1FN, cute.Float8E8M0FNU, 32),
    ("float4_e2m1fn_x2", "float8_e4m3fn"): Kind(cute.Float4E2M1FN, cute.Float8E4M3FN, 16),
}
"""The kinds of operands, by torch's names of the elements and of the factors; a byte holds two elements of 4 bits."""


def chunked_scales(scales: Any) -> Any:
    """Put scale factors in the order of the hardware: chunks of 128 rows by 4 factors, one after another along K first,
    in which row i has its factors at 16 * (i % 32) + 4 * (i // 32). There are zeros for what is beyond.

    scales: (rows, factors along K), of 8 bits each. Gives a tensor of one mode and the same elements.

    >>> import torch
    >>> scales = torch.arange(8, dtype=torch.uint8).reshape(2, 4)
    >>> with cute.simulation():
    ...     chunks = cute.kernels.chunked_scales(scales)
    >>> chunks.shape, chunks[16:20]
    (torch.Size([512]), tensor([4, 5, 6, 7], dtype=torch.uint8))
    """
    entry.check("chunked_scales", "scales", scales, rank=2, last=False)
    torch, (rows, factors) = entry.pytorch(), scales.shape
    blocks, along = math.ceil(rows / ROWS), math.ceil(factors / FACTORS)
    given = scales.view(torch.uint8) if scales.is_contiguous() else scales.contiguous().view(torch.uint8)
    padded = torch.nn.functional.pad(given, (0, along * FACTORS - factors, 0, blocks * ROWS - rows))
    chunks = padded.view(blocks, 4, 32, along, FACTORS).permute(0, 3, 2, 1, 4)
    return chunks.reshape(-1).view(scales.dtype)


def _chunks(name: str, scales: Any, rows: int, k: int, kind: Kind, like: Any) -> Any:
    """The bytes of the factors of a matrix of `rows` by `k`, in chunks."""
    factors = math.ceil(k / kind.vector)
    count = math.ceil(rows / ROWS) * math.ceil(factors / FACTORS) * ROWS * FACTORS
    if getattr(scales, "ndim", 0) == 2:
        entry.check(WHAT, name, scales, shape=(rows, factors), last=False, like=like)
        scales = chunked_scales(scales)
    entry.check(WHAT, name, scales, shape=(count,), like=like)
    return scales.view(entry.pytorch().uint8)


def _result(
    a: torch.Tensor, b: torch.Tensor, scales_a: torch.Tensor, scales_b: torch.Tensor, given: list[torch.Tensor],
    form: object, kind: object,
) -> Any:  # fmt: skip
    return a.new_empty((a.shape[0], b.shape[0]), dtype=entry.pytorch().bfloat16)


def plan(a: Any, b: Any, scales_a: Any, scales_b: Any, given: list[Any], c: Any, form: Any, kind: Kind) -> Any:
    """Plan the launch, of bytes; `c` is the result. form, given: the epilogue's form and tensors. kind: a Kind."""
    m, n, k = a.shape[0], b.shape[0], a.shape[1] * 8 // int(kind.element.width)
    if 0 in (m, n, k):
        return lambda *tensors: tensors[-1].zero_()
    entry.check_target(WHAT, a, entry.TENSOR_MEMORY)
    check_rows(WHAT, a=a, b=b, out=c)
    for x in Epilogue.of(form, given).given if form else ():
        x.check_as_it_lies(c)
    target, cut = entry.target_at(a), choose(c, k, kind, entry.multiprocessors(a))

    @cute.runtime.remembered
    def made(a: Any, b: Any, scales_a: Any, scales_b: Any, c: Any, *given: Any) -> Any:
        own, scales = Epilogue.of(form, given) if form else None, Scales(kind, scales_a, scales_b)
        return umma_plan.arguments(a, b, c, kind.element, target, cut, own, cute.BFloat16, scales=scales)

    grid = made(a, b, scales_a, scales_b, c, *given)[1]
    bound = cute.launch(umma_plan.kernel_of(cut), grid=grid, block=cut.threads, pdl=True)

    def launch(a: Any, b: Any, scales_a: Any, scales_b: Any, given: list[Any], c: Any) -> None:
        bound(*made(a, b, scales_a, scales_b, c, *given)[0])

    return launch


def choose(c: Any, k: int, kind: Kind, sms: int) -> Umma:
    """Choose the cut of the least time on so many SMs, by the model, of those that leave columns of tensor memory to
    the factors. c: the result. k: the extent summed over. kind: a Kind."""
    cuts = [cut for cut in umma_plan.CUTS if cut.tile_n == ROWS]
    return min(cuts, key=lambda cut: umma_plan.modelled(cut, c, k, kind.element, sms))


MICROSCALED = entry.Operator("numba_cute::microscaled_gemm", plan, _result)


def microscaled(a: Any, b: Any, scales_a: Any, scales_b: Any, epilogue: Epilogue | None, out: Any) -> Any:
    """Multiply as `blockscaled_gemm` says of factors of 8 bits, whose arguments these are."""
    elements, factors = {e for e, _ in KINDS}, entry.type_name(scales_a)
    entry.check(WHAT, "a", a, dtypes=tuple(sorted(elements)), rank=2)
    entry.check(WHAT, "b", b, dtypes=(entry.type_name(a),), rank=2, shape=(None, a.shape[1]), like=a)
    entry.check(WHAT, "scales_b", scales_b, dtypes=(factors,), last=False, like=a)
    kind = KINDS.get((entry.type_name(a), factors))
    if kind is None:
        pairs = ", ".join(f"{e} with {f}" for e, f in KINDS)
        raise CuteError(f"{WHAT}: a is {entry.described(a)} and scales_a of {factors}; give one of {pairs}")
    if epilogue is not None and (not isinstance(epilogue, Epilogue) or epilogue.spread > 1):
        raise CuteError(f"{WHAT}: epilogue is {entry.described(epilogue)}; give an Epilogue without pairs, or None")
    form, given = (epilogue.form, epilogue.tensors) if epilogue else ((), [])
    entry.refuse_gradients(WHAT, [a, b, scales_a, scales_b, out, *given])
    bits, k = entry.pytorch().uint8, a.shape[1] * 8 // int(kind.element.width)
    chunks = [_chunks(name, scales, x.shape[0], k, kind, a)
              for name, scales, x in (("scales_a", scales_a, a), ("scales_b", scales_b, b))]  # fmt: skip
    return MICROSCALED(a.view(bits), b.view(bits), *chunks, list(given), form, kind, into=(out,))
