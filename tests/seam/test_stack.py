# SPDX-License-Identifier: Apache-2.0
"""What runs with room asks the system for no memory in each call, however deep its caller stands."""

import resource
import sys

import pytest

from numba_cute.seam.ground.stack import with_room

CALLS, DEPTHS = 500, 260
"""So many calls at so many depths: frames of a whole piece of Python's stack."""


def _nothing(a, b, c):
    return a


def _loop():
    for _ in range(CALLS):
        _nothing(1, 2, 3)


def _most_faults(fn):
    """The most pages that the system gave to a call of a function, over callers of all depths."""

    def at(depth):
        if depth:
            return at(depth - 1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        fn()
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    return max(map(at, range(DEPTHS)))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="frames are objects there")
def test_no_call_asks_for_memory():
    assert _most_faults(_loop) >= CALLS  # what is to be avoided
    assert _most_faults(with_room(_loop)) < CALLS / 4


def test_it_is_the_function():
    @with_room
    def add(a, *, b=2):
        """Add."""
        return a + b

    assert (add(1), add(1, b=5), add.__name__, add.__doc__) == (3, 6, "add", "Add.")
    with pytest.raises(ZeroDivisionError):
        with_room(lambda x: 1 / x)(0)
