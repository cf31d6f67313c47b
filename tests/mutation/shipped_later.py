# SPDX-License-Identifier: Apache-2.0
"""More kernels of `numba_cute.kernels`: attention and grouped GEMMs by tcgen05, attention over a latent cache, group
norms, and what of others stands in files of its own."""

from functools import partial
from typing import Any

import numpy as np

from numba_cute.kernels.attention import (
    backward_rows,
    latent,
    umma,
    umma_backward,
    umma_backward_roles,
    umma_correction,
    umma_load,
    umma_multiply,
    umma_softmax,
)
from numba_cute.kernels.conv import sums, windows
from numba_cute.kernels.distributed import (
    bringing,
    combine,
    dispatch,
    keys,
    ring,
    routes,
    scatter,
    sums as sums_of_gpus,
)
from numba_cute.kernels.gemm import grouped_outer, groups, mixed_warps, umma_grouped
from numba_cute.kernels.rows import bound, groupnorm, norm_parts

from ..kernels.attention import test_latent, test_umma, test_umma_backward
from ..kernels.conv import test_windows
from ..kernels.distributed import ranks, test_experts, test_ring_attention
from ..kernels.gemm import test_grouped, test_mixed_warps, test_umma_grouped
from ..kernels.rows import arrays, test_norm
from .shipped import EXPERTS, PLAIN, SHARED, Problem, _behind, _read_after, _rng, _top, _wide, kernel


def _by_tcgen05(case: str, **changed: Any) -> Problem:
    """A case of attention, perhaps with other options."""

    def run() -> None:
        batch, queries, keys, heads, kv_heads, d, dv, window, sms, options = test_umma.CASES[case]
        q, k, v = test_umma.random(
            test_umma.BF16, (batch, queries, heads, d), (batch, keys, kv_heads, d), (batch, keys, kv_heads, dv)
        )
        o, lse = test_umma.simulate(q, k, v, window, sms=sms, **options | changed)
        test_umma.reference.check(o, lse, *test_umma.batched(q, k, v, window=window))

    return run


def _cached() -> None:
    """Sequences of other lengths than their caches', whose values beyond are cleared."""
    test_umma.test_what_lies_behind_the_last_key_is_not_seen(0)


def _gradients(case: str) -> Problem:
    return partial(test_umma_backward.test_gradients_are_those_of_float64, case)


def _latent(case: str) -> Problem:
    return partial(test_latent.test_it_agrees_with_float64_in_the_simulator, case)


def _long(name: str) -> Problem:
    return lambda: test_norm.test_gradients_of_rows_that_are_read_twice_are_right(_rng(), name, False)


def _group_norms() -> None:
    """Apply a group norm, and its gradient, by teams that go through the rows with a ring."""
    rng, (spread, _, blocks) = _rng(), arrays.SPREADS["several warps, ragged, with a ring"]
    grouping = groupnorm.Grouping(4, 2, spread.length)
    x, dy = (rng.standard_normal((12, spread.length)).astype(arrays.BF16) for _ in range(2))
    weight = rng.standard_normal(4).astype(np.float32)
    mean, rstd, products, sums = (rng.random(6).astype(np.float32) + 0.5 for _ in range(4))
    y, dx = np.empty_like(x), np.empty_like(x)
    of = lambda v: np.repeat(v.astype(np.float64), 2)[:, None]  # noqa: E731
    h, g = (x.astype(np.float64) - of(mean)) * of(rstd), np.tile(weight, 3).astype(np.float64)[:, None]
    arrays.work(groupnorm.groupnorm_apply, spread, blocks, grouping).simulate(x, weight, None, mean, rstd, y)
    arrays.near(y, h * g, arrays.BF16, 2)
    finishing = arrays.work(groupnorm.groupnorm_backward, spread, blocks, grouping)
    finishing.simulate(x, dy, weight, mean, rstd, products, sums, dx)
    want = (dy.astype(np.float64) * g - h * of(products) - of(sums)) * of(rstd)
    arrays.near(dx, want, arrays.BF16, 4)


def _of_groups(*rows: int, n: int, k: int, cut: Any) -> Problem:
    """A grouped GEMM by tcgen05."""
    return partial(
        test_umma_grouped.test_each_group_is_multiplied_by_its_own_matrix, rows, n, k, test_umma_grouped.BF16, cut, {}
    )


def _over_rows(*rows: int, m: int, n: int) -> Problem:
    return partial(test_grouped.test_products_over_the_rows_of_groups_are_right_and_see_no_others, rows, m, n)


def _windows(case: int) -> Problem:
    return partial(test_windows.test_taps_of_a_row_share_a_window, *test_windows.CASES[case])


def _of_ranks(kind: Any, *shape: int, **how: Any) -> Problem:
    """Two launches of two GPUs."""

    def run() -> None:
        product = kind(2, *shape, **how)
        product.step(0)
        product.step(1)

    return run


def _of_parts(rows: int, **how: Any) -> Problem:
    """Attention of two GPUs, twice."""

    def run() -> None:
        attended = test_ring_attention.Attended(2, rows, tile=(64, 16), **how)
        attended.step(0)
        attended.step(1)

    return run


def _few_tokens() -> None:
    """Three CTAs share K, and the last one adds up."""
    cut = test_mixed_warps.Cut((16, 128), splits=3)
    test_mixed_warps.test_weights_are_widened_on_their_way((5, 24, 200), test_mixed_warps.F16, cut, {"zeros": True})


