# SPDX-License-Identifier: Apache-2.0
"""What a tensor of the host is made of bounds what a kernel may touch, however far a layout made of it reaches."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack


@cute.kernel
def touched(t, write: cute.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    if cute.const_expr(write):
        t[(tidx, 0), 0] = 1
    else:
        t[(tidx, 1), 0] = t[(tidx, 0), 0]


@pytest.mark.parametrize("write", (True, False), ids=("write", "read"))
@pytest.mark.parametrize("dynamic", (True, False), ids=("dynamic", "static"))
def test_a_tile_that_overhangs_gives_no_memory(write, dynamic):
    whole = np.zeros((64, 4), np.float32)
    part = from_dlpack(whole[8:24])
    tiles = cute.zipped_divide(part.mark_layout_dynamic() if dynamic else part, (32, 4))
    cute.simulate(touched)[1, 16](tiles, write)
    with pytest.raises(cute.sim.OutOfBoundsError, match="global memory"):
        cute.simulate(touched)[1, 32](tiles, write)
    assert not whole[24:].any()
    moved = cute.domain_offset((8, 0), part)
    with pytest.raises(cute.sim.OutOfBoundsError, match="global memory"):
        cute.simulate(touched)[1, 16](cute.zipped_divide(moved, (16, 4)), write)
