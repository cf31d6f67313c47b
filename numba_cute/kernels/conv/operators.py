# SPDX-License-Identifier: Apache-2.0
"""Convolutions as operators of torch's, which autograd and torch.compile know, and their gradients'."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba_cute import CuteError

from .. import entry
from ..gemm.epilogue import Epilogue, Form, bias as bias_of
from . import forward
from .tensors import flat, last, result_of, rows_of

if TYPE_CHECKING:
    import torch

OPERANDS = ("bfloat16", "float16")
_CONVOLUTION, _TRANSPOSED = "conv", "conv_transpose"


def _epilogue(form: Any, given: list[Any]) -> Epilogue | None:
    return Epilogue.of(form, given) if form else None


def _walk(what: str, x: Any, weight: Any, how: Any, epilogue: Any, out_dtype: Any) -> tuple[Any, Any, Any]:
    """The walk of a call, and its result's shape and type."""
    if what.startswith(_TRANSPOSED):
        from . import transposed

        return *transposed._plan(what, x, weight, how), x.dtype
    return forward._plan(what, x, weight, how, epilogue, out_dtype)


def _results(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, given: list[torch.Tensor], what: str,
    how: object, form: object, out_dtype: torch.dtype | None, cut: object,
) -> Any:  # fmt: skip
    """Check the arguments, and make the result, and zeros for what the epilogue finds beside."""
    from ..gemm import gradients as of_gemm

    torch = entry.pytorch()
    _, shape, dtype = _walk(what, x, weight, how, form or None, out_dtype)
    if bias is not None:
        entry.check(what, "bias", bias, dtypes=entry.FLOATS, shape=(shape[1],), last=False, like=x)
    found = [t for t, fold in zip(given, of_gemm.folds_of(form), strict=True) if fold]  # type: ignore[arg-type]
    beside = (torch.zeros(t.shape, dtype=torch.float32, device=x.device) for t in found)
    return [result_of(x.device, shape, dtype), *beside]


def _planned(*args: Any) -> Any:
    """Give what convolves such tensors."""
    from ..gemm import gradients as of_gemm

    *_, what, how, form, _, cut = args
    folds = of_gemm.folds_of(form)

    def run(x: Any, weight: Any, bias: Any, given: list[Any], results: list[Any]) -> None:
        out, *beside = results
        left = iter(beside)
        epilogue = _epilogue(form, [next(left) if fold else t for t, fold in zip(given, folds, strict=True)])
        if what.startswith(_TRANSPOSED):
            from . import transposed

            transposed.transposed(what, x, weight, bias, how, epilogue, out, cut)
        else:
            forward.convolved(what, x, weight, bias, how, epilogue, out, None, cut)

    return run


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    from ..gemm import gradients as of_gemm

    x, weight, bias, given, ctx.what, ctx.how, ctx.form, _, ctx.cut = inputs
    kept = (None if fold else t for t, fold in zip(given, of_gemm.folds_of(ctx.form), strict=True))
    ctx.save_for_backward(x, weight, bias, *kept)
    ctx.set_materialize_grads(False)


def in_order(t: Any) -> Any:
    """Give (N, C, …) with its channels last, and dense: by torch, for torch.compile traces it."""
    return last(t).contiguous().movedim(-1, 1)


def _images_of(rows: Any, like: Any) -> Any:
    """Rows of pixels as images like others."""
    return rows.view(last(like).shape).movedim(-1, 1)


def _gradients(ctx: Any, found: list[Any]) -> Any:
    """Give the gradients of the images, the filters, the bias, and the epilogue's tensors."""
    from ..gemm import gradients as of_gemm

    (x, weight, bias, *given), what, dy = ctx.saved_tensors, ctx.what, found[0]
    needs_x, needs_weight, needs_bias, needs, *_ = ctx.needs_input_grad
    if any(g is not None for g in found[1:]):
        raise CuteError(f"{what}: there is no second derivative of what an epilogue adds up")
    rest = (None,) * 5
    if dy is None:
        return None, None, None, [None] * len(given), *rest
    dy = in_order(dy)
    form: Form = ctx.form
    tensors, needs = flat(given, dy.ndim), list(needs)
    if bias is not None:  # it is the epilogue's first step
        form, tensors, needs = bias_of(bias).form + form, [bias, *tensors], [needs_bias, *needs]

    def run(epilogue: Epilogue) -> list[Any]:
        made, *beside = OPERATOR.traced(
            x, weight, None, epilogue.tensors, what, ctx.how, epilogue.form, _dtype(what, dy), None
        )
        return [rows_of(made), *beside]

    walk, _, _ = _walk(what, x, weight, ctx.how, None, None)
    strided = what.startswith(_TRANSPOSED) and max(walk.stride) > 1  # of which there are parts, that take no matrix
    dz, of_given = of_gemm.of_epilogue(
        run, rows_of(dy), form, tensors, needs_x or needs_weight, of_gemm.wanted_of(form, needs), alone=strided
    )
    dx = dw = None
    if dz is not None:
        dz = _images_of(dz.to(x.dtype), dy)
        name = f"{what}_backward"
        if what.startswith(_TRANSPOSED):
            stride, padding, _, dilation = ctx.how
            plain = what.replace("_transpose", "")
            if needs_x:
                dx = OPERATOR.traced(dz, weight, None, [], plain, (stride, padding, dilation), (), None, None)[0]
            dw = FILTERS(dz, in_order(x), tuple(weight.shape), name, walk) if needs_weight else None
        else:
            dx = IMAGES(dz, weight, tuple(x.shape), name, walk) if needs_x else None
            dw = FILTERS(x, dz, tuple(weight.shape), name, walk) if needs_weight else None
    each: list[Any] = [of_given.get(i) for i in range(len(tensors))]
    dbias = each.pop(0) if bias is not None else None
    shaped = [g if g is None or g.shape == t.shape else _images_of(g, t) for g, t in zip(each, given, strict=True)]
    return dx, dw, dbias, shaped, *rest


