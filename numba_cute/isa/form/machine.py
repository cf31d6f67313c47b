# SPDX-License-Identifier: Apache-2.0
"""The machine that the body of an instruction runs on. The simulator implements it.

A body runs once for each issue by the row's issuer: for a thread alone (or for several that issue the same, as
`Instr.lanes` allows), or once for all the lanes of a warp, warpgroup, CTA. Scalar operands of a thread are Python ints
and floats. For a wider issuer each operand is a NumPy array with the lanes first: shape (lanes,) for a scalar, (lanes,
count) for a vector; one that all lanes must give alike (`kinds.same`) comes once, and `m.uniform` reports that they do
not. `out` operands are returned, lanes first (the machine may take one value for all the lanes); `inout` operands are
changed in place. The machine runs a body with `Instr.perform`, which passes None for an `out` operand and for one that
is left out, and the static parameters by name.

Memory is accessed through `m.read` and `m.write`, which the machine records under the row's proxy (or the one
named), so that what an instruction touches is said once, exactly, by its body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


class Barrier(Protocol):
    """An mbarrier object in shared memory (PTX ISA, "mbarrier")."""

    def init(self, count: int) -> None: ...
    def inval(self) -> None: ...
    def arrive(self, count: int = 1, tx: int = 0) -> int:
        """Add `tx` to the pending bytes, then arrive; gives the state token of the phase arrived at."""

    def arrive_drop(self) -> None:
        """Arrive, and let later phases want one arrival less."""

    def expect_tx(self, tx: int) -> None: ...
    def complete_tx(self, tx: int) -> None: ...
    def phase_done(self, parity: int) -> bool:
        """Say whether the phase of this parity has completed (the current phase has the other parity)."""


class TensorMap(Protocol):
    """A decoded 128-byte tensor map: dims and box innermost first. line: in which of eight lines of 128 bytes the box
    begins in shared memory, for swizzles go by the address."""

    rank: int
    box: tuple[int, ...]
    box_bytes: int
    shared_bytes: int
    """The bytes of the box in shared memory: `box_bytes`, or more if a swizzle pads its rows."""

    def gather(
        self, at: tuple[int, ...], offsets: tuple[int, ...] | None = None, line: int = 0, wide: str | None = None
    ) -> Bytes:
        """The box at element coordinates `at` (innermost first), swizzled as it lies in shared memory, with the
        out-of-bounds elements filled; the access to global memory is recorded. offsets: of an im2col map; with wide,
        "w" or "w128", the halo and the shift of one along W."""

    def wide_bytes(self, halo: int) -> tuple[int, int]:
        """Return the bytes that a copy of a map along W with such a halo delivers, and those that it takes in shared
        memory."""

    def prefetch(self, at: tuple[int, ...], offsets: tuple[int, ...] | None, wide: str | None) -> None:
        """Report what cannot be fetched."""

    def gather4(self, at: tuple[int, ...], line: int = 0) -> Bytes:
        """The same for four rows: `at` is (column, row, row, row, row)."""

    def scatter(
        self, at: tuple[int, ...], data: Bytes, reduce: str | None = None, offsets: tuple[int, ...] | None = None,
        line: int = 0,
    ) -> None:  # fmt: skip
        """The other way; out-of-bounds elements are not written. offsets: zeros for an im2col map."""

    def scatter4(self, at: tuple[int, ...], data: Bytes, line: int = 0) -> None: ...


class TensorMemory(Protocol):
    """A CTA's tensor memory: 128 lanes of 512 columns of 32 bits."""

    def alloc(self, columns: int) -> int:
        """The address of free columns; suspends until there are so many."""

    def dealloc(self, address: int, columns: int) -> None: ...
    def relinquish(self) -> None: ...
    def read(self, lane: int, lanes: int, column: int, columns: int, cta: int | None = None) -> NDArray[np.uint32]: ...
    def write(self, lane: int, column: int, values: NDArray[np.uint32], cta: int | None = None) -> None: ...
    def multiply(
        self, effect: Callable[[], None], reads: list[tuple[Any, int]], column: int, columns: int, ctas: list[int],
        *, accumulates: bool = True, uses: Sequence[tuple[int, int]] = (),
        parts: Sequence[tuple[int, int, int, int]] = (), sources: Sequence[tuple[int, int, int, int, int]] = (),
        what: str = "mma", after_shift: bool = False,
    ) -> None:  # fmt: skip
        """`Machine.later` for what writes these columns of these CTAs, after reading them if it `accumulates`. uses:
        (column, columns) that it reads too. parts: (CTA, lane, lanes, columns) if it does not write all lanes.
        sources: (CTA, lane, lanes, column, columns) that it reads besides. what: a multiply, or a "cp" or "shift".
        after_shift: whether it is a copy that runs after earlier shifts."""

    def commit(self, bars: list[Barrier]) -> None:
        """Arrive at each of `bars` once all multiplies, copies and shifts that the thread issued so far are
        complete."""

    def fence_before(self) -> None:
        """Order earlier accesses before the thread's next synchronisation with others."""

    def fence_after(self) -> None:
        """Order later accesses after the thread's last synchronisation with others."""

    def wait_loads(self) -> None: ...
    def wait_stores(self) -> None: ...


