# SPDX-License-Identifier: Apache-2.0
"""Cases of the entries that work on rows: norms, softmax, cross-entropy, top k, rotary, permutations."""

from __future__ import annotations

import math

import torch

from numba_cute import kernels

from .draw import Draw, Wrong, close, equal, gradients

FLOATS = (torch.bfloat16, torch.float16, torch.float32)


def _rows(d: Draw, name: str = "x", shape: tuple[int, ...] | None = None, grad: bool = False):
    shape = (*d.shape(0, 3), d.length()) if shape is None else shape
    x = d.elements(shape, d.option(*FLOATS))
    if len(shape) > 1 and d.one_in(4):  # heads of packed q, k and v
        d.drawn.append((f"{name} lies", "packed"))
        heads, first = shape[-2], d.of(0, 1, shape[-2])
        x = torch.cat([torch.zeros_like(x)] * 3, -2).narrow(-2, min(first, 2 * heads), heads).copy_(x)
        return d.note(name, x)
    x = d.laid(name, x)
    return x.contiguous() if grad and 0 in x.stride() else x


def _norm(d: Draw, what: str) -> None:
    centred, grad = what == "layernorm", d.note("grad", d.option_in(2))
    x = _rows(d, grad=grad)
    n = x.shape[-1]
    line = lambda name: d.laid(name, d.elements((n,), d.option(*FLOATS)))  # noqa: E731
    weight, bias = line("weight") if d.option_in(2) else None, line("bias") if centred and d.option_in(2) else None
    residual = _rows(d, "residual", tuple(x.shape), grad) if d.option_in(3) else None
    eps = d.note("eps", d.of(1e-5, 1e-6, 1e-3))
    offset = d.note("offset", d.of(1.0, 0.5) if weight is not None and d.option_in(2) else 0.0)

    def ours(x, *others):
        given = dict(zip(names, others))
        b = (given.get("bias"),) if centred else ()
        options = {"residual": given.get("residual"), "eps": eps, "offset": offset}
        return getattr(kernels, what)(x, given.get("weight"), *b, **options)

    def exact(x, *others):
        given = dict(zip(names, others))
        s = x + given["residual"] if "residual" in given else x
        if "residual" in given:  # it is summed in Float32, and rounded
            to = s.detach().float().to(residual.dtype).double()
            s = torch.where(torch.isfinite(to), s + (to - s.detach()), s)
        c = s - s.mean(-1, keepdim=True) if centred else s
        y = c / (c.pow(2).mean(-1, keepdim=True) + eps).sqrt()
        y = y * (offset + given["weight"]) if "weight" in given else y
        y = y + given["bias"] if "bias" in given else y
        return (y, s) if "residual" in given else y

    given = [(k, v) for k, v in (("weight", weight), ("bias", bias), ("residual", residual)) if v is not None]
    names = [k for k, _ in given]
    tensors = [x, *[v for _, v in given]]
    add = 0.0 if residual is None else 2.0**-8  # a sum in 16 bits is what the gradient is taken of
    if grad and all(bool(torch.isfinite(t).all()) for t in tensors) and x.numel() and n > 1:
        return gradients(d, ours, exact, tensors, add=max(add, 2.0**-9), smooth=residual is None)
    made, want = ours(*tensors), exact(*[t.double() for t in tensors])
    made, want = (r if isinstance(r, tuple) else (r,) for r in (made, want))
    for i, (m, w) in enumerate(zip(made, want)):
        close(f"result {i}", m, w, add=2.0**-12)


def rmsnorm(d: Draw) -> None:
    _norm(d, "rmsnorm")


def layernorm(d: Draw) -> None:
    _norm(d, "layernorm")


