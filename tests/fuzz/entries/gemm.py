# SPDX-License-Identifier: Apache-2.0
"""Cases of the entries that multiply matrices."""

from __future__ import annotations

import math

import torch

from numba_cute import kernels
from numba_cute.kernels import entry, gemm
from numba_cute.kernels.gemm import umma_plan
from numba_cute.kernels.gemm.launches import operands_of
from numba_cute.kernels.gemm.plan import cuts

from .draw import Draw, Wrong, close, equal, gradients

F8 = torch.float8_e4m3fn
TYPES = (torch.bfloat16, torch.bfloat16, torch.float16, torch.float32, F8, torch.float8_e5m2, torch.int8)
EXTENTS = (1, 2, 3, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 136, 160, 192, 200, 257)
ACCUMULATED = {F8: 2.0**-12, torch.float8_e5m2: 2.0**-12, torch.float32: 2.0**-9}  # both operands lose digits
"""What sums of such operands may be off by, in parts of the sums of magnitudes: products and operands are rounded."""


BATCHES = (
    ((2,), (2,)), ((3,), ()), ((), (2,)), ((1,), (1,)), ((1,), (3,)), ((2, 1), (3,)), ((2, 2, 1), (2, 1, 2)),
    ((2, 1, 2), (1, 2, 1)), ((2, 2), (2, 2)),
)  # fmt: skip
STEPS = ("bias", "scale", "rows", "columns", "one", "relu", "silu", "gelu", "exact", "residual", "amax", "total")


def multiple(n: int, unit: int) -> int:
    return max(unit, n // unit * unit)


def operand(d: Draw, name: str, shape: tuple[int, ...], kind: torch.dtype, along_k: int) -> torch.Tensor:
    """An operand, mostly of rows that are read as they lie. along_k: which of its modes is K, -1 or -2."""
    lies = not d.one_in(4)
    unit = 16 // kind.itemsize if lies else 1
    if kind == torch.int8:
        x = torch.randint(-128, 128, shape, generator=d.torch).to(kind)
    else:
        x = d.elements(shape, torch.float32).clamp(-300, 300).to(kind)
    turn = along_k == -2 if kind.itemsize != 2 and lies else d.option_in(2)
    x = d.laid(name, x.mT if turn else x, unit=unit, broadcast=x.ndim > 2)
    return d.note(name, x.mT if turn else x)


def epilogue(d: Draw, shape: tuple[int, ...], kind: torch.dtype, pairs: bool):
    """Some steps; gives the Epilogue, its reference, and tensors that it writes with what they must hold."""
    m, n = shape[-2:]
    made, steps, checks = None, [], []
    names = [d.option(*STEPS) for _ in range(d.option(0, 0, 1, 1, 2, 3))]
    for name in d.note("epilogue", names):
        vector = lambda k: torch.randn(k, generator=d.torch).to(d.option(torch.float32, torch.bfloat16))  # noqa: E731
        width = n * 2 if pairs else n
        if pairs and name in ("residual", "amax", "total", "rows", "one"):
            continue
        if name == "bias":
            v = vector(width)
            step, exact = gemm.bias(v), lambda x, v=v: x + v.double()
        elif name in ("scale", "one"):
            f = torch.tensor([0.75]) if name == "one" else 0.75
            step, exact = gemm.scale(f), lambda x: x * 0.75
        elif name in ("rows", "columns"):
            v = vector(m if name == "rows" else width)
            step, exact = gemm.scale(v, name), lambda x, v=v, r=name == "rows": x * (v[:, None] if r else v).double()
        elif name == "residual":
            if any(s[0] == "residual" for s in steps):
                continue
            v = torch.randn(shape, generator=d.torch).to(kind)
            step, exact = gemm.residual(v, 0.5), lambda x, v=v: x + 0.5 * v.double()
        elif name in ("amax", "total"):
            along = d.option("all", "rows", "columns")
            batch = shape[:-2] if along != "all" else ()
            held = torch.zeros((*batch, {"all": 1, "rows": m, "columns": n}[along]))
            step = (gemm.amax if name == "amax" else gemm.total)(held, along)

            def exact(x, held=held, along=along, name=name):
                over = {"all": tuple(range(x.ndim)), "rows": (-1,), "columns": (-2,)}[along]
                checks.append((name, held, (x.abs().amax(over) if name == "amax" else x.sum(over)).reshape(held.shape)))
                return x
        else:
            step = {"relu": gemm.relu, "silu": gemm.silu, "gelu": gemm.gelu, "exact": lambda: gemm.gelu("none")}[name]()
            exact = {
                "relu": torch.relu, "silu": torch.nn.functional.silu,
                "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"), "exact": torch.nn.functional.gelu,
            }[name]  # fmt: skip
        made = step if made is None else made | step
        steps.append((name, exact))
    if pairs:
        glu = d.note("pairs", d.option("swiglu", "geglu"))
        step = getattr(gemm, glu)()
        made = step if made is None else made | step
        act = torch.nn.functional.silu if glu == "swiglu" else lambda x: torch.nn.functional.gelu(x, approximate="tanh")
        steps.append((glu, lambda x: act(x[..., :n]) * x[..., n:]))
    return made, steps, checks


