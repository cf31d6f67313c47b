# SPDX-License-Identifier: Apache-2.0
"""Python's state that a helper changes is found through methods, partials, classes and modules (what a helper names
itself is in test_tracing.py)."""

import collections
import functools
from types import ModuleType

import numpy as np
import pytest

import numba_cute as cute
from tests.compiler.test_tracing import compiled

OF_METHODS, OF_LAMBDAS = [], []


class Held:
    def __init__(self):
        self.items = []

    def keeps(self, n):
        self.items.append(n)
        return n

    def notes(self, n):
        OF_METHODS.append(n)
        return n

    also_notes = functools.partialmethod(lambda self, n: OF_LAMBDAS.append(n) or n)


HELD, METHOD, PARTIAL = Held(), Held().keeps, functools.partial(lambda held, n: held.append(1) or n, [])
APPEND, TABLE = [].append, {"n": 1}
MODULE = ModuleType("of_users")
MODULE.count, MODULE.items = 0, []
GENERATOR = (n for n in range(1000))


def always_one():
    while True:
        for _ in range(500):
            yield 1


ALIKE = always_one()
next(ALIKE)


def sets_a_module(n):
    MODULE.count += 1
    return n


def changes_what_a_module_holds(n):
    MODULE.items.append(1)
    return n


def calls_a_method_of_what_it_does_not_name(n):
    return METHOD(n)


def calls_a_partial(n):
    return PARTIAL(n)


def calls_what_its_class_has(n):
    return HELD.notes(n)


def calls_what_its_class_has_in_part(n):
    return HELD.also_notes(n)


def sets_a_global_that_nobody_reads(n):
    global UNREAD
    UNREAD = n
    return n


def sets_a_new_name_of_a_module(n):
    MODULE.fresh = n
    return n


def calls_a_lists_own_method(n):
    APPEND(n)
    return n


def sets_what_was_set_before(n):
    TABLE["same"] = 1
    return n


def advances_a_generator(n):
    return n + next(GENERATOR)


def advances_one_that_gives_the_same(n):
    return n + next(ALIKE)


CHANGES = [
    calls_a_lists_own_method, sets_what_was_set_before, sets_a_global_that_nobody_reads, sets_a_new_name_of_a_module,
    sets_a_module, changes_what_a_module_holds, calls_a_method_of_what_it_does_not_name, calls_a_partial,
    calls_what_its_class_has, calls_what_its_class_has_in_part, advances_a_generator, advances_one_that_gives_the_same,
]  # fmt: skip


@pytest.mark.parametrize("helper", CHANGES, ids=lambda f: f.__name__)
def test_what_changes_pythons_state_is_refused(helper):
    with pytest.raises(cute.CuteError, match=rf"{helper.__name__} changes .*, which is Python's and not the kernel's"):
        compiled(helper)


class Kept:
    count = 0

    def __setattr__(self, name, value):
        raise AssertionError("asks nobody")


ORDERED = collections.OrderedDict(a=1, b=2)
TOTALS, NAMES, SEEN, QUEUE = [1, 2], {"a"}, np.arange(4), collections.deque([1])
KEPT, TIMES = Kept(), 0


def each_kind(n):
    global TIMES, NEW
    TOTALS[0] = n
    TOTALS.append(n)
    NAMES.add("b")
    TABLE["n"] = n
    TABLE["m"] = 1
    SEEN[0] = 9
    QUEUE.popleft()
    ORDERED.clear()
    vars(KEPT)["x"] = n
    Kept.count += 1
    Kept.other = n
    each_kind.calls = n
    TIMES, NEW = TIMES + 1, n
    return n


def each_kind_and_then_asks(n):
    each_kind(n)
    return 1 if n > 3 else 2


def each_kind_and_then_fails(n):
    each_kind(n)
    return n.nothing


@pytest.mark.parametrize("helper", [each_kind, each_kind_and_then_asks, each_kind_and_then_fails])
def test_what_a_refused_function_changed_is_as_before(helper):
    with pytest.raises(cute.CuteError, match="which is Python's and not the kernel's"):
        compiled(helper)
    assert (TOTALS, NAMES, TABLE, SEEN.tolist()) == ([1, 2], {"a"}, {"n": 1}, [0, 1, 2, 3])
    assert (
        list(QUEUE) == [1]
        and list(ORDERED.items()) == [("a", 1), ("b", 2)]
        and vars(KEPT) == {}
        and Kept.count == 0
        and not hasattr(Kept, "other")
    )
    assert not hasattr(each_kind, "calls") and TIMES == 0 and "NEW" not in globals()


def test_what_a_function_around_it_changed_is_as_before():
    count = 0

    def counts(n):
        nonlocal count
        count += 1
        return 1 if n > 3 else 2

    with pytest.raises(cute.CuteError, match="`count` around counts"):
        compiled(counts)
    assert count == 0
