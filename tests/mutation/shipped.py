# SPDX-License-Identifier: Apache-2.0
"""The kernels of `numba_cute.kernels` on the small problems of their own tests."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.kernels import reduce
from numba_cute.kernels.attention import (
    again,
    append,
    backward,
    backward_parts,
    backward_queries,
    backward_tiles,
    backward_wide,
    forward,
    gradients,
    schedule,
    split,
    values,
    warps as attention_warps,
    warps_backward,
)
from numba_cute.kernels.gemm import (
    bias,
    grouped,
    indexed,
    mixed,
    multiply,
    output,
    residual,
    umma,
    umma_outer,
    umma_parts,
    warps,
)
from numba_cute.kernels.moves import box, skew, turn
from numba_cute.kernels.rows import norm, softmax, spread, topk

from ..kernels.attention import (
    test_append,
    test_backward,
    test_decode,
    test_forward,
    test_fp8,
    test_warps as test_attention_warps,
)
from ..kernels.gemm import (
    test_grouped,
    test_grouped_rows,
    test_indexed,
    test_mixed,
    test_umma,
    test_umma_grouped,
    test_warps,
)
from ..kernels.moves import test_permute
from ..kernels.rows import arrays, test_norm, test_softmax, test_topk
from .mutants import functions_of
from .source import Kernel

Problem = Callable[[], None]
BF16, E4M3 = test_grouped.BF16, test_grouped.E4M3
SEQUENCE = cute.simulate.sequence


def kernel(name: str, module: ModuleType, functions: str, *problems: Problem) -> Kernel:
    """Functions of a module, which these problems use, the quickest first."""
    mutated, names = functions.split(), set()
    for top in ast.parse(inspect.getsource(module)).body:
        if isinstance(top, ast.FunctionDef) and any(f in mutated for f, _ in functions_of(ast.Module([top], []))):
            names.add(top.name)
        elif isinstance(top, ast.Assign) and any(
            isinstance(n, ast.Name) and n.id in names for n in ast.walk(top.value)
        ):
            names |= {t.id for t in top.targets if isinstance(t, ast.Name)}
    methods = [f for f in mutated if "." in f]

    def run(problem: Problem, space: dict, options: dict) -> None:
        with (
            _as_in(space, module, names, methods),
            mock.patch.object(cute, "simulate", partial(cute.simulate, **options)),
        ):
            problem()

    return Kernel(name, module, frozenset(mutated), tuple(partial(run, problem) for problem in problems))


@contextmanager
def _as_in(space: dict, module: ModuleType, names: set[str], methods: list[str]) -> Iterator[None]:
    """Have the library's kernels use the functions of these names, and these methods, as `space` defines them, and
    nothing else of it."""
    if space is vars(module):
        yield
        return
    held, made = vars(module), dict(space)
    classes = {m.split(".")[0] for m in methods}  # they stay the mutant's, for the problem after this one
    space.update({name: x for name, x in held.items() if name not in names | classes})
    changed = {id(held[name]): made[name] for name in names}
    kernels = [vars(m) for name, m in sys.modules.items() if name.startswith("numba_cute.kernels")]
    before = [(scope, name, x) for scope in kernels for name, x in scope.items() if id(x) in changed]
    of_classes = [(held[c], f, vars(held[c])[f], vars(made[c])[f]) for c, f in (m.split(".") for m in methods)]
    try:
        for scope, name, x in before:
            scope[name] = changed[id(x)]
        for cls, name, _, new in of_classes:
            setattr(cls, name, new)
        _forget(kernels)
        yield
    finally:
        _forget(kernels)
        for scope, name, x in before:
            scope[name] = x
        for cls, name, x, _ in of_classes:
            setattr(cls, name, x)


def _forget(kernels: list[dict[str, Any]]) -> None:
    """Forget the kernels that were made for the forms of a problem: they hold functions as they were."""
    for made in {id(x): x for scope in kernels for x in scope.values() if hasattr(x, "cache_clear")}.values():
        made.cache_clear()


def _behind(problem: Problem, times: int = 1) -> Problem:
    """The problem with each launch so often, each begun before the one before it has ended."""

    def run() -> None:
        simulate, launched = cute.simulate, []

        class After:
            def __init__(self, kernel: Any, **options: Any) -> None:
                self.made = partial(simulate, kernel, **options)

            def __getitem__(self, config: Any) -> Callable[..., None]:
                def launch(*args: Any) -> None:
                    for _ in range(times):
                        self.made(pdl=bool(launched))[config](*args)
                        launched.append(config)

                return launch

        with SEQUENCE(), mock.patch.object(cute, "simulate", After):
            problem()

    return run


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _norm(name: str) -> Problem:
    return lambda: test_norm.test_every_spread_is_right_in_the_simulator(_rng(), name, arrays.BF16, True, True)


def _softmax(name: str) -> Problem:
    return lambda: test_softmax.test_every_spread_is_right_in_the_simulator(_rng(), name, arrays.BF16, 0.2, 0.01)


def _attention(case: str) -> Problem:
    return partial(test_forward.test_it_agrees_with_float64_in_the_simulator, case)


def _grown() -> None:
    """Exponentials grow from block to block, so that scores are computed again, and stages are filled anew at once."""
    q, k, v = test_forward.random(test_forward.BF16, (1, 64, 1, 64), (1, 200, 1, 64), (1, 200, 1, 64))
    k *= np.linspace(60, 1, 200, dtype=np.float32).astype(test_forward.BF16)[None, :, None, None]
    o, lse = test_forward.simulate(q, k, v, test_forward.ALL, test_forward.BF16, (1, 1, 64), lazy=True, tile=(128, 16))
    test_forward.reference.check(o, lse, *test_forward.batched(q, k, v))


def _many_tiles() -> None:
    """One CTA has more tiles, each of one block of keys, than tickets and stages, and more stages than tickets: no
    stage's barrier orders what a ticket's should."""
    q, k, v = test_forward.random(test_forward.BF16, (1, 20, 7, 64), (1, 40, 1, 64), (1, 40, 1, 64))
    o, lse = test_forward.simulate(
        q, k, v, test_forward.ALL, test_forward.BF16, (1, 7, 20), pack=1, q_stages=2, stages=4, tile=(128, 64)
    )
    test_forward.reference.check(o, lse, *test_forward.batched(q, k, v))


def _few(case: str) -> Problem:
    return partial(test_decode.test_parts_join_to_what_float64_gives_in_the_simulator, case)


def _narrow(case: str) -> Problem:
    return partial(test_fp8.test_it_agrees_with_float64_in_the_simulator, case)


def _gradients(rows: int, keys: int, causal: bool, sms: int, heads: int = 1) -> Problem:
    return lambda: test_backward.simulate((64, 64), np.float16, 1, heads, heads, rows, keys, causal, sms)


def _wide(dims: tuple[int, int], rows: int, keys: int, causal: bool, heads: int = 1) -> Problem:
    return lambda: test_backward.simulate(dims, np.float16, 1, heads, 1, rows, keys, causal)


@cuda.jit
def _add(of, to):
    """Add up all of an array, in a kernel that begins before the one before it has ended."""
    arch.griddepcontrol_wait()
    total = cute.Float32(0)
    for i in range(of.shape[1]):
        total += cute.Float32(of[0, i, 0, 0])
    to[0] = total


def _read_after(problem: Problem) -> Problem:
    """The problem with kernels behind it that read the gradients."""
    launches = gradients.launches

    def followed(given: Any, *rest: Any, **named: Any) -> Any:
        reads = [SimpleNamespace(kernel=_add, grid=1, block=1, args=(of, np.zeros(1, np.float32))) for of in given[-3:]]
        return [*launches(given, *rest, **named), *reads]

    def run() -> None:
        with mock.patch.object(gradients, "launches", followed):
            problem()

    return _behind(run)


def _top(name: str) -> Problem:
    kind = arrays.F32 if arrays.SPREADS[name][0].vector < 8 else arrays.BF16
    return lambda: test_topk.test_every_spread_is_right_in_the_simulator(_rng(), name, kind, True, True)


def _groups(*rows: int, n: int, k: int, dtype: Any, cut: Any, scaled: bool = False) -> Problem:
    how = {"scaled": True} if scaled else {}
    return lambda: test_grouped.test_each_group_is_multiplied_by_its_own_matrix(rows, n, k, dtype, cut, how)


def _experts(*rows: int, n: int, k: int) -> Problem:
    """Groups whose rows are gathered and stored by an index, with pairs and vectors."""
    how = {"of_a": 30, "of_c": sum(rows) + 20, "pairs": True, "vectors": True}

    def run() -> None:
        a, b, ends, c, named, epilogue, want = test_grouped_rows.problem(rows, n, k, BF16, **how)
        grouped.plan(a, b, ends, c, cut=test_grouped_rows.NARROW, epilogue=epilogue, rows=named).simulate()
        test_grouped_rows.compare(c, want)

    return run


def _appended() -> None:
    test_append.test_keys_and_values_come_where_a_sequence_ends(True, False)


def _weights(*shape: int, tile_n: int, parts: int = 1, sharers: int = 1, stages: int = 0, room: int = 132) -> Problem:
    """Weights of 4 bits on so many clusters."""
    how = test_mixed.cut(tile_n, parts, sharers)._replace(stages=stages)

    def run() -> None:
        with mock.patch.object(mixed, "most_clusters", lambda *_: room):
            test_mixed.test_weights_are_widened_on_their_way(shape, test_mixed.BF16, how, {})

    return run


def _warps(m: int, n: int, k: int, matrix: bool = False) -> Problem:
    """Two warps, whose tile leaves in pieces by two slots, with vectors. matrix: with a matrix, too."""

    def run() -> None:
        a, b, c, whole, want, rng = test_warps.problem(m, n, k)
        v, r = rng.standard_normal(n).astype(np.float32), rng.standard_normal((m, n)).astype(c.dtype)
        epilogue = bias(v) | residual(r) if matrix else bias(v)
        test_warps.simulate(a, b, c, BF16, test_warps.Warps((64, 64), (1, 2), 64, stages=3), epilogue)
        test_warps.check(c, whole, want + v + (r.astype(np.float64) if matrix else 0.0))

    return run


def _umma(shape: tuple[int, int, int], cut: Any, matrix: bool = False) -> Problem:
    """tcgen05's GEMM, with vectors, and perhaps a matrix like C."""

    def run() -> None:
        a, b, c, whole, want, rng = test_umma.problem(*shape)
        v, r = rng.standard_normal(shape[1]).astype(np.float32), rng.standard_normal(shape[:2]).astype(c.dtype)
        epilogue = bias(v) | residual(r) if matrix else bias(v)
        test_umma.simulate(a, b, c, BF16, cut, epilogue)
        test_umma.check(c, whole, want + v + (r.astype(np.float64) if matrix else 0.0))

    return run


