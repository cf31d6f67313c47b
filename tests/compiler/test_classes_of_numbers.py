# SPDX-License-Identifier: Apache-2.0
"""What a kernel says of the class of a number, of the host's static objects too: the simulator and compiled code (on
this machine's processor) agree, and Python does where a kernel's numbers can tell."""

import linecache
from typing import Any

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.seam import frozen
from numba_cute.seam.marks.host_objects import as_argument
from tests.native import Native

NUMBERS = {
    "int": 3, "np.int32": np.int32(3), "np.int64": np.int64(3), "Int32": cute.Int32(3), "bool": True,
    "np.bool_": np.bool_(True), "Boolean": cute.Boolean(True), "float": 2.5,
}  # fmt: skip
CLASSES = {"int": int, "np.int32": np.int32, "Int32": cute.Int32, "bool": bool}
SOURCE = """
class Plain:
    def __init__(self, n):
        self.n = n

    def asked(self):
        return 1 if isinstance(self.n, CLASS) else 0

@frozen
class Frozen:
    n: Any = 0

    def asked(self):
        return 1 if isinstance(self.n, CLASS) else 0

    @property
    def said(self):
        return 1 if isinstance(self.n, CLASS) else 0

def asked(x):
    return 1 if isinstance(x, CLASS) else 0

FROZEN = Frozen(NUMBER)

def kernel(o, n, plain, given):
    o[0] = 1 if isinstance(NUMBER, CLASS) else 0
    o[1] = asked(NUMBER)
    o[2] = 1 if isinstance(n, CLASS) else 0
    o[3] = asked(n)
    o[4] = 1 if isinstance(plain.n, CLASS) else 0
    o[5] = plain.asked()
    o[6] = Plain(n).asked()
    o[7] = 1 if isinstance(given.n, CLASS) else 0
    o[8] = given.asked()
    o[9] = given.said
    o[10] = FROZEN.asked()
"""
BY_TYPE = """
def asked(x):
    return 1 if type(x) is CLASS else 0

def kernel(o, n, plain, given):
    o[0] = 1 if type(n) is CLASS else 0
    o[1] = asked(n)
    o[2] = 1 if type(given.n) is CLASS else 0
    o[3] = asked(NUMBER)
"""


def made(source, number, cls):
    """The names of a module of this source."""
    space = {
        "__name__": "classes_of_numbers", "frozen": frozen, "Any": Any, "np": np, "NUMBER": NUMBERS[number],
        "CLASS": CLASSES[cls],
    }  # fmt: skip
    name = f"<classes of numbers: {len(source)} {number} {cls}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    exec(compile(source, name, "exec", dont_inherit=True), space)
    return space


def results(space, number, objects):
    """What Python, the simulator and compiled code write, or why they do not."""
    args = (NUMBERS[number], objects["Plain"](NUMBERS[number]), objects["Frozen"](NUMBERS[number]))
    python, simulated, compiled = (np.zeros(11, np.int64) for _ in range(3))
    space["kernel"](python, *args)
    yield python.tolist()
    for run, out in ((cute.simulate(cute.kernel(space["kernel"]))[1, 1], simulated), (native(space), compiled)):
        try:
            run(out, *args)
            yield out.tolist()
        except cute.CuteError as e:
            yield str(e).split("\n")[0]


def native(space):
    def run(*args):
        kernel, args = cute.kernel(space["kernel"]), tuple(map(as_argument, args))
        Native(kernel, args).run(1, *args)

    return run


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("number", NUMBERS)
def test_isinstance_of_a_number_is_one_answer(number, cls):
    space = made(SOURCE, number, cls)
    python, simulated, compiled = results(space, number, space)
    assert simulated == compiled
    if number in ("int", "bool", "float"):
        assert simulated == python
    traced = [8, 9, 10]  # methods and properties of immutable classes see what Python sees
    if (number, cls) not in (("Int32", "np.int32"), ("Boolean", "bool")):
        assert [simulated[i] for i in traced] == [python[i] for i in traced]


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("number", ["int", "np.int32", "Int32", "Boolean"])
def test_type_of_a_number_is_one_answer_or_refused_by_both(number, cls):
    objects = made(SOURCE, number, cls)
    python, simulated, compiled = results(made(BY_TYPE, number, cls), number, objects)
    assert simulated == compiled
    assert simulated == python or cls in ("int", "bool") or number == "Int32"
    if isinstance(simulated, str):
        assert f"ask isinstance(x, {cls})" in simulated


