# SPDX-License-Identifier: Apache-2.0
"""`matmul`: the Hopper GEMM for PyTorch's tensors; its launches, prepared or in the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import numba_cute as cute
from numba_cute import CuteError, utils

from .. import entry
from .dense import THREADS
from .epilogue import Epilogue
from .operands import Loose
from .plan import RESULTS, USUAL, Plan, arguments, cuts, kernel_of, modelled, plan

MOST = 1024  # launches that are remembered
OPERANDS = ("bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2", "int8")
RESULT_TYPES = ("bfloat16", "float16", "float32")
known: dict[Any, Callable[[], None]] = {}


def _on_host(sums: int, counts: int) -> tuple[Any, Any]:
    return np.full(sums, np.nan, np.float32), np.zeros(counts, np.int32)


def _on_device(device: Any) -> Callable[[int, int], tuple[Any, Any]]:
    torch = entry.pytorch()
    return lambda sums, counts: (
        torch.empty(sums, device=device), torch.zeros(counts, device=device, dtype=torch.int32)
    )  # fmt: skip


def simulate(
    a: Any, b: Any, c: Any, dtype: Any, cut: Plan = USUAL, epilogue: Epilogue | None = None, clusters: int = 1,
    c_dtype: Any = None, **options: Any,
) -> None:  # fmt: skip
    """Run the GEMM in the simulator on NumPy's arrays. a, b, c, dtype, cut, epilogue, c_dtype: as of `arguments`.
    clusters: that fit on the device. options: those of `cute.simulate`."""
    args, grid = arguments(a, b, c, dtype, clusters, cut, epilogue, _on_host, c_dtype)
    cute.simulate(kernel_of(cut), **options)[grid, THREADS](*args)


def launch_of(
    a: Any, b: Any, c: Any, dtype: Any, cut: Plan, epilogue: Epilogue | None = None, c_dtype: Any = None
) -> Callable[[], None]:
    """Prepare a launch of the GEMM for arrays of the device: call it as often as you like. a, b, c, dtype, cut,
    epilogue, c_dtype: as of `arguments`. It overlaps with the launch before it (programmatic dependent launch)."""
    most = utils.HardwareInfo().get_max_active_clusters(cut.sharers * cut.parts)
    scratch = _on_device(c.device) if cut.splits > 1 else None
    args, grid = arguments(a, b, c, dtype, most, cut, epilogue, scratch, c_dtype)
    return cute.launch(kernel_of(cut), grid=grid, block=THREADS, pdl=True).prepare(*args)  # type: ignore[no-any-return]


def launcher(
    a: Any, b: Any, c: Any, dtype: Any, epilogue: Epilogue | None = None, c_dtype: Any = None, parts: int | None = None
) -> Callable[[], None]:
    """Prepare a launch, cut as `plan` finds best. parts: into how many K is split. The others: as of `arguments`."""
    width = (c_dtype or RESULTS[dtype]).width
    cut = plan(c, a.shape[-1], dtype, sms_here(), epilogue, width, parts)
    return launch_of(a, b, c, dtype, cut, epilogue, c_dtype)


def sms_here() -> int:
    """Count the SMs of the current device."""
    return int(utils.HardwareInfo().get_device_multiprocessor_count())


@cute.autotune(
    lambda a, b, c, dtype: [c._asdict() for c in cuts(c, a.shape[-1], dtype)],
    cost=lambda cut, given: modelled(Plan(**cut), given["c"], given["a"].shape[-1], given["dtype"], sms_here()),
    makes_launch=True,
)
def tuned(a: Any, b: Any, c: Any, dtype: Any, tile_n: int = 256, sharers: int = 2, parts: int = 1, splits: int = 1,
          turned: bool = False, stages: int = 0, slots: int = 0) -> Any:  # fmt: skip
    """Prepare a launch, cut as measurements find best; `tuned.tune(a, b, c, dtype)` shows them. a, b, c, dtype: as of
    `arguments`. The others: those of a Plan."""
    return launch_of(a, b, c, dtype, Plan(tile_n, sharers, parts, splits, turned, stages, slots))


# ---------------------------------------------------------------- PyTorch's entry


def matmul(
    a: Any, b: Any, *, epilogue: Epilogue | None = None, out: Any = None, out_dtype: Any = None, cut: Plan | None = None
) -> Any:
    """Multiply matrices, a @ b, on a Hopper GPU, with an epilogue that costs next to nothing.

    a: (M, K), b: (K, N), or batches of them, (L, M, K) and (L, K, N), of which one may be a single matrix; both of
    bfloat16, float16, float8_e4m3fn, float8_e5m2, int8, or float32, which is rounded to TF32. Each is contiguous along
    either of its last modes, so that transposed views are taken as they are; along K, if its elements have not 16 bits.
    The other strides are multiples of 16 bytes. epilogue: what becomes of the sums (`numba_cute.kernels.gemm.bias` and
    its like, or an `Epilogue` of your own); of one that makes one column of two, the result has N / 2 columns.
    out: what is written to, contiguous along its last mode or the one before. out_dtype: of the result, if out is not
    given: torch.bfloat16, float16 or float32; by default that of the operands, bfloat16 for float8, int32 for int8
    without an epilogue, and float32 with one. cut: a Plan; by default the one that a model finds fastest.

    Gives the result. It is no function that autograd knows. CuteError for what it does not take.
    """
    for name, x in (("a", a), ("b", b)):
        entry.check("matmul", name, x, dtypes=OPERANDS, least_rank=2, last=False, like=a)
        if len(x.shape) > 3:
            raise CuteError(f"matmul: {name} is {entry.described(x)}; it must have 2 or 3 modes: reshape it")
    result = _result(a, b, epilogue, out, out_dtype)
    given = epilogue.given if epilogue else []
    stream = entry.pytorch().cuda.current_stream().cuda_stream
    key = key_of(a), key_of(b), key_of(result), epilogue and epilogue.key(key_of), cut, stream
    launch = known.get(key)
    if launch is None:
        _check(a, b, result, given)
        dtype = operands_of(a)
        ours = epilogue.moved(loose) if epilogue else None
        launch = remembered(key, loose(a), loose(b.mT), loose(result), dtype, ours, cut)
    launch()
    return result


def key_of(t: Any) -> Any:
    """Say where a tensor lies, and what it is. t: the tensor."""
    return t.data_ptr(), t.dtype, t.shape, t.stride(), t.device.index


def _result(a: Any, b: Any, epilogue: Epilogue | None, out: Any, out_dtype: Any) -> Any:
    """What is written to: `out`, if it fits, or a new tensor."""
    torch = entry.pytorch()
    if a.dtype != b.dtype or a.shape[-1] != b.shape[-2]:
        raise CuteError(
            f"matmul: a is {entry.described(a)} and b {entry.described(b)}; both must have the same elements, and a as "
            "many columns as b has rows"
        )
    batches = {x.shape[0] for x in (a, b) if len(x.shape) == 3}
    spread = epilogue.spread if epilogue else 1
    if len(batches) > 1 or b.shape[-1] % (16 if spread == 2 else 1) or 0 in (*a.shape, *b.shape):
        rule = (
            "have columns in two halves, each of a multiple of 8"
            if spread == 2 and len(batches) < 2
            else "not be empty"
        )
        rule = "have as many matrices as a" if len(batches) > 1 else rule
        raise CuteError(f"matmul: a is {entry.described(a)} and b {entry.described(b)}; b must {rule}")
    shape = (*batches, a.shape[-2], b.shape[-1] // spread)
    usual = {torch.int8: torch.float32 if epilogue else torch.int32}
    usual |= {torch.float8_e4m3fn: torch.bfloat16, torch.float8_e5m2: torch.bfloat16}
    dtype = out_dtype or (out.dtype if out is not None else usual.get(a.dtype, a.dtype))
    allowed = RESULT_TYPES if a.dtype != torch.int8 or epilogue else ("int32",)
    if out is None:
        out = torch.empty(shape, dtype=dtype, device=a.device)
    entry.check("matmul", "out", out, dtypes=allowed, shape=shape, last=False, like=a)
    if out.dtype != dtype:
        raise CuteError(f"matmul: out is {entry.described(out)}, and out_dtype {out_dtype}: leave one out")
    return out


def _check(a: Any, b: Any, c: Any, given: list[Any]) -> None:
    """What TMA and wgmma want of the tensors, and the epilogue of its own."""
    for name, x in (("a", a), ("b", b), ("out", c)):
        if not x.is_cuda:
            raise CuteError(f"matmul: {name} is {entry.described(x)}; give tensors on the GPU: .cuda()")
        unit = 16 // x.element_size()
        steps = [s for n, s in zip(x.shape, x.stride()) if n > 1]
        inner = {x.stride(-1): -1, x.stride(-2): -2}.get(1)
        if x.data_ptr() % 16 or inner is None or any(s % unit for s in steps if s != 1):
            raise CuteError(
                f"matmul: {name} is {entry.described(x)}; TMA wants it to begin at 16 bytes, one of its last two modes "
                f"to be contiguous, and its other strides to be multiples of {unit}: pad it, or give a copy"
            )
        along = {"a": -1, "b": -2}.get(name)
        if x.element_size() != 2 and along is not None and x.stride(along) != 1:
            turn = "a.contiguous()" if name == "a" else "b.mT.contiguous().mT"
            raise CuteError(
                f"matmul: {name} is {entry.described(x)}; wgmma takes elements of {8 * x.element_size()} bits "
                f"contiguous along K alone: give {turn}"
            )
    for x in given:
        x.check(c)


def operands_of(t: Any) -> Any:
    """Say as what a tensor's elements are multiplied: float32 as TF32. t: the tensor."""
    return cute.TFloat32 if entry.type_name(t) == "float32" else entry.element_type(t)


