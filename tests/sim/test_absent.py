# SPDX-License-Identifier: Apache-2.0
"""Arguments that may be None: asking for one reads nothing of the array that is there."""

from types import SimpleNamespace

import pytest

from numba_cute.sim.python.jitted.infer import Inference, Known


class Array:
    """One whose comparison would read it, which the checks would see as a thread's reading."""

    def __eq__(self, other):
        raise AssertionError("it was read")

    __hash__ = None


@pytest.mark.parametrize("negated", [False, True], ids=["is", "is not"])
def test_asking_whether_an_array_is_none_does_not_compare_it(negated):
    known = SimpleNamespace(_all=lambda args: args)
    for values, same in (((Array(), None), False), ((None, Array()), False), ((None, None), True)):
        found = Inference._is(known, SimpleNamespace(args=[Known(v) for v in values], data=negated))
        assert found.value is (same is not negated)
