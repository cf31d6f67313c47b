# SPDX-License-Identifier: Apache-2.0
"""What this library leans on of Python's inside is tried before it is used; where it is not as known, that is said and
a slower way is gone, or it is refused. `python -m tests.pythons` runs every Python that is promised."""

import ast
import json
import re
import warnings
from pathlib import Path
from types import CodeType

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compiler.host.native import known, launcher, sites, templates, trusted
from numba_cute.seam.ground import bytecode, pythons
from numba_cute.seam.ground.bytecode import operations
from numba_cute.seam.ground.pythons import Inside, PythonWarning
from numba_cute.seam.hooks import casting
from numba_cute.sim.python import unrolled
from numba_cute.sim.python.jitted import rewrite

from ..native import Native
from . import __main__ as every

PACKAGE = Path(cute.__file__).parent
READERS = {
    "seam/ground/bytecode.py", "sim/python/jitted/bytecode.py", "sim/python/jitted/settings.py", "compiler/patches.py",
    "compiler/ground/faults.py", "compiler/ground/lifted.py", "compiler/passes/comprehensions.py",
    "compiler/passes/meetings.py",
}  # fmt: skip
"""The files that know Python's instructions by themselves: what others ask is in seam/ground/bytecode.py."""


def imports(file):
    text = file.read_text()
    for node in ast.walk(ast.parse(text)) if re.search(r"\b(dis|opcode)\b", text) else ():
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_few_files_know_python_s_instructions():
    assert {str(f.relative_to(PACKAGE)) for f in PACKAGE.rglob("*.py") if {"dis", "opcode"} & {*imports(f)}} == READERS


def test_this_python_is_known_and_as_known():
    assert pythons.knows_bytecode()
    assert [i.difference for i in (bytecode.READING, rewrite.REWRITING, trusted.LAUNCHES, trusted.CASTS)] == [None] * 4


NUMBERS = {"COMPARE_OP", "FORMAT_VALUE", "CONVERT_VALUE", "KW_NAMES", "WITH_EXCEPT_START"}
"""Instructions whose values nobody here reads: `dis` tells other ones on some Pythons."""


def test_code_is_read_as_python_itself_reads_it():
    def all_of(code):
        yield code
        for inner in filter(lambda c: isinstance(c, CodeType), code.co_consts):
            yield from all_of(inner)

    def plainly(read):
        return [(n, None if n in NUMBERS else repr(v), *at) for n, v, *at in read if n not in bytecode._NONE]

    for file in [*PACKAGE.rglob("*.py")][::9]:
        for code in all_of(compile(file.read_text(), file.name, "exec")):
            assert plainly(bytecode._decoded(code)) == plainly(bytecode._told(code)), code


def test_a_python_that_is_not_known_is_tried(monkeypatch):
    monkeypatch.setattr(pythons, "BYTECODES", {})
    assert bytecode._difference() is None and rewrite._difference() is None


def test_what_differs_is_said_once():
    inside = Inside("its C API", "launches take longer", lambda: "it has no PyObject_Call")
    with pytest.warns(
        PythonWarning, match=r"^Python 3[\d.]+ is not as numba_cute knows it \(its C API: it has no"
    ) as w:
        assert not inside.holds
    assert str(w[0].message).endswith(": launches take longer")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not inside.holds


def test_what_raises_is_another_python():
    assert "(bytecode: KeyError: 'NOP')" in Inside("bytecode", "", lambda: {}["NOP"]).difference


class Other(Inside):
    """As another Python would have it."""

    def __init__(self, of):
        super().__init__(of.what, of.instead, lambda: "it is another's")


def test_a_symbol_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(trusted, "_NEEDED", (*launcher.API, "PyObject_CallTwice"))
    assert trusted._launches() == "its C API has no PyObject_CallTwice"


def test_launches_go_through_python_on_another(monkeypatch):
    monkeypatch.setattr(sites, "LAUNCHES", Other(trusted.LAUNCHES))

    def slow(*args):
        return args

    with pytest.warns(PythonWarning, match="launches go through Python, and take longer"):
        site = sites.Site(slow)
    assert site.call is slow
    site.add(object())
    assert site.plans == []
    assert sites.prepared(None, slow) is slow


def test_nothing_is_cast_on_another(monkeypatch):
    monkeypatch.setattr(known, "CASTS", Other(trusted.CASTS))
    monkeypatch.setattr(casting.CASTING, "derived", casting.run)
    monkeypatch.setattr(casting, "FUNCTIONS", ())
    monkeypatch.setattr(known, "FUNCTIONS", ())
    monkeypatch.setattr(known, "templates", lambda: pytest.fail("a template was made"))
    known.begin()
    with pytest.warns(PythonWarning, match="made anew for each launch"):
        assert [casting.CASTING.derived(abs, -i) for i in range(40)] == [*range(40)]


def test_an_object_without_its_fields_is_no_object(monkeypatch):
    """As Python 3.13.0 has it where `PyObject_GenericSetDict` was called."""
    monkeypatch.setattr(templates.Made, "number", None, raising=False)
    made = templates.Template._object
    without = lambda self, one, steps, at: made(self, templates.Made(one.cls, {}, {}, one.slots), steps, at)  # noqa: E731
    monkeypatch.setattr(templates.Template, "_object", without)
    found = Inside("its objects", "", trusted._casts).difference
    assert found is not None


@cuda.jit
def adds(out):
    out[0] = out[0] + 1


def test_no_kernel_is_simulated_on_another(monkeypatch):
    monkeypatch.setattr(rewrite, "REWRITING", Other(rewrite.REWRITING))
    rewrite._rewritten_of_file.cache_clear()
    with pytest.raises(cute.CuteError, match=r"\(bytecode: it is another's\): .*; use Python 3.10 to 3.13"):
        cute.simulate(adds)[1, 1](np.zeros(1, np.int32))