def remembered(
    key: Any, a: Any, b: Any, c: Any, dtype: Any, epilogue: Epilogue | None, cut: Plan | None
) -> Callable[[], None]:
    """Prepare a launch, and remember it by where its tensors lie, which it does not keep.

    key: ends with the stream. a, b, c, dtype, epilogue: as of `arguments`, of `Loose` tensors. cut: a Plan, or None
    for what the model finds."""
    cut = cut or plan(c, a.shape[-1], dtype, sms_here(), epilogue, c.dtype.width)
    most = utils.HardwareInfo().get_max_active_clusters(cut.sharers * cut.parts)
    scratch = _on_device(entry.pytorch().device("cuda")) if cut.splits > 1 else None
    args, grid = arguments(a, b, c, dtype, most, cut, epilogue, scratch, c.dtype)
    launch = cute.launch(kernel_of(cut), grid=grid, block=THREADS, pdl=True, stream=key[-1]).prepare(*args)
    if len(known) >= MOST:  # the oldest
        known.pop(next(iter(known)), None)
    known[key] = launch
    return launch  # type: ignore[no-any-return]


def loose(t: Any) -> Loose:
    """Say where a tensor of torch's lies. t: the tensor."""
    return Loose(t.data_ptr(), tuple(t.shape), tuple(t.stride()), entry.element_type(t))
