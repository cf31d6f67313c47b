# SPDX-License-Identifier: Apache-2.0
"""`grouped_gemm`, and its gradients, for PyTorch's tensors: as `matmul`'s, each row by the matrix of its group.

y = grouped_gemm(x, w, ends, rows_of_a=token, epilogue=swiglu())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numba_cute.seam import CuteError

from .. import entry
from .checks import INDICES
from .epilogue import Epilogue
from .grouped import KINDS, check_groups, plan, rows_of
from .operands import padded

if TYPE_CHECKING:
    import torch

WHAT = "grouped_gemm"


# ---------------------------------------------------------------- what is refused


def _shape(a: Any, b: Any, ends: Any, epilogue: Any, rows: Any) -> tuple[int, int]:
    """Give the shape of the product after its epilogue. CuteError for what does not fit. rows: the indices of A's rows
    and C's, or None."""
    check_groups(WHAT, a, b, ends, KINDS)
    _check_rows(a, rows)
    count, n = rows_of(a, rows), int(b.shape[1])
    if epilogue is not None:
        check_epilogue(WHAT, epilogue, a, b, count)
    return count, n // (epilogue.spread if epilogue else 1)


def _check_rows(a: Any, rows: Any) -> None:
    """Refuse indices that name no rows."""
    of_a, of_c = rows
    if of_a is not None:
        entry.check(WHAT, "rows_of_a", of_a, dtypes=INDICES, rank=1, last=False, like=a)
        if of_a.shape[0] and not a.shape[0]:
            raise CuteError(f"{WHAT}: rows_of_a names rows, and a is {entry.described(a)}, which has none: give them")
    if of_c is not None:
        count = rows_of(a, (of_a, None))
        entry.check(WHAT, "rows_of_c", of_c, dtypes=INDICES, shape=(count,), last=False, like=a)


def check_epilogue(what: str, epilogue: Any, a: Any, b: Any, rows: int) -> None:
    """Refuse an epilogue that the kernels have not. what: the entry. rows: of the product."""
    if not isinstance(epilogue, Epilogue):
        raise CuteError(f"{what}: epilogue is {entry.described(epilogue)}; give an Epilogue, or None")
    groups, n, _ = b.shape
    if epilogue.spread == 2 and n % 16:
        raise CuteError(
            f"{what}: b is {entry.described(b)}; of an epilogue that makes one column of two its N is a multiple of "
            "16: fill both halves up"
        )
    for x in epilogue.given:
        said = f"{what}: the epilogue's {entry.described(x.tensor)} along {x.along!r}"
        if x.fold or x.along == "both":
            raise CuteError(
                f"{said}: it reads numbers, rows(v), columns(v) and one(v) alone, and gives nothing beside: compute "
                "that of the result"
            )
        if getattr(x.tensor, "device", None) != a.device:
            raise CuteError(f"{said} must be a tensor on {a.device}, where a is")
        if x.along == "rows" and tuple(x.tensor.shape) != (rows,):
            raise CuteError(f"{said}: its shape must be ({rows},), a value for each row of the product")


# ---------------------------------------------------------------- the operator


def _epilogue_of(form: Any, given: Any) -> Epilogue | None:
    return Epilogue.of(form, given) if form else None


def _type(a: Any) -> Any:
    return a.dtype if a.element_size() == 2 else entry.pytorch().bfloat16


def _result(
    a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor, given: list[torch.Tensor], rows_of_a: torch.Tensor | None,
    rows_of_c: torch.Tensor | None, form: object,
) -> Any:  # fmt: skip
    shape = _shape(a, b, ends, _epilogue_of(form, given), (rows_of_a, rows_of_c))
    return (a.new_empty if rows_of_c is None else a.new_zeros)(shape, dtype=_type(a))


def _planned(
    a: Any, b: Any, ends: Any, given: Any, rows_a: Any, rows_c: Any, c: Any, form: Any
) -> Callable[..., None]:  # fmt: skip
    """Give what multiplies such tensors."""
    work = plan(a, b, ends, c, epilogue=_epilogue_of(form, given), rows=(rows_a, rows_c))
    launch = work.launcher() if isinstance(work, entry.Work) else work

    def run(a: Any, b: Any, ends: Any, given: Any, rows_a: Any, rows_c: Any, c: Any) -> None:
        launch(a, b, ends, c, *given, *(r for r in (rows_a, rows_c) if r is not None))

    return run


