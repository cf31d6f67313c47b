# SPDX-License-Identifier: Apache-2.0
"""The products of several GPUs, launched again and again with no host in between: what one launch leaves to the next is
told, and a fast rank waits for a slow one."""

import pytest

from numba_cute.kernels.gemm.plan import Plan
from numba_cute.sim import simulate

from ...kernels.distributed import ranks

CUT = Plan(64, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "product",
    [
        lambda: ranks.Gathered(4, 24, 72, 64, cut=CUT),
        lambda: ranks.Scattered(4, 24, 64, 64, cut=CUT),
        lambda: ranks.Reduced(4, 96, 64, 64, cut=CUT),
        lambda: ranks.Reduced(4, 96, 64, 64, cut=CUT, once=True),
    ],
    ids=["gather", "scatter", "two shots", "one shot"],
)
def test_products_are_launched_again_in_one_stream(product, monkeypatch):
    once = ranks.run

    def thrice(plans, **options):
        with simulate.sequence():
            for _ in range(3):
                once(plans, **options)

    monkeypatch.setattr(ranks, "run", thrice)
    product().step(0, 2)