def _over_rows(*rows: int, m: int, n: int, cut: Any) -> Problem:
    return partial(test_umma_grouped.test_rows_of_each_group_are_summed, rows, m, n, BF16, cut)


def _turned() -> None:
    with test_permute.knowing(tiles={2: [(8, 8, 1)]}):
        test_permute.simulated((56, 112), (1, 0), "f2", kernel=turn.turn)


def _moved() -> None:
    test_permute.simulated(*test_permute.BOXED[0], kernel=box.move)


def _by_warps(case: str) -> Problem:
    return partial(test_attention_warps.test_it_agrees_with_float64_in_the_simulator, case)


def _gradients_by_warps(case: str) -> Problem:
    return partial(test_attention_warps.test_gradients_agree_with_float64_in_the_simulator, case)


PLAIN = _groups(5, 0, 70, n=24, k=24, dtype=BF16, cut=test_grouped.NARROW)
SHARED = _groups(3, 0, 270, 130, n=264, k=72, dtype=BF16, cut=test_grouped.ROWS)
SCALED = _groups(130, 3, n=136, k=272, dtype=E4M3, cut=test_grouped.NARROW, scaled=True)
LONG = _groups(5, n=24, k=400, dtype=BF16, cut=test_grouped.NARROW)
TWO_HALVES = _groups(130, 3, n=24, k=400, dtype=E4M3, cut=test_grouped.COLUMNS, scaled=True)
EXPERTS = _experts(5, 0, 70, n=160, k=400)  # two tiles of columns, and more of K than stages
ALONE, CLUSTER, RING = "teams that read again", "a cluster", "warps with a ring"

