# SPDX-License-Identifier: Apache-2.0
"""`matmul`: the GEMMs for PyTorch's tensors, one for each family of GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numba_cute import CuteError

from .. import entry
from ..carried import exact
from ..memo import remembered
from .checks import check, result_of
from .cuts import Umma, Warps
from .epilogue import Epilogue, known_of
from .indexed import of_product
from .launches import launch_on, operands_of, plans_of, sms_here
from .operands import swapped, view
from .plan import Plan, plan
from .taken import Taken

if TYPE_CHECKING:
    import torch

_known: dict[Any, tuple[Callable[..., None], Callable[[], Any]]] = {}


def matmul(
    a: Any, b: Any, *, epilogue: Epilogue | None = None, rows_of_a: Any = None, rows_of_c: Any = None, out: Any = None,
    out_dtype: Any = None, cut: Plan | Warps | Umma | None = None, tune: bool = False,
) -> Any:  # fmt: skip
    """Multiply matrices, a @ b, on a GPU of sm_80 to sm_89, sm_90a, sm_100a, sm_103a, sm_120 or sm_121, with an
    epilogue that costs next to nothing.

    a: (…, M, K), b: (…, K, N), whose batches broadcast, or vectors, (K,), as torch.matmul takes them; both of bfloat16,
    float16, float8_e4m3fn, float8_e5m2, int8, or float32, multiplied as TF32. What is contiguous along one of its
    last modes (along K, if its elements have not 16 bits), with the other strides multiples of 16 bytes, is taken as it
    lies, transposed views too; anything else is copied to such rows first. epilogue: what becomes of the sums
    (`numba_cute.kernels.gemm.bias` and its like, or an `Epilogue` of your own); of one that makes one column of two,
    the result has N / 2 columns. rows_of_a: (M,) int32 or int64, of two matrices: the product's row i is
    a[rows_of_a[i]] @ b; of a row that `a` has not it is NaN. rows_of_c: (M,), where row i goes, after the epilogue,
    which counts the product's own rows: each row once. What the result has no row for is left out, and a row of it that
    nothing goes to keeps what `out` holds, or is 0. out: what is written to, of any strides. out_dtype: if out is not
    given: torch.bfloat16, float16 or float32; by default that of the operands, bfloat16 for float8, int32 for int8
    without an epilogue, and float32 with one. cut: a Plan of wgmma (sm_90a), an Umma of tcgen05 (sm_100a, sm_103a), or
    a Warps of mma.sync, which all these GPUs run; by default the one that a model finds fastest for the GPU. By
    mma.sync float8 is multiplied on sm_89, sm_120 and sm_121 alone; by tcgen05 there is no int8 on sm_103a. tune:
    search for the fastest Plan by measuring those that the model finds best, once for such tensors on this GPU: the
    result is kept on disk (docs/testing.md, Autotune), and holds for all later calls of this process, with `tune` or
    without.

    Gives the result. Autograd knows it, of bfloat16, float16 and float32, without out: a, b, and all that the epilogue
    reads; what it finds beside, as `amax`, is no function of them to autograd. torch.compile takes it whole, and
    torch.autocast makes a and b of its type. CuteError for what it does not take.

    >>> import torch
    >>> a, b = torch.ones(64, 64, dtype=torch.float16), torch.eye(64, dtype=torch.float16)
    >>> with cute.simulation():
    ...     c = cute.kernels.matmul(a, b)
    >>> torch.equal(c, a @ b)
    True
    """
    a, b = entry.under_autocast(a, b)
    rows = rows_of_a, rows_of_c
    if 1 in (getattr(a, "ndim", 2), getattr(b, "ndim", 2)) and rows == (None, None):
        return _of_vectors(a, b, epilogue=epilogue, out=out, out_dtype=out_dtype, cut=cut, tune=tune)
    given = epilogue.tensors if isinstance(epilogue, Epilogue) else []
    if not tune and entry.ordinary((a, b, out, *rows, *given)):
        return _launched(a, b, epilogue, given, rows, out, out_dtype, cut)
    torch = entry.pytorch()
    if not torch.compiler.is_compiling():
        entry.refuse_tangents("matmul", [a, b, out, *given])
    if tune:
        if rows != (None, None):
            raise CuteError("matmul: tune=True is not supported where an index names rows: leave it out")
        _tune(torch, a, b, epilogue, out, out_dtype, cut)
    if OPERATOR.watched((a, b, given, *rows)) and (epilogue is None or isinstance(epilogue, Epilogue)):
        return _traced(torch, a, b, epilogue, rows, out, out_dtype, cut)
    if getattr(out, "requires_grad", False):  # of tangents it was asked above
        entry.refuse_gradients("matmul", [out])
    return _launched(a, b, epilogue, given, rows, out, out_dtype, cut)


def _of_vectors(a: Any, b: Any, out: Any, **options: Any) -> Any:
    """Multiply where a or b is a vector: a row, or a column, whose mode the result has not."""
    modes = [mode for mode, x in ((-2, a), (-1, b)) if getattr(x, "ndim", 2) == 1]
    a, b = a[None] if -2 in modes else a, b[:, None] if -1 in modes else b
    there = out
    for mode in modes[::-1] if hasattr(out, "unsqueeze") else ():
        there = there.unsqueeze(mode)
    made = matmul(a, b, out=there, **options)
    for mode in modes:
        made = made.squeeze(mode)
    return made if out is None else out


_winners: dict[Any, Plan] = {}
"""The fastest cuts that `tune=True` measured, by `_problem`."""


def _problem(a: Any, b: Any, c: Any, epilogue: Epilogue | None) -> Any:
    """Give what a measurement holds for: the kinds of the operands, of the result, and of what the epilogue takes."""
    return (epilogue and exact(epilogue.form), *entry.kinds([a, b, c, *(epilogue.tensors if epilogue else ())]))


def _tune(torch: Any, a: Any, b: Any, epilogue: Any, out: Any, out_dtype: Any, cut: Any) -> None:
    """Search for the fastest cut, if none was found for such tensors. What the caller has is not written."""
    from .tuned import tuned

    c = result_of(a, b, epilogue, (None, None), out, out_dtype, cut)
    rule = (
        "the cut is given: leave one out" if cut is not None
        else "torch.compile runs, which measures nothing: call it so before" if torch.compiler.is_compiling()
        else "a CUDA graph is captured: call it so before" if entry.capturing(c)
        else ""
    )  # fmt: skip
    if rule:
        raise CuteError(f"matmul: tune=True, and {rule}")
    problem = _problem(a, b, c, epilogue)
    if problem in _winners or (entry.simulated() is not None and tuned.options.device is None):
        return  # known, or there is nothing to measure
    check(a, b, c, epilogue.given if epilogue else [], entry.check_target("matmul(tune=True)", a))
    a, b = a.detach(), b.detach()
    spare, own = torch.empty_strided(c.shape, c.stride(), dtype=c.dtype, device=c.device), None
    if epilogue:
        own = Epilogue.of(epilogue.form, [x.tensor.detach().clone() if x.fold else x.tensor.detach()
                                          for x in epilogue.given])  # fmt: skip
    (x, y, z), _, own = _of_kernel(a, b, spare, own, True)
    found = tuned.tune(x, swapped(view(y, 16)), z, operands_of(a), own, entry.element_type(c))
    _winners[problem] = Plan(**found.best)
    _known.clear()  # what was prepared before


def _launched(
    a: Any, b: Any, epilogue: Any, given: list[Any], rows: Any, out: Any, out_dtype: Any, cut: Any
) -> Any:  # fmt: skip
    """Launch what was prepared for tensors like these, and give the result. rows: the indices, or None."""
    tensors = [a, b, out, *given, *rows]
    fresh: list[Any] = []
    of = a, b, rows, out, out_dtype, epilogue, cut, fresh
    static = known_of(epilogue), out_dtype, cut
    launch, empty = remembered(_known, tensors, static, _prepared, of)
    tensors[2] = out = out if out is not None else fresh[0] if fresh else empty()
    launch(*[t.detach() if t.requires_grad else t for t in tensors if t is not None])
    return out


def _traced(
    torch: Any, a: Any, b: Any, epilogue: Epilogue | None, rows: Any, out: Any, out_dtype: Any, cut: Any
) -> Any:
    """Multiply as the operator that autograd and torch.compile know."""
    form, given = (epilogue.form, epilogue.tensors) if epilogue else ((), [])
    if out is not None:
        raise CuteError(
            "matmul: out is given, and a gradient is asked for or torch.compile runs: leave out=, or call it under "
            "torch.no_grad()"
        )
    from . import gradients

    if torch.is_grad_enabled() and any(t.requires_grad for t in (a, b, *given)):
        gradients.check_operand(a)
        gradients.check("matmul", form, given)
    made, *beside = OPERATOR.traced(a, b, list(given), *rows, form, out_dtype, cut)
    gradients.combine(epilogue, beside)
    return made


def _epilogue_of(form: Any, given: list[Any]) -> Epilogue | None:
    return Epilogue.of(form, given) if form else None


def _results(
    a: torch.Tensor, b: torch.Tensor, given: list[torch.Tensor], rows_of_a: torch.Tensor | None,
    rows_of_c: torch.Tensor | None, form: object, out_dtype: torch.dtype | None, cut: object,
) -> Any:  # fmt: skip
    """Check the arguments, and make the result, and zeros for what the epilogue finds beside."""
    torch, epilogue = entry.pytorch(), _epilogue_of(form, given)
    made = result_of(a, b, epilogue, (rows_of_a, rows_of_c), None, out_dtype, cut)
    folded = [x.tensor for x in (epilogue.given if epilogue else ()) if x.fold]
    return [made, *(torch.zeros(t.shape, dtype=torch.float32, device=a.device) for t in folded)]


def _planned(
    a: Any, b: Any, given: list[Any], rows_a: Any, rows_c: Any, results: list[Any], form: Any, out_dtype: Any, cut: Any
) -> Callable[..., None]:
    """Give what multiplies such tensors."""
    from . import gradients

    folds = gradients.folds_of(form)

    def run(a: Any, b: Any, given: list[Any], rows_a: Any, rows_c: Any, results: list[Any]) -> None:
        out, *beside = results
        left = iter(beside)
        own = [next(left) if fold else t for t, fold in zip(given, folds, strict=True)]
        _launched(a, b, _epilogue_of(form, own), own, (rows_a, rows_c), out, None, cut)

    return run


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    from . import gradients

    a, b, given, *rows, ctx.form, _, ctx.cut = inputs
    kept = (None if fold else t for t, fold in zip(given, gradients.folds_of(ctx.form)))
    ctx.save_for_backward(a, b, *rows, *kept)
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, found: list[Any]) -> Any:
    """Give the gradients of both operands, and of the epilogue's tensors."""
    from . import gradients

    (a, b, rows_a, rows_c, *given), form, dy = ctx.saved_tensors, ctx.form, found[0]
    needs_a, needs_b, needs, *_ = ctx.needs_input_grad
    if any(g is not None for g in found[1:]):
        raise CuteError(
            "matmul: there is no second derivative of what an epilogue adds up: give the epilogue's vectors without a "
            "gradient, x.detach(), or take one derivative"
        )
    if dy is None:
        return None, None, [None] * len(given), None, None, None, None, None
    dy = gradients.picked(dy, rows_c)
    wanted, dz = gradients.wanted_of(form, needs), dy
    of_given: dict[int, Any] = {}
    if form:
        dtype = dy.dtype
        run = lambda x: OPERATOR.traced(a, b, x.tensors, rows_a, None, x.form, dtype, None)  # noqa: E731
        dz, of_given = gradients.of_epilogue(run, dy.contiguous(), form, given, needs_a or needs_b, wanted)
    wide = entry.pytorch().float32 if rows_a is not None else None  # a row may be several of the product's
    multiply = lambda x, y, kind=None: OPERATOR.traced(x, y, [], None, None, (), kind, None)[0]  # noqa: E731
    dz = None if dz is None else dz.to(a.dtype)
    own = gradients.picked(a, rows_a)
    da = gradients.product(lambda x, y: multiply(x, y, wide), dz, b.mT, own) if needs_a else None
    da = gradients.added(da, rows_a, a) if needs_a else None
    db = gradients.product(multiply, own.mT, dz, b) if needs_b else None
    return da, db, [of_given.get(i) for i in range(len(given))], None, None, None, None, None