@pytest.mark.parametrize("number", ["Int32", "Boolean", "Float32"])
def test_a_number_of_the_module_may_be_a_variables_first_value(number):
    first = {"Int32": cute.Int32(3), "Boolean": cute.Boolean(True), "Float32": cute.Float32(3.5)}[number]

    @cute.kernel
    def kernel(o, n):
        x = first
        if n > 3:
            x = n + 7
        o[0] = x

    for n in (2, 5):
        simulated, compiled = np.zeros(1), np.zeros(1)
        cute.simulate(kernel)[1, 1](simulated, n)
        Native(kernel, (compiled, n)).run(1, compiled, n)
        assert simulated[0] == compiled[0] == (12 if n > 3 else first.value)


@frozen
class Base:
    m: Any = 0


class Sums:
    def twice(self):
        return self.n + self.n

    @property
    def all(self):
        return self.n + self.n

    def above(self, k):  # which Python cannot follow: it is compiled
        if k > 3:
            return self.n + k
        return self.n - k


@frozen
class Alone(Sums):
    n: Any = 0


@frozen
class Below(Sums, Base):
    n: Any = 0


@pytest.mark.parametrize("cls", [Alone, Below])
@pytest.mark.parametrize("n", [3, cute.Int32(2**30 + 5)], ids=str)
def test_methods_of_immutable_objects_compute_alike(cls, n):
    @cute.kernel
    def kernel(o, n, given):
        own = cls(n=n)
        o[0], o[1], o[2] = given.twice(), given.all, given.above(n)
        o[3], o[4], o[5] = own.twice(), own.all, own.above(n)

    args = n, cls(n=n)
    simulated, compiled = np.zeros(6, np.int64), np.zeros(6, np.int64)
    cute.simulate(kernel)[1, 1](simulated, *args)
    Native(kernel, (compiled, *args)).run(1, compiled, *args)
    assert simulated.tolist() == compiled.tolist()


class Words:
    def __init__(self):
        self.words, self.known, self.text = ("a", "xb", "c"), {"a": 1, "xb": 2}, "xyz"
        self.counts = {"a": cute.Int32(1), "xb": cute.Int32(2)}

    def found(self, n):
        if n > 3:
            return "xb" in self.words and "q" not in self.known and "y" in self.text
        return False

    def same(self):
        return self.known == {"xb": 2, "a": 1} and self.known != {"a": 1} and self.words == ("a", "xb", "c")


def test_static_texts_and_their_containers_are_as_in_python():
    @cute.kernel
    def kernel(o, n, own):
        o[0] = 1 if own.found(n) else 0
        o[1] = 1 if own.same() else 0
        o[2] = 1 if own.known == {"a": 1, "xb": 2} else 0
        o[3] = 1 if "xb" in own.words and "q" not in own.words else 0
        o[4] = len(own.words) + len(own.known) + len(own.text)
        o[5] = own.known["xb"] + own.known.get("q", 7)
        o[6] = 1 if own.words[1] == "xb" else 0
        o[7] = 1 if "xb" in own.counts and "q" not in own.counts else 0

    simulated, compiled = np.zeros(8, np.int64), np.zeros(8, np.int64)
    cute.simulate(kernel)[1, 1](simulated, 5, Words())
    args = compiled, 5, as_argument(Words())
    Native(kernel, args).run(1, *args)
    assert simulated.tolist() == compiled.tolist() == [1, 1, 1, 1, 8, 9, 1, 1]