@pytest.mark.parametrize(
    "broken, said",
    [
        ("encode", "code is another when it is put together again"),
        ("_rewritten", r"rewritten code gives \(.*\), not \(15, 5, True\)"),
    ],
)
def test_code_that_is_rewritten_wrong_is_found(broken, said, monkeypatch):
    def other(n):
        return n, n

    monkeypatch.setattr(pythons, "BYTECODES", {})
    monkeypatch.setattr(rewrite, broken, lambda *args: other.__code__)
    assert re.fullmatch(said, rewrite._difference())


def test_instructions_of_another_name_are_found(monkeypatch):
    monkeypatch.setattr(pythons, "BYTECODES", {})
    monkeypatch.setitem(bytecode._NAMES, "STORE_ATTR", "PUT_ATTR")
    operations.cache_clear(), bytecode.opnames.cache_clear()
    assert "is not FOR_ITER and STORE_FAST and STORE_ATTR" in bytecode._difference()
    operations.cache_clear(), bytecode.opnames.cache_clear()


# ---------------------------------------------------------------- every Python's code in the same words


def loops(x, y):
    for i in x:
        i + y
    return 1


def named(x):
    return [x for x in x.y.z(x) if x is not None]


class Deep(dict):
    def method(self):
        return super().found


def words(function):
    return [o.name for o in operations(function.__code__)]


def test_an_instruction_that_stands_for_two_is_two():
    found = [(o.name, o.value) for o in operations(loops.__code__) if "FAST" in o.name]
    assert found == [("LOAD_FAST", "x"), ("STORE_FAST", "i"), ("LOAD_FAST", "i"), ("LOAD_FAST", "y")]
    assert words(loops)[-2:] == ["LOAD_CONST", "RETURN_VALUE"]


def test_methods_and_what_super_finds_are_attributes():
    assert [o.value for o in operations(named.__code__) if o.name == "LOAD_ATTR"] == ["y", "z"]
    assert [o.value for o in operations(Deep.method.__code__) if o.name == "LOAD_ATTR"] == ["found"]


def test_every_operation_has_its_line():
    first = loops.__code__.co_firstlineno
    lines = {o.line for o in operations(loops.__code__)}
    assert {first + 1, first + 2, first + 3} <= lines <= {first, first + 1, first + 2, first + 3}


def test_the_index_of_a_loop_is_found_that_its_body_reads_at_once():
    inside = next(o.offset for o in operations(loops.__code__) if o.value == "y")
    assert unrolled._indices(loops.__code__, inside) == ("i",)


# ---------------------------------------------------------------- what only some Pythons compile so


@cute.kernel
def comprehensions(out, n):
    items = (1, 2, None, 4)
    out[0] = len([x for x in items if x is not None])
    x = 7
    out[1] = sum3([x * n for x in items if x is not None if x > 0]) + x
    out[2] = len([[a for a in (1, 2) if b is not None] for b in (None, 3, 4) if b is not None])

    def inner(values):
        return [v + n for v in values if v is not None]

    out[3] = inner((5, None))[0]


@cute.jit
def sum3(values):
    a, b, c = values
    return a + b + c


def test_comprehensions_with_any_condition_are_copied():
    """Python 3.12 and later compile them into the function, with a handler of exceptions that some conditions split."""
    want, out = [3, 7 * 5 + 7, 2, 10], np.zeros(4, np.int64)
    cute.simulate(comprehensions)[1, 1](out, 5)
    assert out.tolist() == want
    compiled = np.zeros(4, np.int64)
    Native(comprehensions, (compiled, 5)).run(1, compiled, 5)
    assert compiled.tolist() == want


@pytest.mark.parametrize("default", [0, 3])
def test_closures_that_are_made_with_several_instructions(default):
    @cuda.jit
    def kernel(out, a, b):
        def either(x, y=default):
            return a if x > y else b

        out[0] = either(2) + either(5)

    out = np.zeros(1, np.float64)
    cute.simulate(kernel)[1, 1](out, 1, 2.5)
    assert out[0] == (2 if default == 0 else 3.5)


# ---------------------------------------------------------------- python -m tests.pythons


def test_the_outcomes_are_those_that_pytest_says():
    said = "FAILED tests/x.py - assert 3 failed\n2 failed, 4 passed, 5 skipped, 1 warning, 1 error in 61.20s (0:01:01)"
    assert every.counted(said) == {"passed": 4, "failed": 2, "error": 1, "skipped": 5}
    assert every.counted("no tests") == dict.fromkeys(every.OUTCOMES, 0)


def test_a_python_that_is_missing_or_fails_is_told(monkeypatch, tmp_path, capsys):
    good = {"result": "passed", "version": "3.11.7", "passed": 9, "failed": 0, "error": 0, "skipped": 1, "seconds": 5}
    made = {"3.10": {"result": "no such Python here"}, "3.11": good, "3.12": {**good, "result": "failed", "failed": 2}}
    monkeypatch.setattr(every, "tried", lambda wanted, *_: made[wanted])
    monkeypatch.setattr(every, "record", lambda found: None)
    assert [every.main([p]) for p in ("3.11", "3.10", "3.12")] == [0, 1, 1]
    assert "3.11.7       9       0      0        1        5\n" in capsys.readouterr().out
    file = tmp_path / "pythons.json"
    monkeypatch.undo()
    every.record({"3.10": made["3.10"], "3.11": good}, file)
    held = json.loads(file.read_text())
    assert [*held] == ["3.11"] and held["3.11"]["passed"] == 9 and {"commit", "date"} <= {*held["3.11"]}