OPERATOR = entry.Operator(
    "numba_cute::matmul", _planned, _results, count=None, backward=_gradients, setup_context=_keep
)


def _prepared(
    a: Any, b: Any, rows: Any, out: Any, out_dtype: Any, epilogue: Epilogue | None, cut: Plan | Warps | None,
    fresh: list[Any],
) -> tuple[Callable[..., None], Callable[[], Any]]:  # fmt: skip
    """Check what `matmul` was given, and plan it for all that is like it: give what launches on a, b, a result, the
    epilogue's tensors and the indices, and what makes such a result. fresh: gets the result that was planned with, for
    this call: its launch is packed already."""
    c = result_of(a, b, epilogue, rows, out, out_dtype, cut)
    fresh.append(c)
    family = entry.check_target("matmul", a, entry.WARPGROUPS, entry.TENSOR_MEMORY, entry.WARPS)
    if isinstance(cut, (Plan, Umma)) and family != (entry.WARPGROUPS if isinstance(cut, Plan) else entry.TENSOR_MEMORY):
        name, has = entry.target_at(a).name, "wgmma" if isinstance(cut, Plan) else "tcgen05"
        raise CuteError(f"matmul: cut is {cut}, of {has}, which {name} has not: leave it out, or give a Warps")
    check(a, b, c, epilogue.given if epilogue else [], entry.WARPS if isinstance(cut, Warps) else family, rows)
    target = entry.target_at(a) if family != entry.WARPGROUPS else None
    make = entry.pytorch().empty if rows[1] is None else entry.pytorch().zeros
    shape, torch_type, device = tuple(c.shape), c.dtype, c.device
    empty = lambda: make(shape, dtype=torch_type, device=device)  # noqa: E731
    if 0 in (*shape, b.shape[-1], *(r.shape[0] for r in rows if r is not None)):
        return lambda *tensors: None, empty
    ours: Plan | Warps | Umma | None = cut or (_winners.get(_problem(a, b, c, epilogue)) if target is None else None)
    threads = target is None and not isinstance(cut, Warps) and not (cut and cut.turned)
    (x, y, z), around, own = _of_kernel(a, b, c, epilogue, threads, rows)
    chosen = ours if rows == (None, None) else cut
    if target is None and chosen is None and rows[0] is not None:
        from . import picked

        count, scatters = rows[0].shape[0], rows[1] is not None
        if picked.pays(x, z, count, operands_of(a), sms_here(), own, scatters):
            x, rows, of_given = picked.rows_like(x, count), (None, rows[1]), len(own.tensors) if own else 0
            around = lambda launch, around=around: around(picked.first(launch, 2 + of_given))  # noqa: E731
    if chosen is None:
        m = next((r.shape[0] for r in rows if r is not None), None)
        chosen = _chosen(z if m is None else of_product(z, m), x.shape[-1], operands_of(a), own, target, m is not None)
    launch = launch_on((x, y, z), lambda a, b, c: (a, swapped(view(b, 16)), c), operands_of(a), chosen, own, rows)
    return around(launch), empty


