# SPDX-License-Identifier: Apache-2.0
"""NVSHMEM from a kernel of this library: nvshmem4py's device functions for Numba, which are linked to it."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch

pytest.importorskip("nvshmem", reason="pip install nvshmem4py-cu13")
nvshmem = pytest.importorskip("nvshmem.core.device.numba")


@cuda.jit
def passed_on(x):
    """Write a tile by a CuTe tensor, and put it to the next rank by NVSHMEM, with all threads of the block."""
    thread, _, _ = arch.thread_idx()
    tile = cute.make_tensor(x, cute.make_layout((32, 4), stride=(4, 1)))
    tile[thread, 0] = cute.Float32(nvshmem.my_pe())
    arch.sync_threads()
    nvshmem.put_block(x, x, (nvshmem.my_pe() + 1) % nvshmem.n_pes())
    if thread == 0:
        nvshmem.barrier_all()


@pytest.mark.slow  # NVRTC reads NVSHMEM's headers: a minute and a half
def test_its_device_functions_are_called_and_linked():
    compiled = cute.compile(passed_on, np.zeros(128, np.float32), arch="sm_90a")
    for name in ("nvshmem_my_pe", "nvshmem_n_pes", "nvshmemx_float_put_block", "nvshmem_barrier_all"):
        assert name in compiled.ptx, f"{name} is not called"
    assert len(compiled.cubin) > 100_000, "NVSHMEM's library is linked to it"