GATHERED, SCATTERED = _of_ranks(ranks.Gathered, 24, 64, 264), _of_ranks(ranks.Scattered, 24, 64, 72)
TRAVELLING: Problem = test_experts.travels
SUMS = partial(test_windows.test_sums_are_added_where_they_are, 20, 64, (1, 0))
ONE, RAGGED, AHEAD = _by_tcgen05("one"), _by_tcgen05("ragged"), _by_tcgen05("queries_ahead")
STAGE = _by_tcgen05("one_stage")
ATTENTION = (ONE, AHEAD, RAGGED, STAGE, _behind(ONE, 2))
KERNELS = [
    kernel("kernels: attention by tcgen05", umma, "make_kernel", *ATTENTION, _by_tcgen05("no_draws")),
    kernel("kernels: tcgen05's loads of attention", umma_load, "load_tile load_tiles", *ATTENTION, _cached),
    kernel("kernels: tcgen05's products of attention", umma_multiply, "multiply_tiles", *ATTENTION),
    kernel("kernels: tcgen05's softmax", umma_softmax, "soften soften_tiles", *ATTENTION, _by_tcgen05("causal")),
    kernel("kernels: tcgen05's corrections", umma_correction, "scale leave clear correct_tiles", *ATTENTION, _cached),
    kernel("kernels: gradients by tcgen05", umma_backward, "multiply_all compute kernel", _gradients("one tile"),
           _gradients("group"), _gradients("fewer keys"), _behind(_gradients("one tile"))),
    kernel("kernels: tcgen05's roles of gradients", umma_backward_roles, "piped loaded load leave reduce",
           _gradients("one tile"), _gradients("group"), _gradients("fewer keys"), _behind(_gradients("one tile"))),
    kernel("kernels: attention over a latent cache", latent, "kernel multiply_scores multiply_values clear tell",
           _latent("no_cluster"), _latent("two_tiles_of_heads"), _latent("more_tiles_than_ctas"),
           _latent("one_query"), _latent("clusters_end_apart"), _behind(_latent("no_cluster"), 2)),
    kernel("kernels: wide gradients' rows", backward_rows, "pipe_of put",
           _read_after(_wide((192, 128), 70, 150, True))),
    kernel("kernels: group norms", groupnorm, "groupnorm_apply groupnorm_backward", _group_norms),
    kernel("kernels: norms of long rows", norm_parts, "backward_in_parts", _long("a ring"), _long("two teams"),
           _long("a ragged cluster with a ring")),
    kernel("kernels: where top k begins", bound, "first_bound", _top("several warps, ragged, with a ring")),
    kernel("kernels: tickets of groups", groups, "tell hear", PLAIN, SHARED, _behind(PLAIN, 2), EXPERTS),
    kernel("kernels: tcgen05 of groups", umma_grouped, "grouped", _of_groups(5, 0, 70, n=24, k=24,
           cut=test_umma_grouped.NARROW), _of_groups(3, 0, 270, n=264, k=72, cut=test_umma_grouped.PAIR),
           _behind(_of_groups(5, 0, 70, n=24, k=24, cut=test_umma_grouped.NARROW), 2)),
    kernel("kernels: 4-bit weights by mma.sync", mixed_warps, "mixed", _few_tokens, _behind(_few_tokens, 2)),
    kernel("kernels: sums over rows", grouped_outer, "outer", _over_rows(5, 0, 70, m=24, n=40),
           _behind(_over_rows(5, 0, 70, m=24, n=40), 2)),
    kernel("kernels: windows of pixels", windows, "load store windows", _windows(0), _windows(1),
           _behind(_windows(0), 2)),
    kernel("kernels: what other GPUs have", bringing, "reserve initialise Bringing.await_pieces Bringing.talk "
           "Bringing.bring", GATHERED, _of_parts(24), _of_parts(24, causal=True),
           _of_parts(32, causal=True, zigzag=True)),
    kernel("kernels: keys that other GPUs have", keys, "Visited.have_all", _of_parts(24), _of_parts(24, causal=True)),
    kernel("kernels: memory of other GPUs that is written", ring, "Telling.await_room", SCATTERED,
           partial(test_experts.in_a_row, 1, 2)),
    kernel("kernels: parts of other GPUs", scatter, "Sending.store_tiles Sending.fill "
           "Sending.await_part Sending.sent Sending.add_parts", SCATTERED, _of_ranks(ranks.Reduced, 48, 64, 72)),
    kernel("kernels: sums over GPUs", sums_of_gpus, "add_up await_parts bring_sums await_sums send_piece",
           _of_ranks(ranks.Reduced, 24, 64, 72, once=True), _of_ranks(ranks.Reduced, 48, 64, 72)),
    kernel("kernels: where tokens go", routes, "choose sort sort_all find_room route", TRAVELLING),
    kernel("kernels: rows that are brought alone", dispatch, "bring", TRAVELLING),
    kernel("kernels: rows that go back", combine, "send_back Returning.sent_before Returning.await_all "
           "Returning.add_early Returning.add_up Returning.add_slab", TRAVELLING,
           partial(test_experts.travels, True), partial(test_experts.in_a_row, 1, 2), test_experts.in_slabs),
    kernel("kernels: sums of parts", sums, "add_up", SUMS, _behind(SUMS, 2)),
]  # fmt: skip
