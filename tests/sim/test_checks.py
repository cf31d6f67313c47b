# SPDX-License-Identifier: Apache-2.0
"""Checks are objects: found in their directory, switched by name, free when off, and the docs' table is theirs."""

from pathlib import Path

import numpy as np
import pytest
from numba import cuda

from numba_cute import CuteError
from numba_cute.isa.rows import copy_async
from numba_cute.sim import simulate
from numba_cute.sim.checks import CHECKS, chosen
from numba_cute.sim.exploring.recorder import Recorder
from numba_cute.sim.hardware.watch import EVENTS, Check, Watch
from numba_cute.sim.prove.prover import Prover

DOCS = Path(__file__).resolve().parents[2] / "docs" / "simulator.md"


def test_the_docs_table_is_that_of_the_checks():
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    assert [row for row in rows if any(row.startswith(f"| `{name}` ") for name in CHECKS)] == [
        f"| `{c.name}` | {c.summary} |" for c in CHECKS.values()
    ]


def test_a_check_comes_after_those_that_it_needs_and_brings_them():
    for check in CHECKS.values():
        with_needs = chosen(check.name)
        assert with_needs[-1] is check and set(with_needs) >= set(check.needs)
    assert chosen(True) == tuple(CHECKS.values()) and chosen(False) == chosen(()) == ()


@pytest.mark.parametrize("wrong", ["race", ["races", 3], 7])
def test_a_name_that_no_check_has_is_refused_with_those_there_are(wrong):
    with pytest.raises(
        CuteError, match="'coordinates', 'dependents', 'exit_stores', 'exits', 'initialised', 'phases', 'races'"
    ):
        chosen(wrong)


def test_names_after_a_minus_are_left_out_with_those_that_need_them():
    assert set(chosen("-exit_stores")) == {c for n, c in CHECKS.items() if n != "exit_stores"}
    assert {c.name for c in chosen(("-races", "-phases"))} == {
        "boxes", "cancelled_shapes", "coordinates", "registers", "swizzles", "warpgroups",
    }  # fmt: skip
    with pytest.raises(CuteError, match="name those that are on, or with - those that are off"):
        chosen(("-exits", "races"))
    with pytest.raises(CuteError, match="are none of"):
        chosen("-race")


def test_a_check_that_is_off_is_told_nothing():
    watch = Watch(())
    assert not watch.clocks and all(getattr(watch, event) == () for event in EVENTS)


def test_every_event_is_watched_and_every_check_watches():
    checks = (*CHECKS.values(), Prover, Recorder)
    watching = {c: [e for e in EVENTS if getattr(c, e) is not getattr(Check, e)] for c in checks}
    assert all(watching.values())
    assert {e for events in watching.values() for e in events} == set(EVENTS)


def test_one_class_is_a_check(monkeypatch):
    """As CONTRIBUTING.md has it: a class that overrides an event, under a name."""

    class Stores(Check):
        name, summary = "stores", "counts what is written to global memory"
        count = 0

        def accesses(self, m, memory, region, write, atomic=None, asynchronous=False, remember=True):
            Stores.count += write and memory.space == "global memory"

    @cuda.jit
    def kernel(out):
        out[cuda.threadIdx.x] = 1

    monkeypatch.setitem(CHECKS, "stores", Stores)
    simulate(kernel, checks="stores")[1, 32](np.zeros(32))
    assert Stores.count == 32


def test_without_same_values_cp_async_may_copy_the_same_twice_and_nothing_else():
    def kernel(x):
        lane = cuda.threadIdx.x
        if lane < 2:
            copy_async.cp_async(2048, x.ctypes.data + 16 * lane, nbytes=16, cache="ca")
            copy_async.cp_async_commit_group()
            copy_async.cp_async_wait_group(n=0)

    x = np.zeros(8, np.float32)
    simulate(kernel, checks="-same_values")[1, 32, 0, 4096](x)
    x[5] = 1
    with pytest.raises(CuteError, match="race: .* is written by cp_async"):
        simulate(kernel, checks="-same_values")[1, 32, 0, 4096](x)
