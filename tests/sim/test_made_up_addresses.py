# SPDX-License-Identifier: Apache-2.0
"""No address without an owner: what the simulator was given no memory for is an error that names it, not a crash."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import cpasync
from numba_cute.seam.hooks.driver import DRIVER
from numba_cute.sim import OutOfBoundsError

GMEM, GENERIC = cute.AddressSpace.gmem, cute.AddressSpace.generic
ADDRESSES = (0, 0x10000, 0x7FFF_0000_0000, -16)
NEAREST = (
    r"thread 0 .* at {address} at .*, which is \d+ bytes (before the start|beyond the end) of out \(128 bytes at 0x"
)


def tensor_at(address):
    return cute.make_tensor(cute.make_ptr(cute.Float32, address, GMEM), cute.make_layout(32))


@cuda.jit
def loads(out, t):
    i = cuda.threadIdx.x
    out[i] = t[i]


@cuda.jit
def stores(out, t):
    i = cuda.threadIdx.x
    t[i] = out[i]


@cuda.jit
def made_here(out, address):
    i = cuda.threadIdx.x
    out[i] = cute.make_tensor(cute.make_ptr(cute.Float32, cute.Int64(address), GMEM), cute.make_layout(32))[i]


def captured(address):
    t = tensor_at(address)

    @cuda.jit
    def kernel(out):
        i = cuda.threadIdx.x
        out[i] = t[i]

    return kernel


WAYS = {
    "captured": lambda out, at: (captured(at), (out,)),
    "an argument that is read": lambda out, at: (loads, (out, tensor_at(at))),
    "an argument that is written": lambda out, at: (stores, (out, tensor_at(at))),
    "made in the kernel": lambda out, at: (made_here, (out, at)),
}


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("address", ADDRESSES, ids=hex)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_made_up_address_is_an_error_with_the_nearest_array(way, address, checks):
    out = np.zeros(32, np.float32)
    kernel, args = way(out, address)
    with pytest.raises(cute.CuteError) as caught:
        cute.simulate(kernel, checks=checks)[1, 32](*args)
    if isinstance(caught.value, OutOfBoundsError):
        assert re.search(NEAREST.format(address=hex(address)), str(caught.value))
    else:  # a GPU's driver knows before the launch that it gave no such address
        assert cuda.is_available() and "captured as a global or closure variable" in str(caught.value)


def test_the_error_says_which_tensor_is_made_of_a_number():
    with pytest.raises(OutOfBoundsError, match=r"; t is made of a number, not of an array: give cute.runtime.from_dlp"):
        cute.simulate(loads)[1, 32](np.zeros(32, np.float32), tensor_at(0x10000))


@pytest.mark.parametrize("checks", [True, False])
def test_the_address_of_another_arguments_array_is_taken(checks):
    out, data = np.zeros(32, np.float32), np.arange(32, dtype=np.float32)

    @cuda.jit
    def kernel(out, data, t):
        i = cuda.threadIdx.x
        out[i] = t[i] + 0 * data[i]

    cute.simulate(kernel, checks=checks)[1, 32](out, data, tensor_at(data.ctypes.data))
    np.testing.assert_array_equal(out, data)


@pytest.mark.parametrize("checks", [True, False])
def test_strides_that_lead_out_of_an_arrays_memory_are_refused(checks):
    far = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (32,), (1 << 30,))
    with pytest.raises(OutOfBoundsError, match=r"t: an array of shape \(32,\) .* is a view of 16 bytes at 0x"):
        cute.simulate(loads, checks=checks)[1, 32](np.zeros(32, np.float32), far)


@pytest.mark.parametrize("checks", [True, False])
def test_a_tma_atom_of_a_made_up_address_copies_nothing(checks):
    shape = cute.make_layout((8, 8), stride=(8, 1))
    pointer = cute.make_ptr(cute.Float32, 0x10000, GMEM, assumed_align=16)
    atom, coordinates = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), cute.make_tensor(pointer, shape), shape, (8, 8)
    )

    @cuda.jit
    def kernel(out, atom, coordinates):
        s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 64, 128), shape)
        bar = cute.arch.alloc_smem(cute.Int64, 1)
        if cuda.threadIdx.x == 0:
            cute.arch.mbarrier_init(bar, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 256)
        cute.arch.sync_threads()
        to, of = cpasync.tma_partition(
            atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(coordinates, 0, 2)
        )
        cute.copy(atom, of, to, tma_bar_ptr=bar)
        cute.arch.mbarrier_wait(bar, 0)
        out[0] = s[0, 0]

    with pytest.raises(OutOfBoundsError, match="at 0x10000 .* is made of a number"):
        cute.simulate(kernel, checks=checks)[1, 32](np.zeros(32, np.float32), atom, coordinates)


def test_memory_that_stands_for_a_gpus_is_reached_by_its_address(monkeypatch):
    held, out = np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    at = held.ctypes.data
    monkeypatch.setattr(DRIVER, "held", lambda: [(at, held.nbytes, "held", held)])
    for checks in (True, False):
        cute.simulate(made_here, checks=checks)[1, 32](out, at + 128)
        np.testing.assert_array_equal(out, held[32:])
    with pytest.raises(OutOfBoundsError, match=r"which is \d+ bytes beyond the end of held \(256 bytes"):
        cute.simulate(made_here)[1, 32](out, at + 132)