def groupnorm(d: Draw) -> None:
    groups, each = d.option(1, 2, 3, 8), d.option(1, 1, 2, 5)
    places = d.option((), (1,), (7,), (8,), (3, 5), (4, 4), (16, 16), (2, 3, 8), (40, 40))
    shape = (d.of(0, 1, 1, 2, 3), groups * each, *places)
    x = d.laid("x", d.elements(shape, d.option(*FLOATS)))
    line = lambda name: d.laid(name, d.elements((groups * each,), d.option(*FLOATS)))  # noqa: E731
    lines = {n: line(n) for n in ("weight", "bias") if d.option_in(2)}
    eps = d.note("eps", d.of(1e-5, 1e-3))
    x = x.contiguous() if 0 in x.stride() else x
    if places and d.note("channels last", d.option_in(4)):
        x = x.movedim(1, -1).contiguous().movedim(-1, 1)

    def ours(x, *given):
        return kernels.groupnorm(x, groups, **dict(zip(lines, given)), eps=eps)

    def exact(x, *given):
        rows = x.reshape(shape[0], groups, each * math.prod(places))
        c = rows - rows.mean(-1, keepdim=True)
        y = (c / (c.pow(2).mean(-1, keepdim=True) + eps).sqrt()).reshape(shape)
        given = {k: v.reshape(-1, *[1] * len(places)) for k, v in zip(lines, given)}
        return y * given.get("weight", 1.0) + given.get("bias", 0.0)

    tensors = [x, *lines.values()]
    finite = all(bool(torch.isfinite(t).all()) for t in tensors)
    if d.note("grad", d.option_in(2)) and finite and x.numel() and each * math.prod(places) > 1:
        return gradients(d, ours, exact, tensors, add=2.0**-9)
    close("groupnorm", ours(*tensors), exact(*[t.double() for t in tensors]), add=2.0**-12)


def softmax(d: Draw) -> None:
    x = _rows(d, grad=True)
    if d.note("grad", d.option_in(2)) and bool(torch.isfinite(x).all()) and x.numel():
        return gradients(d, kernels.softmax, lambda x: x.softmax(-1), [x], add=2.0**-8)
    out = d.laid("out", torch.empty_like(x), broadcast=False) if d.one_in(3) else None
    made = kernels.softmax(x, out=out)
    if out is not None and made is not out:
        raise Wrong("it does not give what it was to write to")
    close("softmax", made, x.double().softmax(-1), size=1.0)


def _losses(flat, at, ignored: int, smoothing: float, z: float):
    """Each row's cross-entropy in float64; 0 where its target is ignored."""
    log, n = flat.logsumexp(-1), flat.shape[-1]
    loss = log - flat.gather(-1, at.clamp(0, n - 1)[:, None])[:, 0]
    if smoothing:
        loss = (1 - smoothing) * loss + smoothing * (log - flat.mean(-1))
    loss = loss + z * log * log if z else loss
    return torch.where(at != ignored, loss, torch.zeros_like(loss))


def _entropy(d: Draw, n: int, shape: tuple[int, ...]):
    """Targets of cross-entropies of rows of `n`, and their options."""
    target = torch.randint(0, n, shape, generator=d.torch)
    ignored = d.note("ignore_index", d.of(-100, 0, n - 1, n + 5))
    if target.numel() and d.one_in(2):
        target[torch.rand(target.shape, generator=d.torch) < 0.3] = ignored
    target = d.laid("target", target.to(d.option(torch.int64, torch.int32)), last=False)
    smooth, square = d.option_in(3), d.option_in(3)  # kernels of their own; the numbers are not
    numbers = {"label_smoothing": d.of(0.1, 0.5, 1.0) if smooth else 0.0, "z_loss": d.of(1e-4, 0.1) if square else 0.0}
    return target, d.note("options", {"ignore_index": ignored, "reduction": d.of("none", "sum", "mean"), **numbers})


def _reduced(loss, at, options):
    """A loss of rows as `reduction` says."""
    seen = (at != options["ignore_index"]).sum()
    return loss if options["reduction"] == "none" else loss.sum() / (1 if options["reduction"] == "sum" else seen)


def cross_entropy(d: Draw) -> None:
    shape = (*d.shape(0, 3), d.length())
    x = _rows(d, shape=shape, grad=True)
    n = shape[-1]
    target, options = _entropy(d, n, shape[:-1])
    over = d.note("inplace_backward", d.one_in(3))

    def ours(x):
        x = x * 1 if over and x.requires_grad else x
        return kernels.cross_entropy(x, target, **options, inplace_backward=over)

    def exact(x):
        at = target.reshape(-1).long()
        smoothing, z = options["label_smoothing"], options["z_loss"]
        loss = _losses(x.reshape(-1, n), at, options["ignore_index"], smoothing, z).reshape(target.shape)
        return _reduced(loss, target, options)

    if d.note("grad", d.option_in(2)) and bool(torch.isfinite(x).all()) and x.numel():
        if options["reduction"] != "mean" or bool((target != options["ignore_index"]).any()):
            return gradients(d, ours, exact, [x], add=2.0**-8)
    want = exact(x.double())
    close("loss", ours(x), want, size=want.abs().nan_to_num(0, 0, 0).max() + 10 if want.numel() else 1.0)


