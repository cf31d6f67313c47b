# SPDX-License-Identifier: Apache-2.0
"""Making a GPU current for some calls, with a driver's stack of contexts that stands in for it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from numba_cute.compiler.host import current


class Driver:
    """A thread's stack of contexts. A context is its GPU's number + 1."""

    CUresult = SimpleNamespace(CUDA_SUCCESS=0)

    def __init__(self, stack):
        self.stack, self.held = list(stack), 0

    def cuDeviceGet(self, ordinal):
        return 0, ordinal

    def cuDevicePrimaryCtxRetain(self, device):
        self.held += 1
        return 0, device + 1

    def cuDevicePrimaryCtxRelease(self, device):
        self.held -= 1
        return (0,)

    def cuCtxPushCurrent(self, context):
        self.stack.append(context)
        return (0,)

    def cuCtxPopCurrent(self):
        return 0, self.stack.pop()


class Numba:
    """As numba-cuda's: the first time that a GPU's context is asked for, it replaces the current one, and pops that."""

    def __init__(self, driver):
        self.driver, self.known = driver, set()

    def get_context(self):
        device = self.driver.stack[-1] - 1 if self.driver.stack else 0
        if device not in self.known:
            self.known.add(device)
            before = self.driver.stack[-1:]
            self.driver.stack[-1:] = [device + 1]
            if self.driver.stack[-1:] != before:
                self.driver.stack.pop()


@pytest.mark.parametrize("stack", [[], [1], [2], [2, 1]])
@pytest.mark.parametrize("fails", [False, True])
def test_what_was_current_is_so_again(monkeypatch, stack, fails):
    driver = Driver(stack)
    monkeypatch.setattr(current, "bindings", driver)
    monkeypatch.setattr(current, "devices", Numba(driver))
    for _ in range(2):
        try:
            with current.current_device(1):
                assert driver.stack == [*stack, 2]
                if fails:
                    raise KeyError
        except KeyError:
            pass
        assert driver.stack == stack and not driver.held
