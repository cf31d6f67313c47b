# SPDX-License-Identifier: Apache-2.0
"""Bad input: whatever is called with whatever arguments ends in its result or a CuteError (`tests.fuzz.calls`)."""

from __future__ import annotations

import contextlib
import io
import os
import warnings

import pytest

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


def test_everything_public_is_called():
    """What is found by introspection: functions, classes, and members of classes, of every facade."""
    paths = {t.path for t in targets()}
    assert {"cute.flat_divide", "cute.Layout", "cute.Layout.__call__", "cute.arch.mbarrier_init"} <= paths
    assert len(paths) > 4000