def _dtype(what: str, dy: Any) -> Any:
    return None if what.startswith(_TRANSPOSED) else dy.dtype


OPERATOR = entry.Operator(
    "numba_cute::convolution", _planned, _results, count=None, backward=_gradients, setup_context=_keep
)


def _images(dy: torch.Tensor, weight: torch.Tensor, shape: list[int], what: str, walk: object) -> Any:
    return result_of(dy.device, tuple(shape), dy.dtype)


def _images_planned(dy: Any, weight: Any, dx: Any, shape: Any, what: str, walk: Any) -> Any:
    from . import transposed

    return lambda dy, weight, dx: transposed.gradient_of_images(what, dy, weight, dx, walk)


IMAGES = entry.Operator("numba_cute::convolution_images_backward", _images_planned, _images)


def _filters(x: torch.Tensor, dy: torch.Tensor, shape: list[int], what: str, walk: object) -> Any:
    return result_of(x.device, tuple(shape), x.dtype)


def _filters_planned(x: Any, dy: Any, dw: Any, shape: Any, what: str, walk: Any) -> Any:
    from .gradients import gradient_of_filters

    return lambda x, dy, dw: gradient_of_filters(what, x, dy, dw, walk)


FILTERS = entry.Operator("numba_cute::convolution_filters_backward", _filters_planned, _filters)


def called(
    what: str, x: Any, weight: Any, bias: Any, how: Any, epilogue: Any, out: Any, out_dtype: Any, cut: Any
) -> Any:
    """Convolve, as the operator where somebody wants to know. The arguments: as of `conv2d`. how: stride, padding,
    perhaps output_padding, and dilation."""
    torch = entry.pytorch()
    how = tuple(tuple(n) if isinstance(n, list) else n for n in how)
    x, weight = entry.under_autocast(x, weight)
    form, given = (epilogue.form, epilogue.tensors) if isinstance(epilogue, Epilogue) else ((), [])
    if entry.ordinary((x, weight, bias, out, *given)):
        return _convolved(what, x, weight, bias, how, epilogue, out, out_dtype, cut)
    if not torch.compiler.is_compiling():
        entry.refuse_tangents(what, [x, weight, bias, out, *given])
    if OPERATOR.watched((x, weight, bias, given)) and (epilogue is None or isinstance(epilogue, Epilogue)):
        if out is not None:
            raise CuteError(
                f"{what}: out is given, and a gradient is asked for or torch.compile runs: leave out=, or call it "
                "under torch.no_grad()"
            )
        if torch.is_grad_enabled() and any(getattr(t, "requires_grad", False) for t in (x, weight, bias, *given)):
            _check_gradients(what, x, bias, form, given)
        made, *beside = OPERATOR.traced(x, weight, bias, list(given), what, how, form, out_dtype, cut)
        from ..gemm import gradients as of_gemm

        of_gemm.combine(epilogue, beside)
        return made
    entry.refuse_gradients(what, [out])
    return _convolved(what, x, weight, bias, how, epilogue, out, out_dtype, cut)


def _convolved(
    what: str, x: Any, weight: Any, bias: Any, how: tuple[Any, ...], epilogue: Any, out: Any, out_dtype: Any, cut: Any
) -> Any:
    """Convolve tensors of which nobody else wants to know."""
    if what.startswith(_TRANSPOSED):
        from . import transposed

        return transposed.transposed(what, x, weight, bias, how, epilogue, out, cut)[0]
    return forward.convolved(what, x, weight, bias, how, epilogue, out, out_dtype, cut)[0]


def _check_gradients(what: str, x: Any, bias: Any, form: Form, given: list[Any]) -> None:
    """Refuse what has no gradient."""
    if entry.type_name(x) not in OPERANDS:
        raise CuteError(
            f"{what}: a gradient is asked for, which there is of {' and '.join(OPERANDS)}, and x is "
            f"{entry.described(x)}: convert it with x.to(…), or call it under torch.no_grad()"
        )
    from ..gemm import gradients as of_gemm

    of_gemm.check(what, form, given)