def _of_kernel(
    a: Any, b: Any, c: Any, epilogue: Epilogue | None, threads: bool, rows: Any = (None, None)
) -> tuple[list[Any], Callable[..., Any], Any]:
    """Give tensors like those that the kernel has in the place of a, b and c, what makes them around a launch, and the
    epilogue with such tensors of its own. threads: whether threads write what TMA cannot. rows: the indices."""
    tensors = [t.detach() for t in (a, b, c, *(epilogue.tensors if epilogue else ()))]
    a, b, c, *_ = tensors
    taken = Taken.of(a, b, c, epilogue, threads, rows)
    views = taken.views(tensors, taken.rooms(tensors))
    around = taken.around if any(v is not t for v, t in zip(views, tensors)) else lambda launch: launch
    return views[:3], around, Epilogue.of(epilogue.form, views[3:]) if epilogue else None


def _chosen(c: Any, k: int, dtype: Any, epilogue: Epilogue | None, target: Any, named: bool) -> Plan | Warps | Umma:
    """Choose the cut for a result like c. target: the GPU's record; None for Hopper. named: whether an index names
    rows."""
    if target is None:
        return plan(c, k, dtype, sms_here(), epilogue, view(c).element_type.width, named=named)
    if entry.family_of(target) == entry.TENSOR_MEMORY:
        umma: Umma = plans_of(Umma()).plan(c, k, dtype, sms_here(), target, epilogue)
        return umma
    warps: Warps = plans_of(Warps()).plan(c, k, dtype, sms_here(), target, epilogue, named)
    return warps
