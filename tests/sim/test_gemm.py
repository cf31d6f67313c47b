# SPDX-License-Identifier: Apache-2.0
"""A whole GEMM in raw instructions: right and silent as it stands, and each broken twin reported for what it is."""

import numpy as np
import pytest

from numba_cute.sim import BarrierError, DeadlockError, RaceError, SimError

from .gemm_kernel import Broken, run


def check(got: np.ndarray, want: np.ndarray) -> None:
    assert np.abs(got - want).max() <= 2.0**-8 * np.abs(want).max()  # one rounding to bf16


def slow(*values):
    return [pytest.param(v, marks=pytest.mark.slow) for v in values]


@pytest.mark.parametrize(
    "options", [{"seed": 1}, *slow({}, {"async_mode": "eager"}, {"seed": 2, "async_mode": "lazy"})], ids=str
)
def test_gemm_is_right_and_silent(options, rng):
    check(*run(256, 256, 192, rng, **options))


def test_ragged_tiles_are_filled_with_zeros_and_clipped(rng):
    check(*run(200, 264, 72, rng))


BROKEN = {
    "no release": (
        Broken(release=False), DeadlockError,
        ["mainloop.empty[0]", "phase 0 (parity 0)", "4 of 4 arrivals missing", "gemm_kernel.py:", "thread 0 (warp 0)",
         "warps 4-11 (256 threads) of CTA 1", "mainloop.full[0]", "1 of 1 arrival missing",
         "fix: let as many threads arrive in each phase as the barrier was initialised for (4)"],
    ),
    "tx_count too great": (
        Broken(tx_more=64), DeadlockError,
        ["mainloop.full[0]", "64 bytes missing: 49216 announced (expect_tx), 49152 delivered",
         "fix: announce the 49152 bytes"],
    ),
    "tx_count too small": (
        Broken(tx_more=-64), DeadlockError,
        ["64 bytes too many: 49088 announced (expect_tx), 49152 delivered"],
    ),
    "tx_count a copy too small": (
        Broken(tx_more=-32768), BarrierError,
        ["mainloop.full[0]", "too few bytes announced", "are 16384, the copies deliver 49152: 32768 bytes too many"],
    ),
    "no proxy fence": (
        Broken(fence=False), RaceError,
        ["missing fence.proxy.async", "tile_c", "cp_async_bulk_tensor_s2g", "matrix.stmatrix(", "gemm_kernel.py:"],
    ),
    "no wait for the copies": (
        Broken(wait_full=False), RaceError, ["stages", "cp_async_bulk_tensor_g2s", "has still to write it"],
    ),
    "released before wgmma is done": (
        Broken(wait_mma=False), RaceError, ["wgmma_ss", "still reads it", "wgmma.wait_group"],
    ),
    "store's source overwritten": (
        Broken(wait_store=False), RaceError, ["tile_c", "cp_async_bulk_tensor_s2g", "cp.async.bulk.wait_group"],
    ),
    "no init": (Broken(init=False), BarrierError, ["mainloop.", "is not initialised", "mbarrier_init"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_gemm_is_reported(name, rng):
    broken, error, words = BROKEN[name]
    with pytest.raises(error) as caught:
        run(256, 256, 320, rng, broken)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "name", ["no release", "no proxy fence", *slow("tx_count too great", "tx_count too small", "no init")]
)
def test_broken_gemm_is_reported_in_any_order(name, rng):
    with pytest.raises(SimError):
        run(256, 256, 320, rng, BROKEN[name][0], seed=5)
