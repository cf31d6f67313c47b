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
from .operands import swapped, view
from .plan import RESULTS, USUAL, Plan, arguments, cuts, kernel_of, modelled, plan, scratch_of

OPERANDS = ("bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2", "int8")
RESULT_TYPES = ("bfloat16", "float16", "float32")
MOST = 4096  # problems that are remembered
_known: dict[Any, tuple[Callable[..., None], Callable[[], Any]]] = {}


def simulate(
    a: Any, b: Any, c: Any, dtype: Any, cut: Plan = USUAL, epilogue: Epilogue | None = None, clusters: int = 1,
    c_dtype: Any = None, **options: Any,
) -> None:  # fmt: skip
    """Run the GEMM in the simulator on NumPy's arrays. a, b, c, dtype, cut, epilogue, c_dtype: as of `arguments`.
    clusters: that fit on the device. options: those of `cute.simulate`."""
    sums, counts = scratch_of(c, cut, clusters, epilogue)
    memory = np.full(sums, np.nan, np.float32), np.zeros(counts, np.int32)
    args, grid = arguments(a, b, c, dtype, clusters, cut, epilogue, memory, c_dtype)
    cute.simulate(kernel_of(cut), **options)[grid, THREADS](*args)


def launch_of(
    a: Any, b: Any, c: Any, dtype: Any, cut: Plan, epilogue: Epilogue | None = None, c_dtype: Any = None
) -> Callable[[], None]:
    """Prepare a launch of the GEMM for arrays of the device: call it as often as you like. a, b, c, dtype, cut,
    epilogue, c_dtype: as of `arguments`. It overlaps with the launch before it (programmatic dependent launch)."""
    memory = scratch(c, scratch_of(c, cut, clusters_here(cut), epilogue)) if cut.splits > 1 else None
    args, grid = arguments(a, b, c, dtype, clusters_here(cut), cut, epilogue, memory, c_dtype)
    return cute.launch(kernel_of(cut), grid=grid, block=THREADS, pdl=True).prepare(*args)  # type: ignore[no-any-return]


def launcher(
    a: Any, b: Any, c: Any, dtype: Any, epilogue: Epilogue | None = None, c_dtype: Any = None, parts: int | None = None
) -> Callable[[], None]:
    """Prepare a launch, cut as `plan` finds best. parts: into how many K is split. The others: as of `arguments`."""
    width = (c_dtype or RESULTS[dtype]).width
    cut = plan(c, a.shape[-1], dtype, sms_here(), epilogue, width, parts)
    return launch_of(a, b, c, dtype, cut, epilogue, c_dtype)


def scratch(c: Any, counts: tuple[int, int]) -> tuple[Any, Any]:
    """Make the memory by which splits add their sums, where `c` lies. counts: as of `scratch_of`."""
    torch, (sums, tiles) = entry.pytorch(), counts
    return torch.empty(sums, device=c.device), torch.zeros(tiles, device=c.device, dtype=torch.int32)


def clusters_here(cut: Plan) -> int:
    """Count the clusters of a cut that fit on the current device."""
    return int(utils.HardwareInfo().get_max_active_clusters(cut.sharers * cut.parts))


def sms_here() -> int:
    """Count the SMs of the current device."""
    return int(utils.HardwareInfo().get_device_multiprocessor_count())