def matmul(d: Draw) -> None:
    kind = d.option(*TYPES)
    m, n, k = (0 if d.one_in(30) else n for n in (d.of(*EXTENTS), d.of(*EXTENTS), d.of(*EXTENTS, 320, 400)))
    pairs = kind.itemsize == 2 and d.option_in(6)
    result = (
        torch.float32 if kind == torch.float32 or d.option_in(5) else torch.bfloat16 if kind.itemsize == 1 else kind
    )
    n = multiple(n, 16 if pairs else 8) if n and d.option_in(2) else 2 * n if pairs else n
    batch_a, batch_b = ((), ()) if d.option_in(2) else d.option(*BATCHES)
    a = operand(d, "a", (*batch_a, m, k), kind, -1)
    b = operand(d, "b", (*batch_b, k, n), kind, -2)
    shape = (*torch.broadcast_shapes(batch_a, batch_b), m, n // 2 if pairs else n)
    made, steps, checks = epilogue(d, shape, result, pairs) if kind != torch.int8 else (None, [], [])
    out, given = None, {}
    if kind == torch.int8:
        result = torch.int32
    elif d.one_in(4):
        unit = 16 // result.itemsize if d.one_in(2) else 1
        out = d.laid("out", torch.zeros(shape, dtype=result), last=unit > 1, unit=unit, broadcast=False)
    if out is None and kind != torch.int8:
        given["out_dtype"] = result
    if d.one_in(4):
        width = 8 * result.itemsize
        on_blackwell = entry.family_of(entry.simulated()) == entry.TENSOR_MEMORY
        of = (
            umma_plan.cuts(k, operands_of(a))
            if on_blackwell
            else cuts(torch.empty(shape), k, operands_of(a), None, width)
        )
        found = of if not pairs and not steps else []
        given["cut"] = d.note("cut", d.of(*found)) if found else None
    made_of = kernels.matmul(a, b, epilogue=made, out=out, **given)
    x, y = a.double(), b.double()
    want = x @ y
    if not math.prod(shape):
        return close("result", made_of, torch.empty(shape))
    if kind == torch.int8:
        return equal("result", made_of, want)
    size = (x.nan_to_num(0, 0, 0).abs() @ y.nan_to_num(0, 0, 0).abs()).max() + 1e-6  # of K 0 it is that
    add = ACCUMULATED.get(kind, 2.0**-18)
    for name, exact in steps:
        before = float(want.abs().nan_to_num(0, 0, 0).max()) + 1e-6
        want = exact(want)
        if name in ("silu", "gelu", "swiglu", "geglu"):
            add += 2.0**-9
        size = max(float(size) * max(1.0, float(want.abs().nan_to_num(0, 0, 0).max()) / before), before)
    if bool(torch.isfinite(want).all()) or all(s in ("bias", "scale", "rows", "columns", "relu", "residual", "one")
                                               for s, _ in steps):  # fmt: skip
        close("result", made_of, want, size=size, add=add)
        for name, held, exact in checks:
            more = math.prod(shape) if name == "total" else 1
            close(name, held, exact, size=float(size) * more**0.5 * 4, add=add)
    if out is not None and made_of is not out:
        raise Wrong("it does not give what it was to write to")


def index_of(d: Draw, name: str, count: int, rows: int, once: bool) -> torch.Tensor:
    """Numbers of `count` of so many rows, some of them none. once: each comes once."""
    index = torch.randperm(rows, generator=d.torch) if once else torch.randint(0, rows, (count,), generator=d.torch)
    index = index[:count].to(d.of(torch.int32, torch.int64))
    for value in (-1, rows, -(2**31)) if d.one_in(3) else ():
        index[d.random.randrange(count)] = value
    return d.note(name, index)


def there(index: torch.Tensor, count: int) -> torch.Tensor:
    """Which of some numbers are of one of so many rows."""
    return (index >= 0) & (index < count)


def matmul_rows(d: Draw) -> None:
    """Rows of A and of the result that an index names, perhaps with an epilogue; with gradients where all are rows."""
    kind = d.option(torch.bfloat16, torch.float16, torch.float32, F8)
    m, n, k = d.of(*EXTENTS), d.of(*EXTENTS), d.of(*EXTENTS, 320)
    which = d.option("a", "c", "ac")
    rows, goal = d.of(*EXTENTS), m + d.of(0, 0, 1, 7)
    a = operand(d, "a", (rows if "a" in which else m, k), kind, -1)
    b = operand(d, "b", (k, n), kind, -2)
    index_a = index_of(d, "rows_of_a", m, rows, False) if "a" in which else None
    index_c = index_of(d, "rows_of_c", m, goal, True) if "c" in which else None
    result = torch.bfloat16 if kind == F8 else kind
    out = torch.full((goal, n), 7.0).to(result) if "c" in which and d.one_in(2) else None
    names = {"rows_of_a": index_a, "rows_of_c": index_c}
    bent = d.note("bent", d.option_in(2))
    vectors = [torch.randn(count, generator=d.torch) for count in ((m, n) if bent else ())]
    given = [torch.randn((m, n), generator=d.torch).to(result)] if bent and d.option_in(2) else []

    def entry(a: torch.Tensor, b: torch.Tensor, *vectors: torch.Tensor) -> torch.Tensor:
        step = gemm.scale(vectors[0], "rows") | gemm.bias(vectors[1]) if vectors else None
        step = step | gemm.residual(given[0]) if given else step
        return kernels.matmul(a, b, out=out, epilogue=step, **names)

    def steps(z: torch.Tensor, *vectors: torch.Tensor) -> torch.Tensor:
        z = z * vectors[0][:, None].to(z.dtype) + vectors[1].to(z.dtype) if vectors else z
        return z + given[0].to(z.dtype) if given else z

    made = entry(a, b, *vectors)
    x = a.double() if index_a is None else a.double()[index_a.long().clamp(0, rows - 1)]
    x = x if index_a is None else torch.where(there(index_a, rows)[:, None], x, torch.nan)
    want = steps(x @ b.double(), *vectors)
    size = float((x.nan_to_num(0, 0, 0).abs() @ b.double().nan_to_num(0, 0, 0).abs()).max()) + 1e-6
    size = (size + 1) * (1 + float(vectors[0].abs().max())) + 4 if bent else size
    if index_c is not None:
        held = there(index_c, made.shape[0])
        whole = torch.full(made.shape, 0.0 if out is None else 7.0).double()
        want = whole.index_copy(0, index_c[held].long(), want[held])
    close("result", made, want, size=size, add=ACCUMULATED.get(kind, 2.0**-18))
    whole_a = index_a is None or bool(there(index_a, rows).all())
    if kind in (torch.bfloat16, torch.float32) and whole_a and out is None and bool(torch.isfinite(want).all()):

        def reference(a: torch.Tensor, b: torch.Tensor, *vectors: torch.Tensor) -> torch.Tensor:
            z = steps((a if index_a is None else a[index_a.long()]) @ b, *vectors)
            if index_c is None:
                return z
            held = there(index_c, made.shape[0])
            return torch.zeros(made.shape, dtype=z.dtype).index_copy(0, index_c[held].long(), z[held])

        add = 2.0**-7 if kind == torch.bfloat16 else 2.0**-9
        gradients(d, entry, reference, [a, b, *vectors], add=add)


def ends_of(d: Draw, groups: int, rows: int, all_rows: bool = False) -> torch.Tensor:
    cuts_ = sorted(d.of(0, rows, d.random.randint(0, rows)) for _ in range(groups))
    if all_rows or d.one_in(2):
        cuts_[-1] = rows
    return d.note("ends", torch.tensor(cuts_, dtype=torch.int32))


def grouped_gemm(d: Draw) -> None:
    kind = d.option(torch.bfloat16, torch.float16, F8)
    unit = 16 // kind.itemsize
    groups, rows = d.of(1, 2, 3, 5), d.of(0, 1, 3, 17, 64, 129, 150, 200)
    n, k = multiple(d.of(*EXTENTS), 8), d.of(*EXTENTS)
    a = d.laid("a", d.elements((rows, k), kind), unit=unit)
    turn = kind.itemsize == 2 and d.option_in(3)
    b = d.elements((groups, n, k), kind)
    b = d.laid("b", b.mT if turn else b, unit=unit)
    b = b.mT if turn else b
    ends = ends_of(d, groups, rows)
    d.note("ends are", ends.tolist())
    kind_c = kind if kind.itemsize == 2 else torch.bfloat16
    out = d.laid("out", torch.full((rows, n), 7.0).to(kind_c), unit=8, broadcast=False)
    made = kernels.grouped_gemm(a, b, ends, out=out)
    want, begin = torch.full((rows, n), 7.0).double(), 0
    for g, end in enumerate(ends.tolist()):
        want[begin:end] = a[begin:end].double() @ b[g].double().T
        begin = max(begin, end)
    size = float(a.double().nan_to_num(0, 0, 0).abs().max(-1)[0].max() * k * 3 + 1) if rows else 1.0
    close("result", made, want, size=size, add=ACCUMULATED.get(kind, 2.0**-18))
    if kind == F8 or not rows or not d.one_in(3) or not bool(torch.isfinite(a).all() and torch.isfinite(b).all()):
        return

    def own(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        first = [0, *ends.tolist()]
        return torch.cat([a[i:j] @ b[g].T for g, (i, j) in enumerate(zip(first, first[1:]))])

    if ends[-1]:  # what is behind it is nobody's
        gradients(d, lambda a, b: kernels.grouped_gemm(a, b, ends)[: ends[-1]], own, [a, b], add=2.0**-7)


def grouped_rows(d: Draw) -> None:
    """Groups with an epilogue, and rows of A and of the result that an index names; with gradients where all are."""
    kind, which = d.option(torch.bfloat16, torch.float16, F8), d.option("", "a", "c", "ac")
    groups, m, k = d.of(1, 2, 3, 5), d.of(1, 3, 17, 64, 129), multiple(d.of(*EXTENTS), 16 // kind.itemsize)
    result = torch.bfloat16 if kind == F8 else kind
    pairs, factor, shift = d.option_in(2), d.option_in(2), d.option("none", "all", "each")
    n = multiple(d.of(*EXTENTS), 8) * (1 + pairs)
    rows, goal = d.of(1, 3, 17, 64), m + d.of(0, 0, 1, 7)
    a, ends = d.elements((rows if "a" in which else m, k), kind), ends_of(d, groups, m)
    b = d.elements((groups, n, k), kind)
    b = b.mT.contiguous().mT if d.option_in(3) and kind != F8 else b
    index_a = index_of(d, "rows_of_a", m, rows, False) if "a" in which else None
    index_c = index_of(d, "rows_of_c", m, goal, True) if "c" in which else None
    out = torch.full((goal, n // (1 + pairs)), 7.0).to(result) if "c" in which and d.one_in(2) else None
    v = torch.randn(m, generator=d.torch) if factor else None
    w = None if shift == "none" else torch.randn((n,) if shift == "all" else (groups, n), generator=d.torch)
    names, others = {"rows_of_a": index_a, "rows_of_c": index_c}, [x for x in (v, w) if x is not None]

    def entry(a: torch.Tensor, b: torch.Tensor, *given: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        left, step = list(given), None
        by = left.pop(0) if factor else None
        if left:
            step = gemm.bias(left.pop())
        if pairs:
            step = gemm.swiglu() if step is None else step | gemm.swiglu()
        if by is not None:
            step = gemm.scale(by, "rows") if step is None else step | gemm.scale(by, "rows")
        return kernels.grouped_gemm(a, b, ends, epilogue=step, out=out, **names)

    last = int(ends[-1])
    kept = torch.arange(m) < last if index_c is None else there(index_c, goal if out is not None else m)
    kept &= torch.arange(m) < last

    def reference(a: torch.Tensor, b: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
        left, made, begin = list(given), [], 0
        by = left.pop(0) if factor else None
        x = a if index_a is None else a[index_a.long().clamp(0, rows - 1)]
        x = x if index_a is None else torch.where(there(index_a, rows)[:, None], x, torch.nan)
        for g, end in enumerate(ends.tolist()):
            z = x[begin:end] @ b[g].T
            z = z + (left[0] if shift == "all" else left[0][g]) if left else z
            made.append(torch.nn.functional.silu(z[:, : n // 2]) * z[:, n // 2 :] if pairs else z)
            begin = end
        y = torch.cat(made)
        return y if by is None else y * by[:last, None]

    made = entry(a, b, *others, out=out)
    want = reference(*(t.double() for t in (a, b, *others)))
    got = made if index_c is None else made[index_c.long().clamp(0, len(made) - 1)]
    size = float(want.nan_to_num(0, 0, 0).abs().max() if want.numel() else 0) + k
    close("result", got[kept], want[kept[:last]], size=size, add=2.0**-9 + ACCUMULATED.get(kind, 0.0))
    if index_c is not None:
        own = torch.ones(len(made), dtype=torch.bool)
        own[index_c[kept].long()] = False
        equal("what nothing goes to", made[own], torch.full_like(made[own], 0.0 if out is None else 7.0))
    whole = all(i is None or bool(there(i, c).all()) for i, c in ((index_a, rows), (index_c, m)))
    if last and whole and out is None and kind != F8 and bool(torch.isfinite(want).all()):
        pick = lambda y: (y if index_c is None else y[index_c.long()])[:last]  # noqa: E731
        call = lambda *given: pick(entry(*given))  # noqa: E731
        gradients(d, call, reference, [a, b, *others], add=2.0**-5)  # of a factor: products of 16 bits that cancel


def blockscaled_gemm(d: Draw) -> None:
    m, n, k = d.of(0, 1, 3, 17, 64, 129, 150), multiple(d.of(*EXTENTS), 8), multiple(d.of(*EXTENTS, 300), 16)
    groups = d.option(None, None, 1, 2, 3)
    a = d.laid("a", d.elements((m, k), F8), unit=16)
    shape = (n, k) if groups is None else (groups, n, k)
    b = d.laid("b", d.elements(shape, F8), unit=16)
    blocks_k, blocks_n = -(-k // 128), -(-n // 128)
    scales = lambda *s: torch.rand(s, generator=d.torch) + 0.5  # noqa: E731
    scales_a = d.laid("scales_a", scales(m, blocks_k), last=False)
    scales_b = d.laid("scales_b", scales(*shape[:-2], blocks_n, blocks_k), last=False)
    ends = None if groups is None else ends_of(d, groups, m, all_rows=True)
    made = kernels.blockscaled_gemm(a, b, scales_a, scales_b, ends)
    wide_a = a.double() * scales_a.double().repeat_interleave(128, -1)[:, :k]
    wide_b = b.double() * (
        scales_b.double().repeat_interleave(128, -1).repeat_interleave(128, -2)[..., :n, :k]
    )  # fmt: skip
    want, begin = torch.zeros((m, n)).double(), 0
    for g, end in enumerate([m] if ends is None else ends.tolist()):
        want[begin:end] = wide_a[begin:end] @ (wide_b if groups is None else wide_b[g]).T
        begin = max(begin, end)
    size = float(wide_a.nan_to_num(0, 0, 0).abs().max() * k * 4 + 1) if m else 1.0
    close("result", made, want, size=size, add=2.0**-12)


def mixed_gemm(d: Draw) -> None:
    kind = d.option(torch.bfloat16, torch.float16)
    m, n, k = d.of(0, 1, 3, 17, 64, 100, 129), multiple(d.of(*EXTENTS), 8), d.of(*EXTENTS, 300)
    signed = d.option_in(2)
    w = torch.randint(-8 if signed else 0, 8 if signed else 16, (n, k), generator=d.torch)
    w = d.laid("w", w.to(torch.int8 if signed else torch.uint8), last=False)
    size = d.of(128, 32, 64, 256, -1)
    of_group = k if size == -1 else size
    blocks = -(-k // of_group)
    scales = d.laid("scales", (torch.rand((n, blocks), generator=d.torch) + 0.1).to(kind), last=False)
    zeros = None
    if d.option_in(2):
        zeros = torch.randint(-8 if signed else 0, 8 if signed else 16, (n, blocks), generator=d.torch)
        zeros = d.laid("zeros", zeros.to(d.of(w.dtype, torch.int32)), last=False)
    x = d.laid("x", d.elements((m, k), kind), unit=8)
    made = kernels.mixed_gemm(x, kernels.int4_weights(w, scales, zeros, group_size=size))
    wide = lambda t: t.double().repeat_interleave(of_group, -1)[:, :k]  # noqa: E731
    weights = (w.double() - (0 if zeros is None else wide(zeros))) * wide(scales)
    rounded = weights.to(kind).double()
    want = x.double() @ weights.T
    if bool(torch.isfinite(want).all()):
        size = (x.double().abs() @ weights.abs().T).max() if m else torch.tensor(1.0)
        return close("result", made, want, size=float(size) + 1e-6, add=2.0**-8)
    finite = torch.isfinite(x.double().sum(-1)) if m else torch.zeros(0, dtype=torch.bool)
    rows = made[finite]
    close("rows without NaN", rows, (x.double() @ rounded.T)[finite], size=float(k * 20), add=2.0**-8)


CASES = {
    "matmul": matmul, "matmul_rows": matmul_rows, "grouped_gemm": grouped_gemm,
    "grouped_rows": grouped_rows, "blockscaled_gemm": blockscaled_gemm,
    "mixed_gemm": mixed_gemm,
}  # fmt: skip