def linear_cross_entropy(d: Draw) -> None:
    shape, depth, n = d.shape(0, 2), d.option(8, 16, 24, 64, 72, 200), d.option(1, 5, 8, 33, 64, 100, 257)
    kind, rows = d.option(torch.bfloat16, torch.float16, torch.float32), math.prod(shape)
    x = d.laid("x", d.elements((*shape, depth), kind))
    weight = d.laid("weight", d.elements((n, depth), kind, 0.3), unit=8, broadcast=False)
    bias = [torch.randn(n, generator=d.torch).to(d.of(kind, torch.float32))] if d.option_in(2) else []
    cap = d.note("softcap", d.of(0.0, 0.0, 2.0, 30.0))
    target, options = _entropy(d, n, shape)
    options["chunk_size"] = d.note("chunk_size", d.of(None, None, 1, 2, 3, 8))
    if any(0 in t.stride() for t in (x,)):
        x = x.contiguous()

    def exact(x, weight, *bias):
        logits, at = x.reshape(-1, depth) @ weight.mT, target.reshape(-1).long()
        logits = logits + bias[0] if bias else logits
        logits = cap * torch.tanh(logits / cap) if cap else logits
        to = logits.detach().to(kind).double()
        logits = torch.where(torch.isfinite(to), logits + (to - logits.detach()), logits)  # as they are held
        smoothing, z = options["label_smoothing"], options["z_loss"]
        loss = _losses(logits, at, options["ignore_index"], smoothing, z).reshape(target.shape)
        return _reduced(loss, target, options)

    def ours(x, weight, *bias):
        return kernels.linear_cross_entropy(x, weight, target, *bias, softcap=cap, **options)

    finite = all(bool(torch.isfinite(t).all()) for t in (x, weight))
    seen = bool((target != options["ignore_index"]).any()) or options["reduction"] != "mean"
    if d.note("grad", d.option_in(2)) and finite and rows and seen:
        return gradients(d, ours, exact, [x, weight, *bias], add=2.0**-6, smooth=False)
    if not finite:  # how NaN and infinities of products add up is another matter
        x, weight = x.nan_to_num(0, 0, 0), weight.nan_to_num(0, 0, 0)
    want = exact(*(t.double() for t in (x, weight, *bias)))
    size = want.abs().nan_to_num(0, 0, 0).max() + 10 if want.numel() else 1.0
    close("loss", ours(x, weight, *bias), want, size=size, add=2.0**-9)


def topk(d: Draw) -> None:
    x = _rows(d, shape=(*d.shape(0, 1), d.length(20)), grad=True)  # lanes go their own ways here, and are run alone
    n = x.shape[-1]
    k, soft = (
        d.note("k", min(n, d.of(*d.option((1, 2, 3, 5, 8), (9, 16), (31, 32), (64,), (100, 128), (256,))))),
        d.note("softmax", d.option_in(3)),
    )
    order = torch.argsort(
        torch.where(torch.isnan(x.double()), math.inf, x.double()), dim=-1, descending=True, stable=True
    )
    nan = torch.isnan(x)
    if bool(nan.any()):  # NaN before infinities, each in its place's order
        key = nan.double() * 2 + (x.double() == math.inf) * 1.0
        order = order.gather(-1, torch.argsort(key.gather(-1, order), dim=-1, descending=True, stable=True))
    at = order[..., :k]
    values = x.double().gather(-1, at)
    if d.note("grad", d.option_in(2)) and bool(torch.isfinite(x).all()) and x.numel():
        ours = lambda x: kernels.topk(x, k, softmax=soft)[0]  # noqa: E731

        def exact(x):
            chosen = x.gather(-1, at)
            return chosen.softmax(-1) if soft else chosen

        return gradients(d, ours, exact, [x], add=2.0**-8)
    made, places = kernels.topk(x, k, softmax=soft)
    equal("indices", places, at)
    if soft:
        return close("softmax", made, values.softmax(-1), size=1.0)
    equal("values", made, values)