@cute.autotune(
    lambda a, b, c, dtype: [c._asdict() for c in cuts(c, a.shape[-1], dtype)],
    cost=lambda cut, given: modelled(Plan(**cut), given["c"], given["a"].shape[-1], given["dtype"], sms_here()),
    makes_launch=True,
)
def tuned(a: Any, b: Any, c: Any, dtype: Any, tile_n: int = 256, sharers: int = 2, parts: int = 1, splits: int = 1,
          turned: bool = False, stages: int = 0, slots: int = 0, tail: bool = False, kept: int = 0) -> Any:  # fmt: skip
    """Prepare a launch, cut as measurements find best; `tuned.tune(a, b, c, dtype)` shows them. a, b, c, dtype: as of
    `arguments`. The others: those of a Plan."""
    return launch_of(a, b, c, dtype, Plan(tile_n, sharers, parts, splits, turned, stages, slots, tail, kept))


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

    Gives the result. It has no gradients: of tensors that require them it is called under torch.no_grad(). CuteError
    for what it does not take.
    """
    form, given = (epilogue.form, epilogue.tensors) if isinstance(epilogue, Epilogue) else (epilogue, [])
    tensors = [a, b, out, *given]
    entry.refuse_gradients("matmul", tensors)
    key: Any = None
    try:
        key = (entry.simulated(), *entry.kinds(tensors), form, out_dtype, cut)
        known = _known.get(key)
    except (AttributeError, TypeError):  # some are no tensors, which is refused in words
        known = None
    if known is None:
        known = _prepared(a, b, out, out_dtype, epilogue, cut)
        if len(_known) >= MOST:
            _known.pop(next(iter(_known)), None)
        _known[key] = known
    launch, empty = known
    tensors[2] = out = empty() if out is None else out
    launch(*[t.detach() if t.requires_grad else t for t in tensors])
    return out


def _result(a: Any, b: Any, epilogue: Any, out: Any, out_dtype: Any, cut: Any) -> Any:
    """What is written to: `out`, if it fits, or a new tensor. What does not fit is refused."""
    torch = entry.pytorch()
    for name, x in (("a", a), ("b", b)):
        entry.check("matmul", name, x, dtypes=OPERANDS, least_rank=2, last=False, like=a)
        if len(x.shape) > 3:
            raise CuteError(f"matmul: {name} is {entry.described(x)}; it must have 2 or 3 modes: reshape it")
    if epilogue is not None and not isinstance(epilogue, Epilogue):
        raise CuteError(f"matmul: epilogue is {entry.described(epilogue)}; give an Epilogue, or None")
    if cut is not None and not isinstance(cut, Plan):
        raise CuteError(f"matmul: cut is {entry.described(cut)}; give a Plan, or None")
    if a.dtype != b.dtype or a.shape[-1] != b.shape[-2]:
        raise CuteError(
            f"matmul: a is {entry.described(a)} and b {entry.described(b)}; both must have the same elements, and a as "
            "many columns as b has rows"
        )
    batches = {x.shape[0] for x in (a, b) if len(x.shape) == 3}
    spread = epilogue.spread if epilogue else 1
    rule = (
        "have as many matrices as a" if len(batches) > 1
        else "not be empty" if 0 in (*a.shape, *b.shape)
        else "have columns in two halves, each of a multiple of 8" if spread == 2 and b.shape[-1] % 16
        else ""
    )  # fmt: skip
    if rule:
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
        entry.check_place("matmul", name, x)
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


class Splits:
    """The memory of a problem's splits: for each stream some, for launches on one stream follow each other. counts: as
    of `scratch_of`."""

    def __init__(self, cut: Plan, counts: tuple[int, int]) -> None:
        self.split, self.counts = cut.splits > 1, counts
        self.known: dict[int, tuple[Any, Any]] = {}

    def __call__(self, c: Any) -> tuple[Any, ...]:
        """Give that of the current stream, for a result like `c`; nothing, where nothing is split."""
        if not self.split:
            return ()
        if not c.is_cuda or entry.capturing(c):  # a graph has its own, which it makes zero
            return scratch(c, self.counts)
        stream = entry.stream_of(c)
        if stream not in self.known:
            self.known[stream] = scratch(c, self.counts)
        return self.known[stream]


def _prepared(
    a: Any, b: Any, out: Any, out_dtype: Any, epilogue: Epilogue | None, cut: Plan | None
) -> tuple[Callable[..., None], Callable[[], Any]]:
    """Check what `matmul` was given, and plan it for all that is like it: give what launches on a, b, a result, and the
    epilogue's tensors, and what makes such a result."""
    c = _result(a, b, epilogue, out, out_dtype, cut)
    entry.check_target("matmul", a)
    if out is None and c.shape[-1] * c.element_size() % 16:
        raise CuteError(
            f"matmul: b is {entry.described(b)}; rows of the result, of {c.shape[-1]} elements, must be multiples of "
            f"16 bytes: pad its columns, or give an out= whose rows have room"
        )
    _check(a, b, c, epilogue.given if epilogue else [])
    dtype, c_dtype = operands_of(a), entry.element_type(c)
    ours = cut or plan(c, a.shape[-1], dtype, sms_here(), epilogue, c_dtype.width)
    launch = launch_on((a, b, c), lambda a, b, c: (a, swapped(view(b, 16)), c), dtype, ours, epilogue)
    shape, torch_type, device, empty = tuple(c.shape), c.dtype, c.device, entry.pytorch().empty
    return launch, lambda: empty(shape, dtype=torch_type, device=device)


def operands_of(t: Any) -> Any:
    """Say as what a tensor's elements are multiplied: float32 as TF32. t: the tensor."""
    return cute.TFloat32 if entry.type_name(t) == "float32" else entry.element_type(t)


def launch_on(
    tensors: tuple[Any, Any, Any], place: Callable[[Any, Any, Any], tuple[Any, Any, Any]], dtype: Any, cut: Plan,
    epilogue: Epilogue | None = None,
) -> Callable[..., None]:  # fmt: skip
    """Give what launches the GEMM on tensors like some: two operands, a result, and the epilogue's.

    tensors: the first three. place: gives of them a, b and c as of `arguments`. dtype, cut, epilogue: as there."""
    form, count = epilogue and epilogue.form, len(epilogue.tensors) if epilogue else 0
    c_dtype, most = entry.element_type(tensors[2]), clusters_here(cut)
    splits = Splits(cut, scratch_of(place(*[t.detach() for t in tensors])[2], cut, most, epilogue))

    @cute.runtime.remembered
    def made(x: Any, y: Any, z: Any, *others: Any) -> Any:
        own = Epilogue.of(form, others[:count]) if form else None
        return arguments(*place(x, y, z), dtype, most, cut, own, others[count:], c_dtype)

    given = [t.detach() for t in (*tensors, *(epilogue.tensors if epilogue else ()))]
    bound = cute.launch(kernel_of(cut), grid=made(*given, *splits(given[2]))[1], block=THREADS, pdl=True)

    def launch(x: Any, y: Any, z: Any, *given: Any) -> None:
        others = [t.detach() if t is z else t for t in given]  # no object comes twice: else nothing is remembered
        bound(*made(x, y, z, *others, *splits(z))[0])

    return launch
