# SPDX-License-Identifier: Apache-2.0
"""Faults of this library's own are said to be such, with the user's line; faults of arguments never are."""

import traceback

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import seam
from numba_cute.seam.guards import facade

FAULTS = {
    "key": "{}['no such key']",
    "index": "[][0]",
    "name": "no_such_name",
    "type": "None + 1",
    "assertion": "(_ for _ in ()).throw(AssertionError('never'))",
    "attribute": "object().no_such_field",
    "raised attribute": "(_ for _ in ()).throw(AttributeError('no such field'))",
}


def library(source, *names, guard=facade._guarded):
    """Functions of a module of this library, guarded as a facade shows them."""
    space = {"__name__": "numba_cute.faulty"}
    exec(source, space)
    return [guard(space[n]) for n in names]


@pytest.fixture(params=[facade._guarded, facade._located, facade.entry], ids=["guarded", "located", "entry"])
def guard(request):
    return request.param


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_of_the_library_is_an_internal_error_at_the_users_line(fault, guard):
    (f,) = library(f"def f(n, space='gmem', more=None):\n    return {FAULTS[fault]}", "f", guard=guard)
    with pytest.raises(cute.InternalError) as e:
        f(3, space="smem")
    said = str(e.value)
    assert "f(n=3, space='smem'): " in said and "this is a fault of numba-cute: please report it" in said
    assert "NUMBA_CUTE_TRACEBACK=1" in said
    assert f"called at {__file__}:{users_line(e.value)}" in said
    assert all(word in said for word in ("numba-cuda", "Python 3.")) and "do not go together" not in said
    assert isinstance(e.value, cute.CuteError) and type(e.value.__cause__).__name__ in said


def users_line(e):
    return next(f.lineno for f in reversed(traceback.extract_tb(e.__traceback__)) if f.filename == __file__)


def test_fault_inside_is_told_of_the_call_that_the_user_made(guard):
    inner, outer = library(
        "def inner(n):\n    return {}[n + 1]\ndef outer(n):\n    return inner(n)", "inner", "outer", guard=guard
    )
    outer.__wrapped__.__globals__["inner"] = inner
    with pytest.raises(cute.InternalError, match=r"^outer\(n=3\): KeyError"):
        outer(3)


def test_method_that_asks_its_own_object_for_what_it_lacks_is_at_fault():
    (cls,) = library("class Ours:\n    def size(self):\n        return self.sise", "Ours", guard=facade._published)
    with pytest.raises(cute.InternalError, match=r"Ours.size.*has no attribute 'sise'"):
        cls().size()


def test_fault_in_a_simulated_kernel_is_an_internal_error_at_its_line():
    (f,) = library("def f(n):\n    return {}[n + 1]", "f")
    f = seam.traced(f)

    def kernel(out):
        out[0] = 1
        f(2)

    with pytest.raises(cute.InternalError, match="please report it") as e:
        cute.simulate(kernel)[1, 1](np.zeros(1, np.int32))
    assert "f(2)" in str(e.value) and "in kernel kernel" in str(e.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: cute.make_layout({}),
        lambda: cute.make_layout((4, 8)).nothing,
        lambda: cute.make_layout((4, 8), nothing=1),
        lambda: cute.size(object()),
        lambda: cute.composition(cute.make_layout(4), "x"),
        lambda: cute.runtime.pack((4, ())),
        lambda: cute.Float32 | "%%",
        lambda: cute.testing.assert_(np.zeros(3)),
        lambda: cute.zipped_divide(cute.make_layout(8), 0),
        lambda: cute.make_layout((4, 8))[7],
    ],
)
def test_fault_of_an_argument_is_none_of_the_librarys(call):
    with pytest.raises(cute.CuteError) as e:
        call()
    assert not isinstance(e.value, cute.InternalError) and "report" not in str(e.value)


@pytest.mark.parametrize("error", ["OSError(2, 'no disk')", "ImportError('no torch')", "UserWarning('slow')"])
def test_what_the_system_lacks_is_told_as_python_tells_it(error, guard):
    (f,) = library(f"def f(n):\n    raise {error}", "f", guard=guard)
    with pytest.raises((OSError, ImportError, UserWarning)):
        f(3)


def test_what_the_users_own_function_raises_passes_as_it_is(guard):
    (f,) = library("def f(g):\n    return g()", "f", guard=guard)

    def users():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f(users)
