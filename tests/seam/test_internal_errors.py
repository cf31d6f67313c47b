# SPDX-License-Identifier: Apache-2.0
"""Faults of this library's own are said to be such, with the user's line; faults of arguments never are."""

import functools
import importlib
import traceback

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import seam
from numba_cute.seam.guards import facade


def deep(levels):
    """Tuples in tuples."""
    return functools.reduce(lambda x, _: (x,), range(levels), 1)


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


@pytest.mark.parametrize("words", ["len(n)", "n + 'a'"])
def test_fault_of_the_library_is_not_blamed_on_the_names_in_an_argument(words):
    (f,) = library(f"def f(made):\n    n = 3\n    return {words}", "f", guard=facade._guarded)
    with pytest.raises(cute.InternalError):
        f({"a": lambda: None, "b": [lambda: None]})


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


PLACES = {
    "a pass": ("compiler.passes.branches", "_prune"),
    "the bridge": ("compiler.bridge.calls", "_is_run_time"),
    "the emitter": ("compiler.emit.scalars", "Scalars.arith"),
    "a store": ("tensor.pointer", "Pointer.store_vector"),
    "an element": ("tensor.offsets", "add"),
}
ENGINES = {
    "compile": lambda kernel, *args: cute.compile(kernel, args),
    "simulate": lambda kernel, *args: cute.simulate(kernel)[1, 1](*args),
}


@pytest.mark.parametrize("error", [TypeError, ValueError, IndexError])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("engine", ENGINES)
def test_fault_anywhere_in_an_engine_is_an_internal_error_at_the_kernels_line(engine, place, error, monkeypatch):
    room, path = PLACES[place]
    module = importlib.import_module(f"numba_cute.{room}")
    function = functools.reduce(getattr, path.split("."), module)
    function = getattr(function, "__wrapped__", function)
    (faulty,) = library(
        f"def faulty(*args, **named):\n    raise {error.__name__}('broken')", "faulty", guard=lambda f: f
    )
    code = faulty.__code__.replace(co_filename=module.__file__)

    @cuda.jit
    def kernel(out, n):
        registers = cute.make_rmem_tensor(4, cute.Int32)
        registers[n % 4] = n + 1
        out[0] = registers[0] + cute.make_layout((4, 8), stride=(n, 1))(n)

    monkeypatch.setattr(function, "__code__", code)
    monkeypatch.setenv("NUMBA_CUTE_TRACEBACK", "1")
    with pytest.raises(cute.InternalError) as e:
        ENGINES[engine](kernel, np.zeros(1, np.int32), 3)
    assert ", in faulty\n" in "".join(traceback.format_exception(e.value))
    said = str(e.value)
    assert f"{error.__name__} at {module.__file__}" in said and "broken" in said
    assert "this is a fault of numba-cute: please report it" in said and "NUMBA_CUTE_TRACEBACK=1" in said
    assert f"in kernel kernel, {__file__}:" in said and "numba-cuda" in said


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
        lambda: cute.transform_leaf(lambda: 1, (4, 8)),
        lambda: cute.find_if((4, 8), cute.Float64),
        lambda: cute.timeline(lambda n: n),
        lambda: repr(cute.utils.GroupSearchResult(*[deep(100_000)] * 7)),  # Python 3.13 writes 3,000 levels
        lambda: cute.assume(np.ones(4, bool)),
        lambda: cute.print_tensor(cute.make_tensor(np.zeros(16, np.uint8), 16)),
        lambda: cute.domain_offset(((4, 8), 2, 1), cute.make_tensor(np.zeros(16, np.uint8), (4, 4))),
        lambda: cute.make_identity_layout((4, 8)).get_flat_coord(4),
        lambda: cute.testing.assert_allclose("x", np.ones(3)),
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
