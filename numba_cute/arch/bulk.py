# SPDX-License-Identifier: Apache-2.0
"""Groups of asynchronous copies and of bulk stores, and overlapping one grid with the next."""

from __future__ import annotations

from .. import isa
from ..seam import CuteError, Int, traced
from ..seam.guards.messages import how_static
from ..tensor.pointer import Pointer, shared_address

__all__ = [
    "cp_async_bulk_commit_group", "cp_async_bulk_wait_group", "cp_async_commit_group", "cp_async_mbarrier_arrive_noinc",
    "cp_async_wait_group", "griddepcontrol_launch_dependents", "griddepcontrol_wait",
]  # fmt: skip


@traced
def cp_async_commit_group() -> None:
    """Close the group of all cp.async (`cpasync.CopyG2SOp`) that this thread has issued since the last one. Each
    thread. PTX cp.async.commit_group, sm_80.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     atom = cute.make_copy_atom(nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128)
    ...     cute.copy(atom, x, s)
    ...     arch.cp_async_commit_group()
    ...     arch.cp_async_wait_group(0)
    ...     print(s[3])
    >>> cute.simulate(kernel)[1, 1](x)
    3.0
    """
    isa.cp_async_commit_group()


@traced
def cp_async_wait_group(n: int) -> None:
    """Wait until at most the `n` (static, 0 to 63) latest groups of cp.async of this thread are incomplete. Each
    thread; others see its copies after a barrier. PTX cp.async.wait_group, sm_80.

    See the example of `cp_async_commit_group`.
    """
    if type(n) is not int or not 0 <= n <= 63:
        raise CuteError(f"cp_async_wait_group: n {n!r} must be a static number in [0, 63]{how_static(n)}")
    isa.cp_async_wait_group(n=n)


@traced
def cp_async_mbarrier_arrive_noinc(mbar_ptr: Pointer | Int) -> None:
    """Arrive at the barrier `mbar_ptr` (a Pointer to shared memory) once, when all cp.async that this thread has issued
    so far are complete. Each thread; the barrier's count includes these arrivals. PTX cp.async.mbarrier.arrive.noinc,
    sm_80.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     cute.copy(cute.make_copy_atom(nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128), x, s)
    ...     arch.cp_async_mbarrier_arrive_noinc(bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     print(s[3])
    >>> cute.simulate(kernel)[1, 1](x)
    3.0
    """
    isa.cp_async_mbarrier_arrive_noinc(shared_address(mbar_ptr, "cp_async_mbarrier_arrive_noinc"))


@traced
def cp_async_bulk_commit_group() -> None:
    """Close the group of all bulk stores that this thread has issued since the last one. The thread that issued them.
    PTX cp.async.bulk.commit_group, sm_90.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     s.fill(7)
    ...     arch.fence_view_async_shared()
    ...     cute.copy(cute.make_copy_atom(nvgpu.cpasync.CopyBulkS2GOp(), cute.Float32), s, x)
    ...     arch.cp_async_bulk_commit_group()
    ...     arch.cp_async_bulk_wait_group(0)
    ...     print(x[3])
    >>> cute.simulate(kernel)[1, 1](x)
    7.0
    """
    isa.cp_async_bulk_commit_group()


@traced
def cp_async_bulk_wait_group(group: int, read: bool = False) -> None:
    """Wait until at most the `group` (static, 0 to 31) latest groups of bulk stores of this thread are incomplete; with
    `read`, until only those have still to read their sources. The thread that committed them. PTX
    cp.async.bulk.wait_group, sm_90.

    See the example of `cp_async_bulk_commit_group`.
    """
    if type(group) is not int or not 0 <= group <= 31:
        raise CuteError(
            f"cp_async_bulk_wait_group: group {group!r} must be a static number in [0, 31]{how_static(group)}"
        )
    isa.cp_async_bulk_wait_group(n=group, read=bool(read))


@traced
def griddepcontrol_wait() -> None:
    """Wait until the grids that this one depends on (it was launched with `cute.launch(…, pdl=True)`) have ended and
    their memory is visible. Any thread. The simulator runs launches one after the other, so it finds no missing wait.
    PTX griddepcontrol.wait, sm_90.

    >>> cute.simulate(lambda: arch.griddepcontrol_wait())[1, 1]()
    """
    isa.griddepcontrol_wait()


@traced
def griddepcontrol_launch_dependents() -> None:
    """Allow dependent grids to start. Any thread, once in each block. PTX griddepcontrol.launch_dependents, sm_90.

    >>> cute.simulate(lambda: arch.griddepcontrol_launch_dependents())[1, 1]()
    """
    isa.griddepcontrol_launch_dependents()
