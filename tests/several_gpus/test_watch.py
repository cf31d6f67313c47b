# SPDX-License-Identifier: Apache-2.0
"""What the host makes of a report that a kernel wrote: with memory that stands in for pinned memory."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.compiler.host.failed import LaunchFailed
from numba_cute.compiler.host.refused import _error_of
from numba_cute.seam import frozen
from numba_cute.seam.hooks import watch
from numba_cute.seam.hooks.driver import DRIVER
from numba_cute.utils.distributed import Signals


@pytest.fixture
def watched(monkeypatch):
    """A watch, and what a kernel writes to its words: rank 1 did not come to slot 3."""
    monkeypatch.setattr(DRIVER, "pinned", lambda words: np.zeros(words, np.uint32))
    monkeypatch.setattr(watch, "_WATCHES", [])
    monkeypatch.setattr(watch, "_PAGES", [])
    thread = SimpleNamespace(start=lambda: None)
    monkeypatch.setattr(watch, "threading", SimpleNamespace(Thread=lambda **how: thread))
    monkeypatch.setattr(watch, "atexit", SimpleNamespace(register=lambda f: None))
    return watch.watch(2.0, "halo"), np.array([2 << 16 | 3, 5, 7, 9], np.uint32)


def signals(one):
    made = Signals(cute.runtime.from_dlpack(np.zeros((5, 2, 2), np.int32)), 0)
    object.__setattr__(made, "_cute_watch", one)
    return made


def test_a_report_names_the_rank_the_slot_the_limit_and_the_kernel(watched):
    one, words = watched
    made = signals(one)
    made.check()
    watch.launched((1, (made,), "x"), "exchange")
    one.words[:] = words
    with pytest.raises(cute.PeerError) as raised:
        made.check()
    e = raised.value
    assert (e.rank, e.slot, e.limit, e.kernel) == (1, 3, 2.0, "exchange")
    assert str(e).startswith(
        "rank 1 did not come: block 9 of kernel exchange waited 2 s for its signal in slot 3 of 'halo', which is 5 and "
        "was to be 7. Rank 1 ended"
    )
    again = pickle.loads(pickle.dumps(e))
    assert str(again) == str(e) and again.rank == 1


def test_signals_inside_an_argument_are_found(watched):
    one, words = watched

    @frozen
    class Arguments:
        signals: Signals
        n: int

    watch.launched((Arguments(signals(one), 3),), "inner")
    one.words[:] = words
    assert one.error().kernel == "inner"


def test_other_arguments_are_left_alone(watched):
    class Node:
        def __init__(self):
            self.next = self

    one, _ = watched
    remembers = cute.make_layout((4, 8))
    vars(remembers)["_cute_of_this_test"] = (remembers,)
    watch.launched((Node(), remembers, np.zeros(3), None, 1.5, (Node(), signals(None)), cute.make_layout(4)), "other")
    assert not one.kernels


def test_on_the_host_alone(watched):
    one, _ = watched
    made = signals(one)
    for call, says in (
        (lambda s: s.check(), "Signals.check in a kernel"),
        (lambda s: Signals.create(2), "create in a"),
    ):
        with pytest.raises(cute.CuteError, match=says):
            cute.simulate(call)[1, 1](made)


def test_before_a_launch_the_name_is_that_of_the_signals(watched):
    one, words = watched
    one.words[:] = words
    assert one.error().kernel == "halo"


def test_the_next_launch_says_it_and_others_do_not(watched):
    one, words = watched
    failed = LaunchFailed(719, "unspecified launch failure")
    assert _error_of(failed, None) is failed
    one.words[:] = words
    said = _error_of(failed, None)
    assert isinstance(said, cute.PeerError) and said.rank == 1 and said.__cause__ is failed
    other = ValueError("mine")
    assert _error_of(other, lambda x: None) is other


def test_it_is_printed_once(watched, capsys):
    one, words = watched
    watch._tell()
    one.words[:] = words
    watch._tell()
    watch._tell()
    printed = capsys.readouterr().err
    assert printed.count("numba_cute.PeerError: rank 1 did not come") == 1


def test_reports_have_memory_of_their_own(watched):
    made = [watch.watch(1.0, str(i)) for i in range(2 * watch._PER_PAGE)]
    for i, one in enumerate(made):
        one.words[:] = i + (1 << 16)
    assert [int(one.words[0]) & 0xFFFF for one in made] == list(range(2 * watch._PER_PAGE))
    assert len(watch._PAGES) == 3


def test_without_a_gpu_nothing_is_watched():
    assert watch.watch(1.0, "x") is None or DRIVER.pinned(4) is not None