class Machine(Protocol):
    lanes: int
    """The number of threads that issue together."""
    elected: int
    """The lane that elect.sync names."""
    cta_rank: int
    """The rank of the issuing CTA in its cluster."""
    tmem: TensorMemory

    def uniform(self, operand: Any) -> Any: ...

    # threads
    def sreg(self, name: str) -> Any:
        """A special register ("tid.x", "laneid", "cluster_ctarank", …): an int, or an array over lanes."""

    def block(self, ready: Callable[[], bool], why: str, on: Any = None) -> None:
        """Suspend the issuing threads until `ready()`. `why` is for the deadlock report, `on` the Barrier."""

    def pause(self, why: str, on: Any = None) -> None:
        """Give the other threads a turn: what a polling instruction does when it finds nothing, so that a loop
        around it makes progress (and can be reported when it polls for ever)."""

    def barrier(self, id: int, threads: int | None, wait: bool) -> None:
        """Named CTA barrier `id` over `threads` threads (None: all of the CTA); arrive only unless `wait`."""

    def need_cluster(self, what: str) -> None:
        """An error if the launch names no cluster (see `st_async`)."""

    def cluster_arrive(self) -> None:
        """Arrive at the cluster's barrier, ordered as the row says (`Instr.order`)."""

    def cluster_wait(self) -> None: ...
    def meet(self) -> None:
        """A barrier of the threads that issue together."""

    def cancel_cluster(self) -> tuple[int, int, int] | None:
        """Take a cluster of the grid that has not started, which then never will: its first CTA's index; None if
        none is left."""

    def set_registers(self, count: int, *, grows: bool) -> None: ...
    def depend(self, *, launches: bool) -> None:
        """Let the grids start that depend on this one; without `launches`, wait for those that this one depends on."""

    # memory
    def mbar(self, address: int, cta: int | None = None) -> Barrier:
        """The barrier at a shared address; at the same address of CTA `cta` of the cluster if given."""

    def mapa(self, address: int, cta: int) -> int: ...
    def owner(self, cluster_address: int) -> tuple[int, int]:
        """A shared::cluster address as (CTA rank, shared::cta address)."""

    def read(
        self, address: int, nbytes: int, *, cta: int | None = None, proxy: str | None = None,
        lay: tuple[int, int] | None = None,
    ) -> Bytes: ...  # fmt: skip
    def write(self, address: int, data: Bytes, *, cta: int | None = None, proxy: str | None = None) -> None: ...
    def read_rows(
        self, addresses: NDArray[np.int64], nbytes: int, *, lay: tuple[int, int] | None = None
    ) -> Bytes:  # fmt: skip
        """The `nbytes` at each of these shared::cta addresses (aligned to `nbytes`): shape (len(addresses), nbytes).
        It is `read` for accesses in pieces: descriptors, ldmatrix. lay: the descriptor's swizzle, as it names it, and
        the bits of an element (0: any)."""

    def write_rows(self, addresses: NDArray[np.int64], data: Bytes) -> None:
        """The same, the other way."""

    def read_global(self, address: int, nbytes: int) -> Bytes: ...
    def read_constant(self, address: int, nbytes: int) -> Bytes:
        """Read global memory that nobody may write during the launch."""

    def write_global(self, address: int, data: Bytes) -> None: ...
    def replace(self, address: int, nbytes: int, change: Callable[[Bytes], Bytes], *, shared: bool) -> None:
        """Change part of what lies in memory (global, or this CTA's shared) by one plain write of all of it."""

    def update_global(self, address: int, nbytes: int, change: Callable[[Bytes], Bytes]) -> Bytes:
        """Change global memory atomically; gives what was there."""

    def atomic(
        self, address: int, nbytes: int, change: Callable[[Bytes], Bytes] | None, *, shared: bool,
        cta: int | None = None, reads: bool = True, ends: Callable[[Bytes], bool] | None = None,
    ) -> Bytes:  # fmt: skip
        """Read memory (global, or shared: of this CTA or of CTA `cta`) and change it in one step, ordered as the row
        says (`Instr.order`); without `change` it is only read, without `reads` only written. ends: of a read that is
        part of a wait, says of bytes whether they end it. Gives what was there."""

    def awaits(self, rank: int | None) -> None:
        """Say which rank the threads wait for from now on, in a loop; None: for no rank any more."""

    def atomic_everywhere(
        self, address: int, nbytes: int, change: Callable[[Bytes], Bytes] | None, *, reads: bool = True
    ) -> list[Bytes]:
        """Do the same at all places for which an address of a multicast mapping stands, one after the other; gives the
        old bytes of each rank."""

    def tensor_map(self, address: int) -> TensorMap: ...
    def map_proxy(self, event: str, address: int | None) -> None:
        """A tensor map in global memory was "changed", "released" (None: all that were changed) or "acquired"."""

    # asynchronous work: the row's done_by says which mechanism completes it
    def later(
        self,
        effect: Callable[[], None],
        *,
        bars: list[tuple[Barrier, int]] | None = None,
        reads: list[tuple[Any, int]] | None = None,
        writes: list[tuple[Any, int]] | None = None,
    ) -> None:
        """Do `effect` at some later time: as part of the open group of the row's kind, or, for an mbarrier, then
        complete each (barrier, bytes) of `bars`. `reads` and `writes` are the shared memory (address, bytes) in
        use until then: shared::cluster addresses (so `mapa`'s for a peer's memory); an array of addresses stands
        for so many pieces."""

    def commit(self, group: str) -> None:
        """Close the issuer's open group of this kind (instr.BULK_GROUP, …)."""

    def arrive_when_done(self, group: str, barrier: Barrier, counted: bool) -> None:
        """Arrive at `barrier` once all that the thread issued of this kind so far is complete, without waiting; unless
        `counted`, the barrier's current phase wants one arrival more for it, from now on."""

    def wait(self, group: str, pending: int, *, read: bool = False) -> None:
        """Suspend until at most `pending` committed groups of this kind are incomplete (with `read`: have
        memory still to read)."""

    def accumulate(self, registers: Any) -> Any:
        """Say that `registers` (an inout operand) belong to the instruction until its group completes; gives an
        array to be changed by the deferred effect."""

    def fence(self) -> None:
        """Order accesses for the threads of the row's scope."""

    def fence_proxy(self, *, shared: bool, global_: bool) -> None:
        """Order accesses of the generic proxy to these memories before later ones of the async proxy."""

    def fence_barriers(self) -> None:
        """Make earlier initialisations of mbarriers known to the cluster and the async proxy."""

    def fence_registers(self) -> None:
        """Order accesses to registers before the wgmmas that use them."""
