# SPDX-License-Identifier: Apache-2.0
"""Experts that are spread over the GPUs of a host, for PyTorch's tensors: each token's row goes to the GPUs of its
experts while these multiply, and comes back to be added up as they make it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numba_cute import CuteError

from .. import entry
from ..gemm import grouped
from ..gemm.dense import THREADS
from ..gemm.epilogue import Epilogue, known_of
from ..gemm.grouped_entry import check_epilogue
from ..gemm.operands import check_rows, most_clusters, some_clusters
from ..memo import remembered
from . import experts_plan, routes
from .experts_plan import Extents
from .launches import launcher
from .spaces import Routing, group_of

if TYPE_CHECKING:
    import torch

WHAT = "ExpertParallel"
OF_B, OF_C, OF_EPILOGUE, OF_A, TOTALS = (4, 5), (6, 7), 20, (2, 3), 23
"""The grouped GEMM's arguments that are made of B, and so on."""
WEIGHTS = ("float32", "bfloat16", "float16")
MOST_ROWS = 1 << 31


class ExpertParallel:
    """Experts of a layer, of which each GPU of a host (Hopper) has as many: a mixture of experts in two products, each
    in one kernel in which rows travel over NVLink while the tensor cores multiply. All ranks of the group make it, and
    call its methods in the same order.

    tokens: of a rank, at most; a call may have fewer, or none. hidden: elements of a token's row, a multiple of 8.
    topk: experts of a token. experts: of all ranks, which have as many each: rank r those from r * experts / ranks on.
    group: of torch.distributed, of two ranks or more; None for the default one. capacity: rows that may come to a rank,
    by default as many as there can be, tokens * topk * ranks: there is memory on each rank for them, (capacity,
    hidden), beside that for its own tokens and for what comes back of them, (tokens * topk, hidden). dtype:
    torch.bfloat16, as by default, or float16.

        experts = ExpertParallel(4096, 7168, topk=8, experts=256)
        h = experts.dispatch_matmul(x, indices, up, epilogue=swiglu())
        y = experts.matmul_combine(h, down, weights)

    Where rows go is found on the GPUs: the host waits for nothing, and calls can be captured in a CUDA graph, once they
    were made before. No row is dropped in silence. If more come to a rank than it has room for, all that
    `matmul_combine` gives is NaN, on all ranks; if indices name an expert that there is not, what it gives for those
    tokens; and `check` and the next call raise a CuteError that says it. A rank that does not come within 20 seconds
    gives the others a PeerError. No gradients. CuteError for what it does not take.
    """

    def __init__(
        self, tokens: int, hidden: int, topk: int, experts: int, group: Any = None, *, capacity: int | None = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        own = group_of(group, WHAT)
        self.extents = check_extents(own.world, tokens, hidden, topk, experts, capacity)
        torch = entry.pytorch()
        dtype = dtype or torch.bfloat16
        if dtype not in (torch.bfloat16, torch.float16):
            raise CuteError(f"{WHAT}: dtype is {dtype}; give torch.bfloat16 or torch.float16")
        device = torch.device("cuda", torch.cuda.current_device())
        self._memory = Routing(own, self.extents, dtype, device)
        entry.check_target(WHAT, self._memory.x, entry.WARPGROUPS)
        self._rank, self._sms = own.rank, entry.multiprocessors(self._memory.x)
        self._launches: dict[Any, Any] = {}
        self._routed: int | None = None

    @property
    def x(self) -> torch.Tensor:
        """The memory that other ranks read tokens from, (tokens, hidden): a call copies its `x` there, unless that lies
        there, as `experts.x[:n]` does."""
        return self._memory.x

    @property
    def ends(self) -> torch.Tensor:
        """The row after the last one of each of this rank's experts, of the call before: (experts / ranks,), int32."""
        return self._memory.room.ends

    def dispatch_matmul(
        self, x: torch.Tensor, indices: torch.Tensor, w: torch.Tensor, *, epilogue: Epilogue | None = None,
        out: torch.Tensor | None = None, cut: Any = None,
    ) -> torch.Tensor:  # fmt: skip
        """Bring the rows of all ranks' tokens that go to this rank's experts, and multiply each by its expert's matrix.

        x: (n, hidden), this rank's tokens. indices: (n, topk), int32 or int64, contiguous: the experts of each; below 0
        for none. w: (experts / ranks, N, hidden), contiguous along the last mode or the one before; N may differ by
        rank. epilogue: what becomes of the products, as of `grouped_gemm`. out: (capacity, N after the epilogue), to
        write to. cut: as of `grouped_gemm`. Gives that: rows sorted by expert, of an expert those of this rank's
        tokens, then the next one's, and around, in the order of tokens; what is after `ends[-1]` is left as it is.
        """
        what = f"{WHAT}.dispatch_matmul"
        given = epilogue.tensors if isinstance(epilogue, Epilogue) else []
        entry.refuse_gradients(what, [x, w, out, *given])
        self._refuse()
        route = remembered(self._launches, [x, indices], (what, "route"), lambda: self._routing(what, x, indices))
        launch, empty = remembered(
            self._launches, [w, out, *given], (what, known_of(epilogue), cut),
            lambda: self._first(what, w, epilogue, out, cut),
        )  # fmt: skip
        self._route(route, x, indices)
        h = empty() if out is None else out
        launch(w, h, *given)
        return h

    def matmul_combine(
        self, h: torch.Tensor, w: torch.Tensor, weights: torch.Tensor, *, out: torch.Tensor | None = None,
        cut: Any = None,
    ) -> torch.Tensor:  # fmt: skip
        """Multiply each row by its expert's matrix, send it back to its token's rank, and add up a token's rows, each
        times its weight. They are rounded to their type when they travel, and added in float32 in the order of the
        token's indices: every run gives the same.

        h: (capacity, K), rows as the last `dispatch_matmul` has put them. w: (experts / ranks, hidden, K), as there.
        weights: (n, topk), float32, bfloat16 or float16, of that call's tokens. out: (n, hidden), to write to. cut: as
        there. Gives the sums; a token without an expert has 0.
        """
        what = f"{WHAT}.matmul_combine"
        entry.refuse_gradients(what, [h, w, weights, out])
        make = lambda: self._second(what, h, w, weights, out, cut)  # noqa: E731
        launch, empty = remembered(self._launches, [h, w, weights, out], (what, self._routed, cut), make)
        y = empty() if out is None else out
        launch(h, w, weights, y)
        return y

    def dispatch(self, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        """Bring the rows of all ranks' tokens that go to this rank's experts, without a product, for what follows.

        x, indices: as of `dispatch_matmul`. Gives (capacity, hidden), rows as there: memory that the next call writes.
        """
        what = f"{WHAT}.dispatch"
        entry.refuse_gradients(what, [x])
        self._refuse()
        route = remembered(self._launches, [x, indices], (what,), lambda: self._routing(what, x, indices))
        launch = remembered(self._launches, [], (what,), self._bringing)
        self._route(route, x, indices)
        launch(self.x)
        return self._memory.room.here

    def combine(self, h: torch.Tensor, weights: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
        """Send each row back to its token's rank, and add up a token's rows, each times its weight, as `matmul_combine`
        does, without a product.

        h: (capacity, hidden), rows as the last `dispatch` or `dispatch_matmul` has put them. weights, out: as of
        `matmul_combine`. Gives the sums.
        """
        what = f"{WHAT}.combine"
        entry.refuse_gradients(what, [h, weights, out])
        make = lambda: self._sending(what, h, weights, out)  # noqa: E731
        launch, empty = remembered(self._launches, [h, weights, out], (what, self._routed), make)
        y = empty() if out is None else out
        launch(h, weights, y)
        return y

    def check(self) -> None:
        """Wait for what was launched, and raise the error of it, if there was one: on all ranks, if all call it, which
        may go on then."""
        signals = self._memory.signals
        try:
            entry.pytorch().cuda.synchronize(self._memory.x.device)
        except RuntimeError:
            signals.check()  # which knows why
            raise
        signals.check()
        self._refuse()

    # ------------------------------------------------------------------ what is launched
    def _refuse(self) -> None:
        """Raise what a kernel has written that it was not able to do."""
        report = self._memory.room.report
        said = refused(report, self.extents)
        if said:
            report[:] = 0
            raise CuteError(said)

    def _route(self, launch: Callable[..., None], x: Any, indices: Any) -> None:
        """Let all ranks find where rows go."""
        rows, memory = x.shape[0], self._memory
        if rows and x.data_ptr() != memory.x.data_ptr():
            memory.enter(x)
            memory.x[:rows].copy_(x)
        launch(indices)
        self._routed = rows

    def _routing(self, what: str, x: Any, indices: Any) -> Callable[..., None]:
        """Give what launches the kernel that finds where rows go."""
        memory, extents = self._memory, self.extents
        check_tokens(what, x, indices, extents, memory.x)

        def plan(indices: Any) -> Any:
            return experts_plan.route(
                indices, memory.sorted, extents, memory.room, self._rank, memory.signals, self._sms
            )

        kernel, _, _, block = plan(indices)
        return launcher(kernel, lambda x: plan(x)[1:3], (0,), memory, (indices,), block)

    def _first(self, what: str, w: Any, epilogue: Any, out: Any, cut: Any) -> tuple[Callable[..., None], Any]:
        """Give what brings and multiplies, and what makes its result."""
        memory, extents, torch = self._memory, self.extents, entry.pytorch()
        here, ends, form = memory.room.here, memory.room.ends, epilogue and epilogue.form
        check_matrices(what, w, extents, extents.hidden, None, memory.x)
        grouped.check_groups(what, here, w, ends, grouped.KINDS[:2])
        if epilogue is not None:
            check_epilogue(what, epilogue, here, w, extents.capacity)
        shape = extents.capacity, w.shape[1] // (epilogue.spread if epilogue else 1)
        dtype, device = here.dtype, here.device
        entry.check(what, "out", out, dtypes=(entry.type_name(here),), shape=shape, like=here, optional=True)

        def empty() -> Any:
            return torch.empty(shape, dtype=dtype, device=device)

        like = empty() if out is None else out
        check_rows(what, w=w, out=like)
        cut, most = self._cut(what, w, cut)

        def plan(w: Any, h: Any, *given: Any) -> Any:
            own = Epilogue.of(form, given) if form else None
            return experts_plan.dispatch_matmul(
                memory.tokens, w, h, extents, memory.room, self._rank, memory.signals, most, cut, own
            )

        tensors = w, like, *(epilogue.tensors if epilogue else ())
        return _launcher(plan, (*OF_B, *OF_C, OF_EPILOGUE), memory, tensors), empty

    def _second(
        self, what: str, h: Any, w: Any, weights: Any, out: Any, cut: Any
    ) -> tuple[Callable[..., None], Any]:  # fmt: skip
        """Give what multiplies, sends and adds up, and what makes its result."""
        memory, extents = self._memory, self.extents
        empty = self._sums(what, h, None, weights, out)
        check_matrices(what, w, extents, h.shape[1], extents.hidden, memory.x)
        grouped.check_groups(what, h, w, memory.room.ends, grouped.KINDS[:2])
        check_rows(what, h=h, w=w)
        cut, most = self._cut(what, w, cut)

        def plan(h: Any, w: Any, weights: Any, y: Any) -> Any:
            return experts_plan.matmul_combine(
                h, w, weights, y, memory.back, extents, memory.room, self._rank, memory.signals, most, cut
            )

        tensors = h, w, weights, empty() if out is None else out
        return _launcher(plan, (*OF_A, *OF_B, TOTALS), memory, tensors), empty

    def _sums(self, what: str, h: Any, columns: int | None, weights: Any, out: Any) -> Callable[[], Any]:
        """Refuse rows, weights and sums that do not fit, and give what makes sums. columns: of `h`, None for any."""
        x, extents, torch, rows = self.x, self.extents, entry.pytorch(), self._routed
        if rows is None:
            raise CuteError(f"{what}: no tokens were sent yet: call dispatch_matmul or dispatch first")
        like = {"dtypes": (entry.type_name(x),), "like": x}
        entry.check(what, "h", h, shape=(extents.capacity, columns), **like)
        entry.check(what, "weights", weights, dtypes=WEIGHTS, shape=(rows, extents.topk), like=x)
        shape, dtype, device = (rows, extents.hidden), x.dtype, x.device
        entry.check(what, "out", out, shape=shape, optional=True, **like)
        check_rows(what, h=h, **({} if out is None else {"out": out}))

        def empty() -> Any:
            return torch.empty(shape, dtype=dtype, device=device)

        return empty

    def _bringing(self) -> Callable[..., None]:
        """Give what brings without a product."""
        memory = self._memory

        def plan(x: Any) -> Any:
            return experts_plan.dispatch(
                memory.tokens, self.extents, memory.room, self._rank, memory.signals, self._sms
            )

        kernel, _, _, block = plan(memory.x)
        return launcher(kernel, lambda x: plan(x)[1:3], (), memory, (memory.x,), block)

    def _sending(self, what: str, h: Any, weights: Any, out: Any) -> tuple[Callable[..., None], Any]:
        """Give what sends and adds up without a product, and what makes its result."""
        memory, extents = self._memory, self.extents
        empty = self._sums(what, h, extents.hidden, weights, out)

        def plan(h: Any, weights: Any, y: Any) -> Any:
            return experts_plan.combine(
                h, weights, y, memory.back, extents, memory.room, self._rank, memory.signals, self._sms
            )

        tensors = h, weights, empty() if out is None else out
        kernel, _, _, block = plan(*tensors)
        return launcher(kernel, lambda *x: plan(*x)[1:3], (2, 4), memory, tensors, block), empty

    def _cut(self, what: str, w: Any, cut: Any) -> tuple[grouped.Cut, Callable[[int], int]]:
        """Choose the cut, and give what counts its clusters."""
        if cut is not None and not isinstance(cut, grouped.Cut):
            raise CuteError(f"{what}: cut is {cut!r}; give a Cut, or None")
        most = functools.partial(most_clusters, w)
        cut = cut or experts_plan.cut_of(self.extents, w.shape[1], most)
        return cut, lambda ctas: some_clusters(f"{what}: {cut}", most(ctas), ctas)


def _launcher(plan: Any, varies: tuple[int, ...], memory: Routing, tensors: Any) -> Callable[..., None]:
    kernel, _, _, ctas = plan(*tensors)
    return launcher(kernel, lambda *x: plan(*x)[1:3], varies, memory, tensors, THREADS, (ctas, 1, 1), pdl=True)


# ---------------------------------------------------------------------- what is refused


def check_extents(
    world: int, tokens: int, hidden: int, topk: int, experts: int, capacity: int | None
) -> Extents:  # fmt: skip
    """Refuse extents that experts cannot have. world: the ranks."""
    if world < 2:
        raise CuteError(f"{WHAT}: the group has only one rank: use grouped_gemm with rows_of_a")
    numbers = {"tokens": tokens, "hidden": hidden, "topk": topk, "experts": experts}
    if capacity is not None:
        numbers["capacity"] = capacity
    for name, n in numbers.items():
        if type(n) is not int or n < 1:
            raise CuteError(f"{WHAT}: {name} {n!r} must be an int of 1 or more")
    if hidden % 8:
        raise CuteError(f"{WHAT}: hidden {hidden} must be a multiple of 8, for rows of multiples of 16 bytes: pad it")
    if experts % world or experts > routes.MOST_EXPERTS:
        raise CuteError(
            f"{WHAT}: experts {experts} must be a multiple of the {world} ranks, {routes.MOST_EXPERTS} at most: each "
            "rank has the same number"
        )
    every = tokens * topk * world
    if every >= MOST_ROWS:
        raise CuteError(
            f"{WHAT}: {tokens} tokens of {topk} experts on {world} ranks are too many: send fewer at a time"
        )
    return Extents(world, tokens, hidden, topk, experts, every if capacity is None else min(capacity, every))


def check_tokens(what: str, x: Any, indices: Any, extents: Extents, like: Any) -> None:
    """Refuse tokens that there is no memory for, and indices that are not theirs. like: that memory."""
    entry.check(what, "x", x, dtypes=(entry.type_name(like),), shape=(None, extents.hidden), last=False, like=like)
    rows = x.shape[0]
    if rows > extents.tokens:
        raise CuteError(f"{what}: x has {rows} rows, and there is memory for {extents.tokens} tokens of a rank")
    entry.check(what, "indices", indices, dtypes=("int32", "int64"), shape=(rows, extents.topk), like=like)
    if rows > 1 and entry.strides(indices)[0] != extents.topk:
        raise CuteError(
            f"{what}: indices is {entry.described(indices)}; it must be contiguous: give indices.contiguous()"
        )


def check_matrices(what: str, w: Any, extents: Extents, k: int, n: int | None, like: Any) -> None:
    """Refuse matrices that are not those of a rank's experts."""
    own = extents.experts // extents.world
    entry.check(
        what, "w", w, dtypes=(entry.type_name(like),), rank=3, shape=(own, n, k), last=False, like=like
    )  # fmt: skip


def refused(report: Any, extents: Extents) -> str:
    """Say what a report's words mean; nothing of none."""
    rank, rows, expert = (int(report[i]) for i in (routes.OVERFLOWED, routes.NEEDED, routes.NAMED))
    if rank:
        return (
            f"{WHAT}: {rows} rows came to rank {rank - 1}, and there is room for {extents.capacity}: what that call "
            f"gave is NaN. Make it with capacity={rows} or more, or without a capacity"
        )
    if expert:
        return (
            f"{WHAT}: indices name expert {expert}, and there are {extents.experts}: what such tokens gave is NaN. "
            "Below 0 is not an expert"
        )
    return ""
