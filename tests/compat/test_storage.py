# SPDX-License-Identifier: Apache-2.0
"""Storage that a file's class describes on the host, and its kernel allocates; memory of the simulated driver."""

from __future__ import annotations

from .texts import ran

STORAGE = """
import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass.cute.runtime import from_dlpack

class Kernel:
    @cute.jit
    def __call__(self, x: cute.Tensor):
        @cute.struct
        class Storage:
            a: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, 4], 16]

        self.storage = Storage
        self.kernel(x).launch(grid=1, block=1)

    @cute.kernel
    def kernel(self, x: cute.Tensor):
        storage = cutlass.utils.SmemAllocator().allocate(self.storage)
        t = storage.a.get_tensor(cute.make_layout(4))
        t[1] = 3.0
        x[0] = t[1]

x = np.zeros(1, np.float32)
Kernel()(from_dlpack(x))
assert x[0] == 3
"""

DRIVER = """
import cutlass
import cutlass.cute as cute
import cuda.bindings.driver as cuda
import numpy as np
from cutlass.cute.runtime import make_ptr

@cute.kernel
def kernel(p):
    t = cute.make_tensor(p, cute.make_layout(4))
    t[2] = t[1] + 1

@cute.jit
def launch(p: cute.Pointer):
    kernel(p).launch(grid=1, block=1)

error, memory = cuda.cuMemAlloc(16)
cuda.cuMemsetD8(memory, 1, 16)
launch(make_ptr(cutlass.Int32, int(memory), cute.AddressSpace.gmem, assumed_align=16))
found = np.zeros(4, np.int32)
cuda.cuMemcpyDtoH(found.ctypes.data, memory, 16)
assert found.tolist() == [0x01010101, 0x01010101, 0x01010102, 0x01010101], found
pointer = make_ptr(cutlass.Int32, int(memory), cute.AddressSpace.gmem)
cuda.cuMemFree(pointer._pointer)
"""


def test_a_kernel_allocates_what_its_object_describes(tmp_path):
    assert ran(tmp_path, STORAGE).launched == 1


def test_a_kernel_finds_the_memory_of_the_driver(tmp_path):
    assert ran(tmp_path, DRIVER).launched == 1
