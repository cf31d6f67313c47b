# SPDX-License-Identifier: Apache-2.0
"""The events that the hardware tells the checks: a `Check` has a method for each, and `Watch` holds those of a run.

An event that no check of a run overrides is an empty tuple, so that a check that is off costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, ClassVar


class Check:
    """One thing that the simulator looks for in a run. A subclass in a file of `sim/checks/` is all that a check needs:
    it overrides the events that it watches and raises the error that explains what it found.

    name: what `simulate(checks=)` calls it. summary: what it finds, for docs/simulator.md. needs: the checks without
    which it cannot work. clocks: whether threads must know what others have done (`Thread.clock`). sequences: whether
    it has something to say in a sequence of launches only. lines: whether it needs accesses' lines of a run without
    errors. backend: a subclass of `SimBackend` that answers the kernel's traced code while the check is on.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    needs: ClassVar[tuple[type[Check], ...]] = ()
    clocks: ClassVar[bool] = False
    sequences: ClassVar[bool] = False
    lines: ClassVar[bool] = False
    backend: ClassVar[Any] = None

    def __init__(self, run: Any) -> None:
        self.run = run

    # memory
    def accesses(
        self, m: Any, memory: Any, region: Any, write: bool, atomic: str | None = None, asynchronous: bool = False,
        remember: bool = True,
    ) -> None:  # fmt: skip
        """Machine `m` accesses a region of a memory. atomic: the scope of an atomic. asynchronous: it is the operation
        under way that does it, not the threads. remember: whether later accesses must be ordered after it."""

    def writes_unordered(self, m: Any, error: Exception) -> None:
        """`m` writes where another thread has written, and nothing orders the two (told by the check `races`); if no
        check raises the error, it does so where the values differ."""

    def lacks_tensor_fence(self, m: Any, error: Exception) -> None:
        """`m` accesses tensor memory behind another thread, and a fence of tcgen05 is missing on one side of the
        barrier between the two (told by the check `races`)."""

    def frees_in_use(self, m: Any, error: Exception) -> None:
        """`m` gives tensor memory back, and nothing orders that after an access to it (told by the check `races`)."""

    def leaves_shape(self, thread: Any, error: Exception) -> None:
        """A thread asks for an element, or a part, beyond the shape of a tensor in memory."""

    def swizzles(self, thread: Any, swizzle: Any, address: int, width: int) -> None:
        """A thread has computed `address` by the swizzle of a pointer, to access elements of `width` bits there."""

    def part_by_swizzle(self, thread: Any, swizzle: Any, addresses: Any, width: int) -> None:
        """A thread has a part of a swizzled tensor, of elements of `width` bits at `addresses`."""

    def reinterprets(self, thread: Any, address: int, width: int, other: int) -> None:
        """A thread views memory from `address` on as elements of `other` bits, by a pointer to those of `width`."""

    def lies(self, m: Any, memory: Any, region: Any, write: bool) -> None:
        """`m` reads or writes a region of shared memory, now: as `m.lay` says, or by its threads' addresses."""

    def reads_unwritten(self, m: Any, memory: Any, address: int) -> None:
        """`m` reads a byte of shared memory that nobody has written (told by the check `races`)."""

    def reads_unwritten_tensor_memory(self, m: Any, patch: Any) -> None:
        """The same of tensor memory."""

    def reads_unwritten_lanes(self, m: Any, patch: Any, written: Any) -> None:
        """`m` loads columns of tensor memory of which somebody has written some lanes, as a multiply of 64 rows does.
        written: of each element of the patch, whether it was (told by the check `races`)."""

    def loads_tensor_memory(self, meet: Any, m: Any, values: dict[str, Any]) -> None:
        """`m` has performed a load from tensor memory, for threads that meet. values: of the operands."""

    def reads_constant(self, m: Any, memory: Any, region: Any) -> None:
        """`m` reads global memory through the read-only cache."""

    def reaches(self, m: Any, cta: Any) -> None:
        """`m` accesses the shared memory of another CTA."""

    def copies_box(self, m: Any, of: Any, at: tuple[int, ...], loads: bool, inside: bool) -> None:
        """`m` copies the box of tensor map `of` at these coordinates. inside: some element of it lies in the tensor."""

    def issues(self, m: Any, op: Any) -> None:
        """`m` begins an asynchronous operation; `op.uses` says what shared memory it uses."""

    # mbarriers
    def begins_barrier(self, m: Any, bar: Any) -> None:
        """`m` has initialised an mbarrier."""

    def ends_barrier(self, m: Any, bar: Any) -> None:
        """`m` has invalidated an mbarrier."""

    def uses_barrier(self, m: Any, bar: Any, what: str, asynchronous: bool) -> None:
        """`m` is about to use an mbarrier. what: in words. asynchronous: a copy will signal it."""

    def arrives(self, m: Any, bar: Any) -> None:
        """`m` arrives at an mbarrier."""

    def tests_phase(self, m: Any, bar: Any, parity: int) -> None:
        """`m` asks whether the phase of a parity is complete."""

    def sees_phase(self, m: Any, bar: Any) -> None:
        """`m` has learned that the phase is complete."""

    def gives_up(self, m: Any, bar: Any) -> None:
        """`m` asked once, and the phase is not complete."""

    def announces(self, m: Any, bar: Any) -> None:
        """`m` adds bytes, or an arrival, to what the current phase of an mbarrier waits for."""

    def promises(self, m: Any, bar: Any) -> None:
        """`m` issues what will signal an mbarrier: then `m.deferred` is set as `arrives` or `delivers` is told."""

    def delivers(self, m: Any, bar: Any) -> None:
        """Bytes are counted as delivered to an mbarrier."""

    def denies(self, m: Any, bar: Any) -> bool:
        """`m` asks for a phase that is complete; tells whether the answer is to be no, as if it had asked earlier."""
        return False

    def completes_phase(self, bar: Any, by: str) -> None:
        """The current phase of an mbarrier is about to complete."""

    # grids that depend on each other
    def waits_for_grids(self, m: Any) -> None:
        """`m` has waited for the grids that this launch depends on."""

    def launches_dependents(self, m: Any) -> None:
        """`m` lets the grids start that depend on this launch."""

    # other barriers
    def comes_to_named(self, m: Any) -> None:
        """`m` comes to a named barrier of its CTA, and has not touched it yet."""

    def arrives_named(self, m: Any, barriers: Any, rally: Any, waits: bool) -> None:
        """`m` is about to arrive at a named barrier of its CTA, and `waits` there."""

    def leaves_named(self, m: Any, barriers: Any, rally: Any) -> None:
        """`m` has waited at a named barrier, and goes on."""

    def arrives_cluster(self, m: Any, phase: int) -> None:
        """`m` arrives at the barrier of its cluster, in a phase."""

    def leaves_cluster(self, m: Any, phase: int) -> None:
        """`m` has waited for a phase of the barrier of its cluster."""

    def meets(self, threads: Any) -> None:
        """Threads have all come to an instruction that they issue together, or to a barrier of the grid."""

    def syncs_threads(self, m: Any) -> None:
        """`m` has come to a `syncthreads`."""

    # what other orders may change
    def polls(self, m: Any) -> None:
        """`m` reads the same memory again and again."""

    def shares_registers(self, m: Any) -> None:
        """Warps change how many registers they have."""

    def reads_register(self, m: Any, name: str) -> None:
        """`m` reads a special register."""

    # tensor maps
    def uses_map(self, m: Any, address: int, acquired: bytes | None, now: bytes) -> None:
        """`m` uses a tensor map in global memory. acquired: what its block acquired last. now: what lies there."""

    def acquires_map(self, m: Any, address: int, changed: str | None) -> None:
        """`m` acquires a tensor map. changed: who changed it without a release, and where."""

    # tensor memory
    def allocates(self, m: Any, cta: Any, patch: Any, peer: Any) -> None:
        """`m` has allocated columns of its CTA's tensor memory. peer: the other CTA of the pair that does, or None."""

    def frees(self, m: Any, cta: Any, patch: Any, peer: Any) -> None:
        """`m` frees columns. peer: the other CTA of the pair that does, or None."""

    def accesses_tensor_memory(self, m: Any, cta: Any, patch: Any, write: bool) -> None:
        """`m` loads from tensor memory, or stores to it."""

    def multiplies(self, m: Any, reads: list[Any], writes: list[Any], accumulates: bool, how: Any) -> None:
        """`m` has issued an operation of the matrix unit (`how`: its `Pipe`). reads, writes: pairs of a CTA and a
        patch; what is accumulated to is among `writes` alone."""

    def commits(self, m: Any, bar: Any) -> None:
        """`m` has issued a tcgen05.commit that will arrive at an mbarrier."""

    # registers
    def holds(self, m: Any, registers: Any, keeps: bool) -> None:
        """A wgmma uses registers until its group is done. keeps: it only reads them."""

    def fences_wgmma(self, m: Any) -> None:
        """A wgmma.fence."""

    def waited(self, m: Any, group: str, groups: Any, pending: int) -> None:
        """`m` has waited until at most `pending` groups of a kind are under way."""

    def loads_registers(self, m: Any, registers: list[tuple[Any, Any]]) -> None:
        """A load from tensor memory will write registers: pairs of a thread and a span."""

    def waited_for_loads(self, m: Any) -> None:
        """tcgen05.wait::ld."""

    def touches(self, thread: Any, regs: Any, verb: str) -> None:
        """A thread itself reads or writes a span of its registers. verb: "read" or "written"."""

    # threads
    def lacks_warpgroup(self, thread: Any, what: str) -> Any:
        """A thread shares out registers, `what`, whose warps are no whole warpgroup; gives the error."""

    def tells_lanes_apart(self) -> None:
        """Nothing calls this: while a check has it, one lane that tells of others' accesses must have met them."""

    def performs(self, meet: Any, m: Any, values: dict[str, Any]) -> Any:
        """Threads that meet issue an instruction, some with undefined operands; gives what its body gives."""

    def shuffles(self, m: Any, what: str, mask: int, source: int, value: Any) -> Any:
        """`m` asks a lane outside its mask for a value; gives what stands for it."""

    def asks_for_cluster(self, m: Any) -> None:
        """`m` asks for a cluster that has not started."""

    def exits(self, cta: Any) -> None:
        """The last thread of a CTA has exited."""

    def ends(self, cluster: Any) -> None:
        """All threads of a cluster have exited, and its copies are complete."""

    def forgets(self, clusters: set[Any]) -> None:
        """No cluster runs, `clusters` have ended, and lanes run together, so that no report names them: what is known
        of them is forgotten. Takes those out of the set that are still referred to."""

    def fails(self, cluster: Any, error: Exception) -> None:
        """The kernel's own Python raised something."""


EVENTS = tuple(name for name, f in vars(Check).items() if isinstance(f, FunctionType) and not name.startswith("_"))


class Watch:
    """The checks of a run: for each event the methods of those that watch it."""

    def __init__(self, checks: Iterable[Check]) -> None:
        self.checks = checks = tuple(checks)
        self.clocks = any(c.clocks for c in checks)
        for event in EVENTS:
            default = getattr(Check, event)
            setattr(self, event, tuple(getattr(c, event) for c in checks if getattr(type(c), event) is not default))

    def __getattr__(self, event: str) -> tuple[Callable[..., Any], ...]:
        raise AttributeError(f"the hardware has no event {event!r}")