KERNELS = [
    kernel("kernels: meetings", reduce, "Meeting.among_blocks Meeting.open Meeting.reduce Meeting.sync",
           _norm(ALONE), _norm(CLUSTER), _norm("a cluster of one warp each")),
    kernel("kernels: streams", spread, "Stream.copy Stream.open Stream.place Stream.refill Stream.take Stream.wait "
           "Team.begin Team.leave", _norm(RING), _norm(ALONE), _norm(CLUSTER), _norm("a cluster that reads again")),
    kernel("kernels: norms", norm, "backward columns", _norm("warps"), _norm("several warps, ragged, with a ring"),
           lambda: test_norm.test_columns_are_added(_rng())),
    kernel("kernels: softmax", softmax, "finish_losses gradient_of loss_of mean_of part_in_memory product_of",
           _softmax("a part of a warp"), _softmax(CLUSTER), _softmax(ALONE),
           _softmax("several warps, ragged, with a ring")),
    kernel("kernels: top k", topk, "come gather length_of listed order topk_backward topk_forward",
           lambda: test_topk.test_a_row_and_its_gradient_are_right_in_the_simulator(_rng()),
           _top("warps that read again"), _top(CLUSTER)),
    kernel("kernels: boxes", box, "move", _moved),
    kernel("kernels: turns", turn, "turn", _turned),
    kernel("kernels: skewed tiles", skew, "skew", lambda: test_permute.skewed(*test_permute.SKEWED[0])),
    kernel("kernels: grouped GEMM", grouped, "grouped", PLAIN, SHARED, SCALED,
           _behind(PLAIN, 2), EXPERTS),
    kernel("kernels: how a tile leaves", output, "Pieces.put Stores.create Stores.put Stores.put_rows Stores.tail",
           PLAIN, EXPERTS, SHARED),
    kernel("kernels: products", multiply, "plainly nothing release start scaled", PLAIN, LONG, SCALED, TWO_HALVES,
           EXPERTS),
    kernel("kernels: ampere GEMM", warps, "add_up leave", _warps(64, 64, 160), _warps(64, 64, 40, True)),
    kernel("kernels: tcgen05 GEMM", umma, "fill left multiply", _umma((136, 136, 200), test_umma.LEAST, True),
           _umma((136, 264, 72), test_umma.Umma(256, 1), True),
           _umma((136, 136, 200), test_umma.LEAST._replace(splits=2)), _umma((300, 136, 72), test_umma.PAIR),
           _behind(_umma((40, 72, 40), test_umma.LEAST), 2),
           partial(test_indexed.check, 150, 24, 300, 30, 200, test_umma.Umma(64, 2))),
    kernel("kernels: tcgen05's parts", umma_parts, "plainly give_back Multiplier.multiply Leaving.put "
           "Leaving.put_piece Leaving.fill Leaving.tail Leaving.create Multiplier.create Rings.create Way.put "
           "Way.take tensor_memory", _over_rows(70, 0, 130, m=136, n=136, cut=test_umma.LEAST),
           _over_rows(600, m=136, n=264, cut=test_umma_grouped.ALONE), _umma((136, 136, 200), test_umma.LEAST)),
    kernel("kernels: tcgen05 over rows", umma_outer, "outer", _over_rows(5, 0, 70, m=8, n=16, cut=test_umma.LEAST),
           _over_rows(70, 0, 130, m=264, n=136, cut=test_umma.PAIR),
           _behind(_over_rows(5, 0, 70, m=8, n=16, cut=test_umma.LEAST), 2)),
    kernel("kernels: rows by an index", indexed, "gather gather_tile gather_end hand_over store_piece Rows.copy "
           "Rows.spoil Rows.store",
           partial(test_indexed.check, 150, 18, 400, 30, 200, test_indexed.SMALL._replace(stages=3)),
           partial(test_indexed.check, 20, 200, 24, None, 30, test_indexed.Plan(256, 1, slots=1), added=True), EXPERTS),
    kernel("kernels: weights of 4 bits", mixed, "mixed", _weights(5, 72, 136, tile_n=16, stages=2),
           _weights(50, 72, 120, tile_n=16, stages=2, room=1), _weights(20, 72, 264, tile_n=16, stages=2, room=1),
           _behind(_weights(5, 72, 136, tile_n=16), 2), _weights(20, 200, 264, tile_n=32, sharers=2),
           _weights(20, 200, 264, tile_n=32, parts=2, sharers=2)),
    kernel("kernels: attention", forward, "kernel multiply_scores multiply_values", _many_tiles,
           _attention("packed_of_three"),
           _attention("causal"), _attention("cluster"), _few("causal"), _behind(_narrow("ragged"), 2),
           partial(test_forward.test_what_lies_behind_the_last_key_is_not_seen, 0)),
    kernel("kernels: attention's scores once more", again, "again", _grown),
    kernel("kernels: appended keys", append, "append make_append", _behind(_appended, 2)),
    kernel("kernels: attention's tiles", schedule, "begin_tickets next_drawn next_told", _many_tiles,
           _attention("no_draws"),
           _attention("causal"), _attention("cluster")),
    kernel("kernels: attention of few", split, "join", _behind(_few("causal"))),
    kernel("kernels: attention's values", values, "turn", _behind(_narrow("ragged"), 2)),
    kernel("kernels: gradients", backward, "kernel leave load load_rows store",
           _behind(_gradients(40, 72, True, 1)),
           _gradients(300, 200, False, 1), _gradients(270, 260, True, 2), _gradients(140, 40, False, 1, 10)),
    kernel("kernels: gradients after", backward_parts, "after", _behind(_gradients(40, 72, True, 1))),
    kernel("kernels: gradients' tiles", backward_tiles, "publish release", _gradients(40, 72, True, 1),
           _gradients(300, 200, False, 1)),
    kernel("kernels: wide gradients", backward_wide, "dk_dv",
           _read_after(_wide((192, 128), 70, 150, True)), _wide((192, 128), 400, 70, False)),
    kernel("kernels: wide gradients of queries", backward_queries, "dq",
           _read_after(_wide((192, 128), 70, 150, True)), _wide((192, 128), 70, 400, False)),
    kernel("kernels: attention by warps", attention_warps, "attention", _by_warps("two_warps")),
    kernel("kernels: gradients by warps", warps_backward, "gradient_of_queries gradients_of_keys",
           _gradients_by_warps("two_warps")),
]  # fmt: skip
