# SPDX-License-Identifier: Apache-2.0
"""Products of several GPUs of a host for PyTorch's tensors, started by torchrun: each is one kernel on each GPU, in
which the rows or the sums of the others travel while the tensor cores multiply."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba_cute as cute
from numba_cute import CuteError, utils
from numba_cute.runtime import from_symmetric

from .. import entry
from ..gemm.dense import THREADS
from ..gemm.entry import matmul
from ..gemm.epilogue import Epilogue, known_of
from ..gemm.operands import some_clusters, swapped, view
from ..gemm.plan import kernel_of
from ..memo import remembered
from . import plan
from .bringing import USUAL
from .checks import check_operands, cut_of, of_ranks, result_of
from .spaces import LAUNCHES, Gathering, Group, Summing, address_of, group_of, space

if TYPE_CHECKING:
    import torch

TURNED = (
    "call it in a torch.autograd.Function, as examples/fully_sharded.py does: what gathers forward adds up backward, "
    "and the other way round"
)
OF_A, OF_B, OF_C, OF_EPILOGUE, TOTALS = (2, 3), (4, 5), (6, 7), (16, 17, 18), 22
"""The GEMM's arguments that are made of A, of B, and so on."""


def all_gather_matmul(
    a: torch.Tensor, b: torch.Tensor, group: Any = None, *, epilogue: Epilogue | None = None,
    out: torch.Tensor | None = None, out_dtype: Any = None, cut: Any = None,
) -> torch.Tensor:  # fmt: skip
    """Multiply all ranks' rows by this rank's matrix: torch.cat of every rank's `a`, in their order, @ b. One kernel on
    each GPU (Hopper, of one host) brings the others' rows over NVLink while it multiplies those that are there. All
    ranks of the group call it.

    a: (M / ranks, K), bfloat16 or float16, contiguous, in symmetric memory: allocate it by
    torch.distributed._symmetric_memory.empty, once, and write each step's rows to it. When the result is there the
    others have read it, and it may be written again on this stream. b: (K, N) of the same type, contiguous along either
    mode, in rows of multiples of 16 bytes; N may differ by rank. group: of torch.distributed; None for the default one.
    epilogue: as of `matmul`, of all M rows. out: (M, N), what is written to. out_dtype: if it is not given: that of
    `a`, torch.bfloat16, float16 or float32. cut: a Plan of a GEMM; by default the one that a model finds fastest.

    Gives the result, (M, N). Of a group of one it is `matmul`. The first call for a shape makes memory on all ranks;
    later ones can be captured in a CUDA graph. Launches of a group run one after the other. No gradients. A rank that
    does not come within 20 seconds gives the others a PeerError. CuteError for what it does not take.
    """
    what = "all_gather_matmul"
    given = epilogue.tensors if isinstance(epilogue, Epilogue) else []
    entry.refuse_gradients(what, [a, b, out, *given], TURNED)
    own = group_of(group, what)
    if own.world == 1:
        return matmul(a, b, epilogue=epilogue, out=out, out_dtype=out_dtype, cut=cut)
    make = lambda: _gathering(what, a, b, own, epilogue, out, out_dtype, cut)  # noqa: E731
    static = what, own.name, address_of(a), known_of(epilogue), out_dtype, cut
    return _run(remembered(LAUNCHES, [a, b, out, *given], static, make), a, b, out, given)


def _run(known: Any, a: Any, b: Any, out: Any, given: list[Any]) -> Any:
    launch, empty = known
    out = empty() if out is None else out
    launch(a, b, out, *given)
    return out


def _gathering(
    what: str, a: Any, b: Any, own: Group, epilogue: Epilogue | None, out: Any, out_dtype: Any, cut: Any
) -> tuple[Callable[..., None], Callable[[], Any]]:
    """Give what launches on a, b, a result and the epilogue's tensors like these, and what makes such a result."""
    check_operands(what, a, b)
    if epilogue is not None and not isinstance(epilogue, Epilogue):
        raise CuteError(f"{what}: epilogue is {entry.described(epilogue)}; give an Epilogue, or None")
    spread = epilogue.spread if epilogue else 1
    (rows, k), n, world = a.shape, b.shape[1] // spread, own.world
    shape = (world * rows, n)
    dtype, out = result_of(what, a, shape, out, out_dtype)
    empty = _maker(a, shape, dtype)
    like = empty() if out is None else out
    peers = from_symmetric(a, own.group, assumed_align=16)
    memory: Gathering = space(Gathering, own, a, rows, k, a.dtype, a.device)
    kind, c_dtype, form = entry.element_type(a), entry.element_type(like), epilogue and epilogue.form
    cut = cut_of(
        what, like.view(world, rows, n), k, kind, entry.multiprocessors(a), epilogue, c_dtype.width, USUAL.memory, cut
    )  # fmt: skip
    most, rank, signals, room, slots = _clusters(what, a, cut), own.rank, memory.signals, memory.room, USUAL

    def made(b: Any, c: Any, *given: Any) -> Any:
        own = Epilogue.of(form, given) if form else None
        return plan.all_gather_matmul(
            peers, swapped(view(b, 16)), c, kind, rank, signals, room, most, cut, own, c_dtype, slots
        )[1:]  # fmt: skip

    def seen(b: Any, c: Any, *given: Any) -> tuple[Any, ...]:
        by_rank = of_ranks(Epilogue.of(form, given), c, world) if form else ()
        return b, c.unflatten(0, (world, rows)), *by_rank

    tensors = b, like, *(epilogue.tensors if epilogue else ())
    launch = launcher(kernel_of(cut), made, (*OF_B, *OF_C, *OF_EPILOGUE), memory, seen(*tensors))
    return lambda a, *tensors: launch(*seen(*tensors)), empty


