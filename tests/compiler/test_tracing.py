# SPDX-License-Identifier: Apache-2.0
"""Code that is traced: when Numba compiles a function instead, whose an exception is, and what a trace may not do."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda
from numba.cuda import dispatcher, types
from numba.cuda.typing.typeof import Purpose, typeof

import numba_cute as cute
from numba_cute import InternalError
from numba_cute.compiler.bridge import values
from numba_cute.compiler.ground.target import compiling_for
from numba_cute.seam import traced
from tests.native import Native


def kernel_of(helper):
    @cuda.jit
    def kernel(out, n):
        out[0] = helper(n) + cute.size(cute.make_layout(1)) - 1

    return kernel


def compiled(helper, n=3):
    """What a helper gives in compiled code."""
    kernel, out = kernel_of(helper), np.zeros(1)
    Native(kernel, (out, n)).run(1, out, n)
    return out[0]


def simulated(helper, n=3):
    out = np.zeros(1)
    cute.simulate(kernel_of(helper))[1, 1](out, n)
    return out[0]


# ------------------------------------------------------------------ signals


def catches_exceptions(n):
    try:
        return 10 if n > 2 else 20
    except Exception:
        return 99


def catches_all(n):
    try:
        return 10 if n > 2 else 20
    except:  # noqa: E722
        return 99


def catches_and_raises(n):
    try:
        return 10 if n > 2 else 20
    except BaseException:
        raise ValueError("seen") from None


def catches_in_an_inner_one(n):
    return catches_all(n) + 1


def ends_finally(n):
    x = [1]
    try:
        x[0] = 10 if n > 2 else 20
    finally:
        return x[0]  # noqa: B012


@pytest.mark.parametrize(
    "helper", [catches_exceptions, catches_all, catches_and_raises, catches_in_an_inner_one, ends_finally]
)
def test_no_value_of_a_handler_is_taken_where_a_signal_was_caught(helper):
    with pytest.raises(cute.CuteError, match="`try` in a kernel|Numba does not compile"):
        compiled(helper)


def falls_back(n):
    try:
        return {4: 1}[3] + n
    except KeyError:
        return n * 2


def test_a_user_catches_exceptions_of_their_own():
    assert compiled(falls_back) == simulated(falls_back) == 6


def branches(n):
    if n > 2:
        return n * 2
    return n


def uses_the_device(n):
    return cuda.threadIdx.x + n


@cuda.jit(device=True)
def device(x):
    return x + 1


def calls_the_device(n):
    return device(n)


def has_an_array(n):
    a = cuda.local.array(2, "int64")
    a[0] = n
    return a[0]


def raises_to_a_power(n):
    return n & 1


@pytest.mark.parametrize("helper", [branches, uses_the_device, calls_the_device, has_an_array, raises_to_a_power])
def test_what_cannot_be_traced_is_jitted(helper):
    assert compiled(helper) == simulated(helper)


# ------------------------------------------------------------------ whose an exception is


def raises(n):
    raise ValueError("no such tile")


def lacks_a_key(n):
    return {1: 2}[5] + n


def divides_by_zero(n):
    return n + 1 // 0


def raises_a_type_error(n):
    raise TypeError("mine")


@pytest.mark.parametrize(
    "helper, cls, words",
    [
        (raises, ValueError, "raises raised ValueError: no such tile"),
        (lacks_a_key, KeyError, "lacks_a_key raised KeyError: 5"),
        (divides_by_zero, ZeroDivisionError, "divides_by_zero raised ZeroDivisionError"),
        (raises_a_type_error, TypeError, "raises_a_type_error raised TypeError: mine"),
    ],
)
def test_an_exception_of_the_users_is_told_as_theirs_with_its_line(helper, cls, words):
    with pytest.raises(cute.CuteError, match=words) as error:
        compiled(helper)
    assert isinstance(error.value, cls) and "test_tracing.py:" in str(error.value)


@pytest.mark.parametrize("fault", [KeyError("x"), ZeroDivisionError("x"), AttributeError("x"), TypeError("x")])
def test_a_fault_of_this_library_is_told_as_one(monkeypatch, fault):
    def broken(*args):
        raise fault

    broken.__globals__  # noqa: B018
    monkeypatch.setattr(values, "leaf_type", _in_library(broken))
    with pytest.raises(InternalError, match="this is a fault of numba-cute") as error:
        compiled(lambda n: n + 1)
    assert "test_tracing.py:" in str(error.value)


def _in_library(fn):
    """The function, as if a file of the library held it."""
    code = fn.__code__.replace(co_filename=values.__file__)
    return type(fn)(code, vars(values), fn.__name__, None, fn.__closure__)


# ------------------------------------------------------------------ Python's state

COUNT, SEEN, TABLE, STEPS = 0, [], {}, itertools.count(1)
NAMESPACE = SimpleNamespace(n=0)
ARRAY = np.zeros(2, np.int64)


class Counter:
    made = 0

    def __init__(self):
        self.n = 0


COUNTER = Counter()


def sets_a_global(n):
    global COUNT
    COUNT += 1
    return n


def appends(n):
    SEEN.append(1)
    return n + len(SEEN)


def fills_a_dict(n):
    TABLE[len(TABLE)] = 1
    return n


def steps(n):
    return n + next(STEPS)


def has_a_mutable_default(n, held=[]):  # noqa: B006
    held.append(1)
    return n


def sets_its_own_attribute(n):
    sets_its_own_attribute.calls = getattr(sets_its_own_attribute, "calls", 0) + 1
    return n


def sets_a_class(n):
    Counter.made += 1
    return n


def sets_an_object(n):
    COUNTER.n += 1
    return n


def sets_a_namespace(n):
    NAMESPACE.n += 1
    return n


def sets_an_array(n):
    ARRAY[0] += 1
    return n


def calls_one_that_does(n):
    return appends(n)


def closed():
    calls = 0

    def counts(n):
        nonlocal calls
        calls += 1
        return n

    return counts


@traced
def traced_one(n):
    SEEN.append(1)
    return n


CHANGES = [
    sets_a_global, appends, fills_a_dict, steps, has_a_mutable_default, sets_its_own_attribute, sets_a_class,
    sets_an_object, sets_a_namespace, sets_an_array, calls_one_that_does, closed(), traced_one,
]  # fmt: skip


@pytest.mark.parametrize("helper", CHANGES, ids=lambda f: f.__name__)
def test_what_changes_pythons_state_is_refused(helper):
    with pytest.raises(cute.CuteError, match=rf"{helper.__name__} changes .*, which is Python's and not the kernel's"):
        compiled(helper)


def makes_its_own(n):
    held = []
    for i in range(3):
        held.append(i)
    return n + len(held) + 1


def test_what_a_function_makes_itself_it_may_change():
    assert compiled(makes_its_own) == simulated(makes_its_own) == 7


def test_a_static_result_that_changes_is_refused(monkeypatch):
    steps = iter(range(100))
    monkeypatch.setattr("numba_cute.compiler.bridge.state._MOST", 0)  # as if the iterator were not seen

    def changing():
        return next(steps)

    @cuda.jit
    def kernel(out):
        out[0] = changing() + cute.size(cute.make_layout(1))

    with pytest.raises(cute.CuteError, match="changing gives something else each time it is called"):
        Native(kernel, (np.zeros(1),))


def prints(n):
    print("n is", n)
    return n


def test_a_print_in_a_helper_is_a_statement_of_the_kernel(capfd):
    ptx = cute.compile(kernel_of(prints), (np.zeros(1), 3)).ptx
    assert "vprintf" in ptx and capfd.readouterr().out == ""


# ------------------------------------------------------------------ objects


@dataclasses.dataclass
class Pair:
    a: object
    b: object = dataclasses.field(default_factory=lambda: 5)

    def __call__(self, by):
        return (self.a + self.b) * by


class Doubling:
    def __init__(self, x):
        self.x = x

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)


class Answering:
    def __init__(self, x):
        self.x = x

    def __getattr__(self, name):
        return len(name)


class Hiding:
    def __init__(self, x):
        self.x = x

    def __getattribute__(self, name):
        return 9


def of_objects(make):
    @cuda.jit
    def kernel(out, n):
        out[0] = make(n) + cute.size(cute.make_layout(1)) - 1

    return kernel


@cute.jit
def called(n):
    return Pair(n)(2)


@cute.jit
def replaced(n):
    pair = dataclasses.replace(Pair(n), b=7)
    return pair.a * 10 + pair.b


@cute.jit
def answered(n):
    obj = Answering(n)
    return obj.x * 100 + obj.four


@cute.jit
def made_doubled(n):
    return Doubling(n).x


@cute.jit
def namespaces(n):
    first, second = SimpleNamespace(a=n, b=n + 1), SimpleNamespace(c=n + 2, d=n + 3)
    return first.a * 1000 + first.b * 100 + second.c * 10 + second.d


@pytest.mark.parametrize("make", [called, replaced, answered, made_doubled, namespaces], ids=lambda f: f.__name__)
def test_a_class_means_in_a_kernel_what_it_means_in_python(make):
    assert compiled(make) == simulated(make)


@cute.jit
def set_doubled(n):
    obj = Doubling(n)
    obj.x = n
    return obj.x


@cute.jit
def hiding(n):
    return Hiding(n).x


def keyword(n, b=2):
    return n * b


@pytest.mark.parametrize(
    "make, words",
    [
        (set_doubled, "Doubling has its own __setattr__"),
        (hiding, "Hiding has its own __getattribute__"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_what_a_kernel_cannot_do_as_python_is_refused_in_words(make, words):
    with pytest.raises(cute.CuteError, match=words):
        compiled(make)


# ------------------------------------------------------------------ plain Numba stays plain


def adopted():
    """A device function that plain Numba refuses, and kernels of both kinds that call it."""

    @cuda.jit(device=True)
    def refused(x):
        y = 0
        for item in (x, (1, x)):
            y += 1 if item is None else 2
        return y

    def plain(out, n):
        out[0] = refused(n)

    def ours(out, n):
        out[0] = refused(n) + cute.size(cute.make_layout(1)) - 1

    return plain, ours


def outcome(function):
    """What compiling a kernel ends in, the plain one by Numba alone."""
    try:
        with compiling_for("sm_90a") as cc:
            if function.__name__ == "plain":
                kinds = types.float64[::1], types.int64
                dispatcher.compile_cuda(function, types.void, kinds, cc=cc, nvvm_options={})
            else:
                cute.compile(function, (np.zeros(1), 3))
    except Exception as e:
        return type(e).__name__
    return "compiled"


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (1, 0, 1, 0)])
def test_what_numba_makes_of_a_device_function_hangs_on_no_order(order):
    alone = [outcome(adopted()[i]) for i in (0, 1)]
    assert alone == ["TypingError", "compiled"]
    kernels = adopted()
    assert [outcome(kernels[i]) for i in order] == [alone[i] for i in order]


@pytest.mark.parametrize("value", [lambda x: x, len, COUNTER.__init__, keyword], ids=lambda f: f.__name__)
def test_functions_have_no_type_outside_of_this_librarys_kernels(value):
    with pytest.raises(ValueError, match="Cannot determine Numba type"):
        typeof(value, Purpose.argument)
