# SPDX-License-Identifier: Apache-2.0
"""RMSNorm."""

from __future__ import annotations

from numba import cuda

import numba_cute as cute
from numba_cute.kernels.reduce import added
from numba_cute.kernels.rows.spread import Stream, Team


@cuda.jit
def rmsnorm_forward(x, weight, y, rstd, eps, spread):
    """y = x / rms(x) * weight."""
    xs, ys = cute.make_tensor(x), cute.make_tensor(y)
    team = Team.create(spread, xs.shape[0], 1)
    stream = Stream.create(team, xs)
    stream.open(team)
    team.begin()
    stream.start(team)
    for row in range(team.first, team.end, team.step):
        values = stream.take(team, row, 0)
        total = team.reduce(((values * values).reduce(cute.ReductionOp.ADD, 0.0),), added)
        stream.refill(team, row)
        r = cute.math.rsqrt(total[0] / spread.length + eps, fastmath=True)
        if cute.const_expr(rstd is not None):
            if team.thread == 0 and team.rank == 0 and row < team.rows:
                cute.make_tensor(rstd)[row] = r
        values = values * r
        if cute.const_expr(weight is not None):
            values = values * team.read(team.at(cute.make_tensor(weight), None), row, 0)
        team.write(ys, row, values)