def _maker(a: Any, shape: tuple[int, ...], dtype: Any) -> Callable[[], Any]:
    """Give what makes a result where `a` lies."""
    empty, device = entry.pytorch().empty, a.device
    return lambda: empty(shape, dtype=dtype, device=device)


def _clusters(what: str, a: Any, cut: Any) -> int:
    """Count the clusters of a cut that run at once where `a` lies."""
    count = utils.HardwareInfo(a.device.index).get_max_active_clusters(cut.sharers)
    return int(some_clusters(f"{what}: {cut}", count, cut.sharers))


def launcher(
    kernel: Any, made: Callable[..., Any], varies: tuple[int, ...], memory: Any, tensors: tuple[Any, ...],
    block: int = THREADS, cluster: Any = None, pdl: bool = False,
) -> Callable[..., None]:  # fmt: skip
    """Give what launches a kernel. made: gives its arguments, and its grid, of tensors like those given. varies: which
    of the arguments are made of them. memory: the `Space` that it works in, of which the others are made once. block:
    threads of a block. cluster: of blocks, if the kernel does not say it. pdl: whether it begins while the one before
    it ends, for which it waits itself."""
    arguments, grid = made(*tensors)
    fixed = [None if i in varies else x for i, x in enumerate(arguments)]

    @cute.runtime.remembered
    def of(*tensors: Any) -> Any:
        arguments = made(*tensors)[0]
        return tuple(arguments[i] for i in varies)

    bound = cute.launch(kernel, grid=grid, block=block, cluster=cluster, pdl=pdl)

    def launch(*tensors: Any) -> None:
        memory.enter(tensors[0])
        arguments = [*fixed]
        for i, x in zip(varies, of(*tensors) if varies else ()):
            arguments[i] = x
        bound(*arguments)

    return launch


def matmul_reduce_scatter(
    a: torch.Tensor, b: torch.Tensor, group: Any = None, *, out: torch.Tensor | None = None, out_dtype: Any = None,
    cut: Any = None,
) -> torch.Tensor:  # fmt: skip
    """Add all ranks' products a @ b up, and give each rank its rows of the sum. One kernel on each GPU (Hopper, of one
    host) sends each tile of its product to the rank that owns the rows as soon as it is made, and makes tiles of its
    own rows in between, to which it adds the others' parts, in the same order in every run. All ranks of the group call
    it.

    a: (M, K / ranks), bfloat16 or float16, contiguous; M is a multiple of the ranks. b: (K / ranks, N) of the same
    type, contiguous along either mode, in rows of multiples of 16 bytes. group: of torch.distributed; None for the
    default one. out: (M / ranks, N), what is written to. out_dtype: if it is not given: that of `a`, torch.bfloat16,
    float16 or float32, in which others' parts travel too, and are rounded to; they are added in float32. cut: a Plan of
    a GEMM; by default the one that a model finds fastest.

    Gives this rank's rows. Of a group of one it is `matmul`. What is said of `all_gather_matmul` about the first call,
    graphs, gradients and ranks that do not come holds here.
    """
    what = "matmul_reduce_scatter"
    entry.refuse_gradients(what, [a, b, out], TURNED)
    own = group_of(group, what)
    if own.world == 1:
        return matmul(a, b, out=out, out_dtype=out_dtype, cut=cut)
    return _of_parts(what, a, b, own, SCATTER, out, out_dtype, cut)


