# SPDX-License-Identifier: Apache-2.0
"""mbarriers: 8 bytes of shared memory that count arrivals and bytes (PTX ISA, "mbarrier").

`mbar_ptr` is a Pointer to shared memory, 8-byte aligned. A phase completes when all arrivals and all bytes are in;
phases have parity 0, 1, 0, …. Each call is of one thread; what must happen once (init, expect_tx) is for one thread
to do.
"""

from __future__ import annotations

from typing import Any

from .. import isa, seam
from ..dtypes import Uint32
from ..seam import CuteError, Int, traced
from ..tensor.pointer import Pointer, shared_address
from .warp import as_bool

__all__ = [
    "mbarrier_arrive", "mbarrier_arrive_and_expect_tx", "mbarrier_conditional_try_wait", "mbarrier_expect_tx",
    "mbarrier_init", "mbarrier_init_fence", "mbarrier_test_wait", "mbarrier_try_wait", "mbarrier_wait",
]  # fmt: skip

MAX_COUNT = (1 << 20) - 1
"""PTX ISA, "mbarrier: Contents of the mbarrier object": pending counts and transaction bytes are 20 bits."""


def _address(bar: Any, what: str) -> Any:
    if isinstance(bar, Pointer) and bar.alignment % 8:
        raise CuteError(f"{what}: mbar_ptr {bar!r} must be 8-byte aligned; allocate it with byte_alignment=8")
    return shared_address(bar, what)


def _check(value: Any, low: int, name: str, what: str) -> None:
    if type(value) is int and not low <= value <= MAX_COUNT:
        raise CuteError(f"{what}: {name} {value} is not in [{low}, 2^20 - 1]; split what the barrier counts")


def _peer(bar: Any, rank: Any) -> Any:
    return isa.mapa(bar, Uint32(rank))


@traced
def mbarrier_init(mbar_ptr: Pointer | Int, cnt: Int) -> None:
    """Initialise the barrier at `mbar_ptr`, whose phases complete after `cnt` arrivals (1 to 2^20 - 1).

    One thread, once; `mbarrier_init_fence` and a barrier of the block or cluster must follow. PTX mbarrier.init, sm_80.

    >>> def kernel():
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     if arch.thread_idx()[0] == 0:
    ...         arch.mbarrier_init(bar, 64)
    ...         arch.mbarrier_init_fence()
    ...     arch.sync_threads()
    ...     arch.mbarrier_arrive(bar)
    ...     arch.mbarrier_wait(bar, 0)
    >>> cute.simulate(kernel)[1, 64]()
    """
    _check(cnt, 1, "cnt", "mbarrier_init")
    isa.mbarrier_init(_address(mbar_ptr, "mbarrier_init"), Uint32(cnt))


@traced
def mbarrier_init_fence() -> None:
    """Make this thread's initialisations of barriers visible to the cluster and to TMA. The thread that made them,
    before a barrier of the block or cluster. PTX fence.mbarrier_init.release.cluster, sm_90.

    See the example of `mbarrier_init`.
    """
    isa.fence_mbarrier_init()


@traced
def mbarrier_arrive(
    mbar_ptr: Pointer | Int, peer_cta_rank_in_cluster: Int | None = None, arrive_count: Int = 1
) -> None:
    """Arrive at the barrier `mbar_ptr`, releasing this thread's memory accesses. Any thread.

    peer_cta_rank_in_cluster: the rank of the block whose barrier at the same place is meant; by default this block's.
    arrive_count: how many arrivals, at least 1. PTX mbarrier.arrive, sm_80; with a peer or a count sm_90.

    >>> def kernel():
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive(bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     arch.mbarrier_arrive(bar)
    ...     arch.mbarrier_wait(bar, 1)  # phases alternate
    >>> cute.simulate(kernel)[1, 1]()
    """
    bar = _address(mbar_ptr, "mbarrier_arrive")
    _check(arrive_count, 1, "arrive_count", "mbarrier_arrive")
    count = None if type(arrive_count) is int and arrive_count == 1 else Uint32(arrive_count)
    if peer_cta_rank_in_cluster is None:
        isa.mbarrier_arrive(bar, count)
    else:
        isa.mbarrier_arrive(_peer(bar, peer_cta_rank_in_cluster), count, space="cluster", scope="cluster")


@traced
def mbarrier_arrive_and_expect_tx(
    mbar_ptr: Pointer | Int,
    bytes: Int,
    peer_cta_rank_in_cluster: Int | None = None,
    relaxed: bool = False,
    scope: str = "cta",
) -> None:
    """Add `bytes` to what the current phase of `mbar_ptr` waits for, then arrive once. One thread: the one that issues
    the copies.

    bytes: 0 to 2^20 - 1. peer_cta_rank_in_cluster: as for `mbarrier_arrive`. relaxed: do not release this thread's
    memory accesses. scope: "cta" or "cluster", the threads for which they are released; with a peer always the cluster.
    PTX mbarrier.arrive.expect_tx, sm_90.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive_and_expect_tx(bar, 16)
    ...     cute.copy(cute.make_copy_atom(nvgpu.cpasync.CopyBulkG2SOp(), cute.Float32), x, s, tma_bar_ptr=bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     print(s[3])
    >>> cute.simulate(kernel)[1, 1](x)
    3.0
    """
    what = "mbarrier_arrive_and_expect_tx"
    bar = _address(mbar_ptr, what)
    _check(bytes, 0, "bytes", what)
    if scope not in ("cta", "cluster") or relaxed not in (True, False):
        raise CuteError(f'{what}: scope {scope!r} must be "cta" or "cluster", and relaxed {relaxed!r} True or False')
    peer = peer_cta_rank_in_cluster is not None
    address = _peer(bar, peer_cta_rank_in_cluster) if peer else bar
    space = "cluster" if peer or scope == "cluster" else "cta"
    isa.mbarrier_arrive_expect_tx(address, Uint32(bytes), space=space, sem="relaxed" if relaxed else "release")