def _zeros(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> Any:
    check_groups(WHAT, a, b, ends, KINDS[:2])
    return padded((a.shape[0], b.shape[1]), a, zeros=True)


ROWS_BACKWARD = entry.Operator("numba_cute::grouped_rows_backward", plan, _zeros)
"""The same product, with zeros for the rows that are no group's."""


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    a, b, ends, given, *rows, ctx.form = inputs
    if entry.type_name(a) not in KINDS[:2]:
        raise CuteError(
            f"{WHAT}: a gradient is asked for, which there is of bfloat16 and float16, and a is "
            f"{entry.described(a)}: give a.detach(), or call it under torch.no_grad()"
        )
    ctx.save_for_backward(a, b, ends, *rows, *given)


def _gradients(ctx: Any, dc: Any) -> Any:
    """Give the gradient of a, a grouped product with the matrices transposed, of b, a product over each group's rows,
    and of what the epilogue reads."""
    from . import gradients
    from .grouped_outer import OUTER

    (a, b, ends, rows_a, rows_c, *given), form = ctx.saved_tensors, ctx.form
    needs_a, needs_b, _, needs, *_ = ctx.needs_input_grad
    dz, of_given = gradients.picked(dc, rows_c), {}
    if form:
        run = lambda x: [GROUPED.traced(a, b, ends, x.tensors, rows_a, None, x.form)]  # noqa: E731
        wanted = gradients.wanted_of(form, needs)
        reduce = lambda g, along, like: _reduced(g, along, like, ends)  # noqa: E731
        dz, of_given = gradients.of_epilogue(run, dz, form, given, needs_a or needs_b, wanted, True, reduce)
    dz = None if dz is None else dz.to(a.dtype).contiguous()
    da = gradients.added(ROWS_BACKWARD(dz, b.mT, ends), rows_a, a) if needs_a else None
    db = None
    if needs_b:
        own, turned = gradients.picked(a, rows_a), b.stride(1) == 1 and b.stride(2) != 1
        db = OUTER(own, dz, ends).mT if turned else OUTER(dz, own, ends)
    return da, db, None, [of_given.get(i) for i in range(len(given))], None, None, None


def _reduced(g: Any, along: str, like: Any, ends: Any) -> Any:
    """Add up the gradients of all elements to those of a vector, in float32, without rows that are no group's. along:
    as of `Given`. like: the vector, or half of it."""
    from . import gradients

    torch = entry.pytorch()
    row = torch.arange(g.shape[0], dtype=ends.dtype, device=g.device)
    group = torch.searchsorted(ends, row, right=True)
    g = torch.where((group < ends.shape[0])[:, None], g.float(), 0.0)
    if along != "columns" or like.ndim != 2:
        return gradients.reduced(g, along, like)
    sums = torch.zeros((ends.shape[0] + 1, g.shape[1]), dtype=torch.float32, device=g.device)
    return sums.index_add_(0, group, g)[:-1]


GROUPED = entry.Operator("numba_cute::grouped_gemm", _planned, _result, backward=_gradients, setup_context=_keep)


def grouped_gemm(
    a: Any, b: Any, ends: Any, *, epilogue: Epilogue | None = None, rows_of_a: Any = None, rows_of_c: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """Multiply rows that are sorted by group, each group by a matrix of its own: `a[r] @ b[g].T` for the rows r of g,
    on a GPU of sm_80 to sm_89, sm_90a, sm_100a, sm_103a, sm_120 or sm_121.

    a: (rows, K) of bfloat16, float16 or, but on sm_80 to sm_88, float8. b: (groups, N, K) of the same, contiguous
    along K, or, of 16 bits, along N. ends: (groups,) int32 on the GPU, the row after each group's last one: they do not
    decrease, and the kernel reads them, so that nobody waits. A group may be empty, or of any number of rows. epilogue:
    what becomes of the sums, as of `matmul`, of numbers, `rows(v)` with a value for each row of the product,
    `columns(v)` with one for each column, of all groups or (groups, N) of each, and `one(v)`; also of pairs, whose
    result has N / 2 columns. rows_of_a: (rows of the product,) int32 or int64: the product's row i is of
    a[rows_of_a[i]]; of a row that `a` has not it is NaN. rows_of_c: as many, where row i goes, after the epilogue,
    which counts the product's own rows: each row once. What the result has no row for is left out, and a row of it that
    nothing goes to keeps what `out` holds, or is 0. out: (rows, N), to write to, of a's type, or bfloat16 where that is
    float8; of any number of rows with rows_of_c. Its rows after the last group's are left as they are. Rows of `a`, `b`
    and the result are multiples of 16 bytes. Gives the result. Autograd knows it, of 16 bits: a, b, and all that the
    epilogue reads; rows after the last group's have a gradient of 0, and so has the matrix of an empty group. CuteError
    says what is not so.

    >>> import torch
    >>> a = torch.ones(3, 64, dtype=torch.float16)
    >>> b = torch.stack([torch.eye(64, dtype=torch.float16), 2 * torch.eye(64, dtype=torch.float16)])
    >>> with cute.simulation():
    ...     c = cute.kernels.grouped_gemm(a, b, torch.tensor([1, 3], dtype=torch.int32))
    >>> c[:, 0]
    tensor([1., 2., 2.], dtype=torch.float16)
    """
    a, b = entry.under_autocast(a, b)
    if epilogue is not None and not isinstance(epilogue, Epilogue):
        raise CuteError(f"{WHAT}: epilogue is {entry.described(epilogue)}; give an Epilogue, or None")
    form, given = (epilogue.form, epilogue.tensors) if epilogue else ((), [])
    args = a, b, ends, list(given), rows_of_a, rows_of_c
    if entry.pytorch().is_grad_enabled() and any(getattr(t, "requires_grad", False) for t in (a, b, *given)):
        from . import gradients

        gradients.check(WHAT, form, list(given))
    if out is None or rows_of_c is None:
        return GROUPED(*args, form, into=(out,))
    return _into(out, args, epilogue, form)


def _into(out: Any, args: Any, epilogue: Any, form: Any) -> Any:
    """Write rows that an index names to `out`, which may have others."""
    a, b, ends, given, *rows = args
    entry.refuse_tangents(WHAT, [a, b, out, *given])
    entry.refuse_gradients(WHAT, [out])
    if GROUPED.watched(args):
        raise CuteError(
            f"{WHAT}: out is given, and a gradient is asked for or torch.compile runs: leave out=, or call it under "
            "torch.no_grad()"
        )
    _, n = _shape(a, b, ends, epilogue, rows)
    entry.check(WHAT, "out", out, dtypes=(str(_type(a)).removeprefix("torch."),), rank=2, shape=(None, n), like=a)
    GROUPED.planned((*args, out), (form,))
    return out
