# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a compile, also while libNVVM works, and the next one is as if it had not been."""

from __future__ import annotations

import os
import re
import signal
import threading
import time

import numpy as np
import pytest
from cuda.bindings import nvvm as bindings
from numba import cuda
from numba.cuda.cudadrv import nvvm

import numba_cute as cute
from numba_cute import config


@pytest.fixture(autouse=True)
def nothing_is_remembered(interruptible):
    with config.override(cache=False):
        yield


@cuda.jit
def sized(x, lay):
    x[0] = cute.size(lay)


@pytest.fixture(autouse=True, scope="module")
def targets_are_known():
    """The first compile of a process asks libNVVM which targets it has, by the function that the tests replace."""
    cute.compile(sized, (np.zeros(1, np.int64), cute.make_layout(3)))


def test_an_interrupt_ends_a_compile_while_libnvvm_works(monkeypatch):
    args = (np.zeros(1, np.int32), cute.make_layout(5))
    compile_program, works, gate, where, sent = nvvm._nvvm.compile_program, threading.Event(), threading.Event(), [], []

    def slow(*program):
        where.append(threading.current_thread())
        works.set()
        gate.wait(60)
        compile_program(*program)

    def interrupt():
        works.wait(60)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(nvvm._nvvm, "compile_program", slow)
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        cute.compile(sized, args)
    assert time.monotonic() - sent[0] < 1
    assert where[0] is not threading.main_thread()  # where Python hears no signal while a library runs
    gate.set()
    where[0].join(60)
    assert "st.global" in cute.compile(sized, args).ptx


REFUSALS = [(RuntimeError("no such option"), RuntimeError), (bindings.nvvmError(8), cute.InternalError)]


@pytest.mark.parametrize("error, kind", REFUSALS, ids=("another's", "its own"))
def test_libnvvm_s_refusal_comes_from_the_thread_that_compiles(monkeypatch, error, kind):
    def refuses(*program):
        raise error

    monkeypatch.setattr(nvvm._nvvm, "compile_program", refuses)
    with pytest.raises(kind, match=re.escape(str(error))):
        cute.compile(sized, (np.zeros(1, np.int32), cute.make_layout(5)))
