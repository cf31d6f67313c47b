# SPDX-License-Identifier: Apache-2.0
"""Launches of arrays whose elements NumPy has not, of clusters of more than 8 blocks, and causes that go round."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compiler.ground import errors

from ..conftest import _need_gpu


def test_an_error_may_be_its_own_cause():
    first, second = ValueError("one"), ValueError("two")
    first.__cause__, second.__cause__ = second, first
    errors._missing_library(first)  # finds none, and ends


@cuda.jit
def doubled(x, y):
    tx, ty = cute.make_tensor(x), cute.make_tensor(y)
    i = cuda.grid(1)
    if i < tx.shape[0]:
        ty[i] = tx[i] * 2


@cuda.jit
def ranks(out):
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = cute.arch.block_idx_in_cluster()


@pytest.mark.gpu
def test_bf16_of_torch_is_launched_again_and_again():
    _need_gpu("sm_90a")
    import torch

    launch = cute.launch(doubled, grid=2, block=64)
    for i in range(5):  # the third and later ones in machine code
        x, y = torch.full((100,), i, device="cuda", dtype=torch.bfloat16), torch.zeros(100, device="cuda").bfloat16()
        launch(x, y)
        assert (y == 2 * i).all()


@pytest.mark.gpu
@pytest.mark.parametrize("size", [8, 16])
def test_clusters_of_up_to_16_blocks(size):
    _need_gpu("sm_90a")
    import torch

    out = torch.full((2 * size,), -1, device="cuda", dtype=torch.int32)
    cute.launch(ranks, grid=2 * size, block=32, cluster=size)(out)
    assert out.tolist() == [*range(size)] * 2
    np.testing.assert_array_equal(out.cpu().numpy(), np.arange(2 * size) % size)