def rotary(d: Draw) -> None:
    *outer, tokens = (*d.shape(0, 2), d.of(0, 1, 2, 3, 5, 17))
    heads, dim = d.of(1, 1, 2, 3, 5), d.of(2, 4, 6, 16, 32, 64, 66, 80)
    x = d.laid("x", d.elements((*outer, tokens, heads, dim), d.option(*FLOATS)))
    half = d.note("half", d.of(dim // 2, dim // 2, max(1, dim // 4), 1))
    places = tokens + d.of(0, 0, 3)
    positions = None
    if d.option_in(2) and places:
        positions = torch.randint(0, places, (*outer, tokens), generator=d.torch).to(d.option(torch.int64, torch.int32))
        positions = d.laid("positions", positions, last=False)
    kind = d.option(*FLOATS)
    angles = torch.randn(places, half, generator=d.torch)
    cos, sin = (d.laid(n, f(angles).to(kind)) for n, f in (("cos", torch.cos), ("sin", torch.sin)))
    interleaved, inverse = d.note("interleaved", d.option_in(2)), d.note("inverse", d.option_in(2))

    def exact(x):
        at = torch.arange(tokens).expand(*outer, tokens) if positions is None else positions.long()
        c, s = cos.double()[at][..., None, :], sin.double()[at][..., None, :] * (-1 if inverse else 1)
        a, b = (x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]) if interleaved else (
            x[..., :half], x[..., half : 2 * half])  # fmt: skip
        p, q = a * c - b * s, b * c + a * s
        turned = torch.stack((p, q), -1).flatten(-2) if interleaved else torch.cat((p, q), -1)
        return torch.cat((turned, x[..., 2 * half :]), -1)

    ours = lambda x: kernels.rotary(x, cos, sin, positions, interleaved=interleaved, inverse=inverse)  # noqa: E731
    if d.note("grad", d.option_in(2)) and bool(torch.isfinite(x).all()) and x.numel():
        return gradients(d, ours, exact, [x], add=2.0**-9)
    close(
        "rotary", ours(x), exact(x.double()), size=x.double().abs().nan_to_num(0, 0, 0).max() * 2 if x.numel() else 1.0
    )


KINDS = (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.int16, torch.int32,
         torch.int64, torch.bool)  # fmt: skip


def permute(d: Draw) -> None:
    modes = d.of(1, 2, 2, 3, 3, 4, 5)
    shape = [d.of(0, 1, 2, 3, 5, 8, 16, 24, 33, 64, 72, 100) if not d.one_in(12) else 200 for _ in range(modes)]
    while math.prod(shape) > 20000:
        shape[shape.index(max(shape))] //= 2
    kind = d.of(*KINDS)
    x = torch.randint(-100, 100, tuple(shape), generator=d.torch)
    x = (x > 0) if kind == torch.bool else x.abs().to(kind) if kind == torch.uint8 else x.to(kind)
    x = d.laid("x", x, last=False)
    if d.one_in(6) and modes > 1:
        m = d.random.randrange(modes)
        x = d.note("x", x[(slice(None),) * m + (slice(None, None, 2),)])
    if modes > 1 and d.one_in(4):
        return equal("transpose", kernels.transpose(x), x.mT)
    order = d.note("order", tuple(d.random.sample(range(modes), modes)))
    given = [m - modes if d.one_in(5) else m for m in order]
    grad = kind in (torch.float32, torch.float64) and d.note("grad", d.one_in(3))
    if not grad:
        return equal("permute", kernels.permute(x, given), x.permute(order))
    gradients(d, lambda x: kernels.permute(x, given), lambda x: x.permute(order), [x])


CASES = {
    "rmsnorm": rmsnorm, "layernorm": layernorm, "groupnorm": groupnorm, "softmax": softmax,
    "cross_entropy": cross_entropy, "linear_cross_entropy": linear_cross_entropy, "topk": topk, "rotary": rotary,
    "permute": permute,
}  # fmt: skip