@traced
def mbarrier_expect_tx(mbar_ptr: Pointer | Int, bytes: Int, peer_cta_rank_in_cluster: Int | None = None) -> None:
    """Add `bytes` (0 to 2^20 - 1) to what the current phase of `mbar_ptr` waits for, without arriving. One thread.
    peer_cta_rank_in_cluster: as for `mbarrier_arrive`. PTX mbarrier.expect_tx, sm_90.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_expect_tx(bar, 16)
    ...     cute.copy(cute.make_copy_atom(nvgpu.cpasync.CopyBulkG2SOp(), cute.Float32), x, s, tma_bar_ptr=bar)
    ...     arch.mbarrier_arrive(bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     print(s[3])
    >>> cute.simulate(kernel)[1, 1](x)
    3.0
    """
    _check(bytes, 0, "bytes", "mbarrier_expect_tx")
    bar = _address(mbar_ptr, "mbarrier_expect_tx")
    if peer_cta_rank_in_cluster is None:
        isa.mbarrier_expect_tx(bar, Uint32(bytes))
    else:
        isa.mbarrier_expect_tx(_peer(bar, peer_cta_rank_in_cluster), Uint32(bytes), space="cluster")


@traced
def mbarrier_wait(mbar_ptr: Pointer | Int, phase: Int, scope: str = "cta") -> None:
    """Wait until the phase of parity `phase` (0 or 1) of the barrier `mbar_ptr` has completed. Any thread. scope:
    "cluster" where other blocks of the cluster tell by their arrivals what they have done, else "cta". PTX
    mbarrier.try_wait, sm_90.

    >>> def kernel():
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_wait(bar, 1)  # the phase before the first counts as complete
    ...     arch.mbarrier_arrive(bar)
    ...     arch.mbarrier_wait(bar, 0)
    >>> cute.simulate(kernel)[1, 1]()
    """
    if scope not in ("cta", "cluster"):
        raise CuteError(f'mbarrier_wait: scope {scope!r} must be "cta" or "cluster"')
    isa.mbarrier_wait_parity(_address(mbar_ptr, "mbarrier_wait"), Uint32(phase), scope=scope)


@traced
def mbarrier_try_wait(mbar_ptr: Pointer | Int, phase: Int) -> Any:
    """Wait for a bounded time until the phase of parity `phase` (0 or 1) of the barrier `mbar_ptr` has completed, and
    tell whether it has. Any thread. PTX mbarrier.try_wait, sm_90.

    >>> def kernel():
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive(bar)
    ...     print(arch.mbarrier_try_wait(bar, 0))
    >>> cute.simulate(kernel)[1, 1]()
    True
    """
    return as_bool(isa.mbarrier_try_wait_parity(_address(mbar_ptr, "mbarrier_try_wait"), Uint32(phase)))


@traced
def mbarrier_conditional_try_wait(cond: Int, mbar_ptr: Pointer | Int, phase: Int) -> Any:
    """Call `mbarrier_try_wait(mbar_ptr, phase)` if `cond` holds; give True if it does not. Any thread. PTX
    mbarrier.try_wait, sm_90.

    >>> def kernel():
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     print(arch.mbarrier_conditional_try_wait(cute.Int32(0), bar, 0))
    >>> cute.simulate(kernel)[1, 1]()
    True
    """
    if isinstance(cond, (bool, int)):
        return mbarrier_try_wait(mbar_ptr, phase) if cond else True
    b = seam.current()
    flag = b.registers(Uint32, 1)
    span = seam.Regs(flag, Uint32, 0, 1)
    b.write(span, Uint32(1))
    bar, parity = _address(mbar_ptr, "mbarrier_conditional_try_wait"), Uint32(phase)
    b.when(cond, lambda: b.write(span, Uint32(isa.mbarrier_try_wait_parity(bar, parity))))
    return as_bool(b.read(span))


@traced
def mbarrier_test_wait(mbar_ptr: Pointer | Int, phase: Int) -> Any:
    """Return whether the phase of parity `phase` (0 or 1) of the barrier `mbar_ptr` has completed, without waiting. Any
    thread. PTX mbarrier.test_wait, sm_80.

    >>> def kernel():
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive(bar)
    ...     print(arch.mbarrier_test_wait(bar, 0), arch.mbarrier_test_wait(bar, 1))
    >>> cute.simulate(kernel)[1, 1]()
    True False
    """
    return as_bool(isa.mbarrier_test_wait_parity(_address(mbar_ptr, "mbarrier_test_wait"), Uint32(phase)))