def matmul_all_reduce(
    a: torch.Tensor, b: torch.Tensor, group: Any = None, *, algorithm: str | None = None,
    out: torch.Tensor | None = None, out_dtype: Any = None, cut: Any = None,
) -> torch.Tensor:  # fmt: skip
    """Add all ranks' products a @ b up, and give each rank the whole sum. One kernel on each GPU (Hopper, of one host)
    sends each tile of its product as soon as it is made; parts are added in one order, so that every run, and every
    rank, has the same. All ranks of the group call it.

    a: (M, K / ranks), b: (K / ranks, N): as of `matmul_reduce_scatter`. algorithm: "one_shot": every tile goes to all
    ranks, each of which adds all up; for little. "two_shot": to the rank that owns its rows, which adds them up, and
    writes the sums to all; M is a multiple of the ranks. By default one shot for results of up to 1 MiB, or 16 MiB of
    two ranks, and for other M. out: (M, N), what is written to. group, out_dtype, cut: as of `matmul_reduce_scatter`.

    Gives the sum, (M, N). Of a group of one it is `matmul`. What is said of `all_gather_matmul` about the first call,
    graphs, gradients and ranks that do not come holds here.
    """
    what = "matmul_all_reduce"
    entry.refuse_gradients(what, [a, b, out], TURNED)
    own = group_of(group, what)
    if algorithm not in (None, *SHOTS):
        raise CuteError(f'{what}: algorithm {algorithm!r} must be "one_shot" or "two_shot", or None')
    if own.world == 1:
        return matmul(a, b, out=out, out_dtype=out_dtype, cut=cut)
    return _of_parts(what, a, b, own, algorithm, out, out_dtype, cut)


SCATTER, SHOTS = "scatter", ("one_shot", "two_shot")
LITTLE, LITTLE_OF_TWO = 1 << 20, 1 << 24
"""Bytes of a result that is added up in one shot: of two ranks it sends no more than two shots do."""


def _of_parts(what: str, a: Any, b: Any, own: Group, way: Any, out: Any, out_dtype: Any, cut: Any) -> Any:
    """Multiply, and add up in a way: SCATTER, one of SHOTS, or None for the usual one of these."""
    make = lambda: _summing(what, a, b, own, way, out, out_dtype, cut)  # noqa: E731
    return _run(remembered(LAUNCHES, [a, b, out], (what, own.name, way, out_dtype, cut), make), a, b, out, [])


def _summing(
    what: str, a: Any, b: Any, own: Group, way: Any, out: Any, out_dtype: Any, cut: Any
) -> tuple[Callable[..., None], Callable[[], Any]]:
    """Give what launches on a, b and a result like these, and what makes such a result."""
    check_operands(what, a, b)
    (m, k), n, world = a.shape, b.shape[1], own.world
    whole = way != SCATTER
    if way is None:
        little = LITTLE_OF_TWO if world == 2 else LITTLE
        way = SHOTS[m % world == 0 and m * n * a.element_size() > little]
    once = way == "one_shot"
    if m % world and not once:
        raise CuteError(
            f"{what}: a has {m} rows, and each of {world} ranks owns the same number: pad a to a multiple of "
            f"{world}" + (', or give algorithm="one_shot"' if whole else "")
        )
    rows = m if once else m // world
    shape = (m if whole else rows, n)
    dtype, out = result_of(what, a, shape, out, out_dtype)
    empty = _maker(a, shape, dtype)
    like = empty() if out is None else out
    kind, c_dtype, by_owner = entry.element_type(a), entry.element_type(like), None if once else (world, rows)
    model = like if once else like[:rows].expand(world, rows, n)
    cut = cut_of(what, model, k, kind, entry.multiprocessors(a), None, c_dtype.width, 0, cut)
    slots = plan.slots_of(rows, n, cut.tile_n, way == "two_shot")
    if slots >= 1 << 16:
        raise CuteError(f"{what}: {rows} rows of {n} columns on each rank are too many: multiply fewer rows at a time")
    memory: Summing = space(Summing, own, a, rows, n, way == "two_shot", slots, dtype, a.device, what)
    most, rank, signals, parts, shared = _clusters(what, a, cut), own.rank, memory.signals, memory.parts, memory.shared

    def made(a: Any, b: Any, c: Any) -> Any:
        b = swapped(view(b, 16))
        if not whole:
            return plan.matmul_reduce_scatter(a, b, c, parts, kind, rank, signals, most, cut, c_dtype)[1:]
        return plan.matmul_all_reduce(a, b, c, parts, shared, kind, rank, signals, most, cut, c_dtype)[1:]

    def seen(a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
        if by_owner is None:
            return a, b, c
        return a.unflatten(0, by_owner), b, c.unflatten(0, by_owner) if whole else c

    launch = launcher(kernel_of(cut), made, (*OF_A, *OF_B, TOTALS), memory, seen(a, b, like), pdl=True)
    return lambda a, b, c: launch(*seen(a, b, c)), empty
