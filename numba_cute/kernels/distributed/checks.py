# SPDX-License-Identifier: Apache-2.0
"""Check what the products of several GPUs are given, and choose how they are cut."""

from __future__ import annotations

from typing import Any

from numba_cute import CuteError

from .. import entry
from ..gemm import plan
from ..gemm.epilogue import Epilogue, Given
from ..gemm.operands import check_rows, view

OPERANDS = ("bfloat16", "float16")
RESULTS = ("bfloat16", "float16", "float32")


def check_operands(what: str, a: Any, b: Any) -> None:
    """Refuse operands that the kernels do not take. a: (M, K), b: (K, N)."""
    for name, x in (("a", a), ("b", b)):
        entry.check(what, name, x, dtypes=OPERANDS, rank=2, last=name == "a", like=a)
        if not x.is_cuda:
            raise CuteError(
                f"{what}: {name} is {entry.described(x)}; give tensors on the rank's GPU. In the simulator run the "
                "kernels of all ranks at once: numba_cute.kernels.distributed.plan has them"
            )
    entry.check_target(what, a, entry.WARPGROUPS)
    if a.dtype != b.dtype or a.shape[1] != b.shape[0]:
        raise CuteError(
            f"{what}: a is {entry.described(a)} and b {entry.described(b)}; both must have one element type, and a as "
            "many columns as b has rows"
        )
    if 0 in (*a.shape, *b.shape):
        raise CuteError(f"{what}: a is {entry.described(a)} and b {entry.described(b)}: give some elements")
    if 1 not in b.stride():
        raise CuteError(f"{what}: b is {entry.described(b)}; one of its modes must be contiguous: give b.contiguous()")
    check_rows(what, a=a, b=b)


def result_of(what: str, a: Any, shape: tuple[int, ...], out: Any, out_dtype: Any) -> tuple[Any, Any]:
    """Give the type of the result, and `out` if it fits. CuteError where it does not."""
    dtype = out_dtype or (out.dtype if out is not None else a.dtype)
    if str(dtype).removeprefix("torch.") not in RESULTS:
        raise CuteError(f"{what}: out_dtype {dtype}: give one of {', '.join(RESULTS)}")
    unit = 16 // dtype.itemsize
    if shape[1] % unit:
        raise CuteError(
            f"{what}: the result has {shape[1]} columns of {dtype}, and must have a multiple of {unit}: pad b with "
            "columns of zeros"
        )
    if out is not None:
        entry.check(what, "out", out, dtypes=(str(dtype).removeprefix("torch."),), shape=shape, like=a)
        check_rows(what, out=out)
    return dtype, out


def cut_of(
    what: str, c: Any, k: int, dtype: Any, sms: int, epilogue: Epilogue | None, width: int, beside: int, cut: Any
) -> plan.Plan:  # fmt: skip
    """Choose the cut: of those without parts of K the one that the model finds fastest, or the one that is given. c:
    (GPUs, rows, N). beside: bytes of shared memory that the exchange takes. The others: as of `plan.plan`."""
    if cut is not None and (not isinstance(cut, plan.Plan) or cut.parts * cut.splits > 1 or cut.turned or cut.kept):
        raise CuteError(f"{what}: cut is {cut!r}; give a Plan of tile_n, sharers, stages and slots alone, or None")
    c, spread = view(c), epilogue.spread if epilogue else 1
    found = [cut] if cut else plan.cuts(c, k, dtype, epilogue, width)
    fit = [x for x in found if x.parts * x.splits == 1 and not x.turned and _fits(x, width, epilogue, beside)]
    if not fit:
        raise CuteError(f"{what}: {cut}: shared memory has no room for it: give a narrower tile_n, or leave cut out")
    best: plan.Plan = plan.fastest(fit, plan.few().__contains__, lambda x: plan.modelled(x, c, k, dtype, sms, spread))
    return best


def _fits(cut: plan.Plan, width: int, epilogue: Epilogue | None, beside: int) -> bool:
    try:
        plan.pieces_of(cut, width, *plan.room_of(epilogue), beside)
    except CuteError:
        return False
    return True


def of_ranks(epilogue: Epilogue | None, out: Any, world: int) -> list[Any]:
    """View an epilogue's tensors with a mode of the GPUs whose rows they are of. out: the result. CuteError for what
    does not fit it."""
    given = epilogue.given if epilogue else []
    for x in given:
        x.check_as_it_lies(out)
    return [_of_ranks(x, world) for x in given]


def _of_ranks(x: Given, world: int) -> Any:
    if x.along not in ("rows", "both"):
        return x.tensor
    return x.tensor.unflatten(0, (world, x.tensor.shape[0] // world))
