# SPDX-License-Identifier: Apache-2.0
"""Bad input: whatever is called with whatever arguments ends in its result or a CuteError (`tests.fuzz.calls`)."""

from __future__ import annotations

import contextlib
import io
import os
import warnings

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError

from .calls import calls, summary
from .calls_targets import targets
from .calls_worker import Worker

COUNT = int(os.environ.get("CUTE_FUZZ_CALLS", "3000"))


def test_calls_with_arguments_of_all_kinds_end_in_results_or_cute_errors(tmp_path, monkeypatch):
    """A few, in this process; `python -m tests.fuzz.calls` makes as many as are wanted, in processes of their own."""
    monkeypatch.chdir(tmp_path)
    worker, found = Worker(0), []
    sink = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        warnings.simplefilter("ignore")
        for number in range(COUNT):
            found += [wrong for wrong in [worker.run(number)[1]] if wrong]
    assert not found, summary(found, 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_none_of_three_hundred_thousand_calls_ends_otherwise(seed):
    found = calls(seed, 300_000, os.cpu_count() or 1)
    assert not found, summary(found, 20)


class Odd:
    def __repr__(self):
        raise RecursionError


KERNEL = cuda.jit(lambda x: None)
FOUND = {
    "checks, an array": lambda: cute.debug(KERNEL, checks=np.ones(3)),
    "outputs, a type": lambda: cute.debug(KERNEL, outputs=cute.Int32),
    "no repr": lambda: cute.compare(KERNEL, rtol=(Odd(),)),
    "a cluster, an array": lambda: cute.simulate(KERNEL, cluster=np.ones(4, bool)),
    "registers by a number": lambda: cute.Pointer(cute.Float16, cute.AddressSpace.rmem, 8),
    "a float as index": lambda: (1, 2)[cute.Float32(1.0)],
}


@pytest.mark.parametrize("call", FOUND.values(), ids=FOUND)
def test_calls_that_ended_otherwise_end_in_cute_errors(call):
    with pytest.raises(CuteError):
        call()


def test_everything_public_is_called():
    """What is found by introspection: functions, classes, and members of classes, of every facade."""
    paths = {t.path for t in targets()}
    assert {"cute.flat_divide", "cute.Layout", "cute.Layout.__call__", "cute.arch.mbarrier_init"} <= paths
    assert len(paths) > 4000
