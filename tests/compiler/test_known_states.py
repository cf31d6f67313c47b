# SPDX-License-Identifier: Apache-2.0
"""What the compiler keeps from one state of a function to the next, or does not ask again, is what it would find."""

import ast
import inspect
import textwrap

import pytest
from numba.cuda.compiler import run_frontend
from numba.cuda.core import bytecode, ir
from numba.cuda.core.interpreter import Interpreter

from numba_cute.compiler.passes.branches import prune_known
from numba_cute.compiler.passes.constants import Constants, NotConstant
from numba_cute.compiler.passes.definitions import statements
from numba_cute.compiler.passes.reading import _ClosureReader
from numba_cute.seam.ground.bytecode import decides
from numba_cute.seam.ground.places import syntax_of

from .test_compile_time import branching, jumping, looping, straight

WIDE, NARROW, SIZES = True, False, (4, 8)


def chosen(a):
    n = SIZES[0] if WIDE else a
    m = n * 2
    if m == 8:
        k = m
    else:
        k = a
    return k + n, m


def in_turn(a, b):
    n = k = 1
    while a > n:
        if NARROW:
            n = a
        k = n + 1
        if k == 2:
            b = k
        else:
            n = k
            b = a
    return b, n, k


def never(a):
    if NARROW and a:
        return 1
    elif WIDE or a:
        n = 2
    return n


def value(known, place, inst):
    """What is known of the result of a statement."""
    known.learn(place)
    try:
        return known.given(inst.value, place)
    except NotConstant:
        return NotConstant


@pytest.mark.parametrize("fn", (chosen, in_turn, never, branching, looping, jumping), ids=lambda f: f.__name__)
def test_what_is_known_after_branches_are_decided_is_what_is_found_anew(fn):
    func_ir = run_frontend(fn)
    known = Constants(func_ir.blocks, ())
    made = [(p, i) for p, i in statements(func_ir.blocks) if isinstance(i, ir.Assign) and isinstance(i.value, ir.Expr)]
    before = {p: value(known, p, i) for p, i in made}
    while prune_known(func_ir, known):
        again, fresh = known.after_pruning(), Constants(func_ir.blocks, ())
        left = [(p, i) for p, i in made if p.label in func_ir.blocks and isinstance(i.value, ir.Expr)]  # not decided
        after = {p: value(known, p, i) for p, i in left}
        assert after == {p: value(fresh, p, i) for p, i in left}
        changed = {p for p, i in left if after[p] != before[p] and not isinstance(i.value, ir.Const)}  # a condition's
        assert changed <= {*again}
        before = after


@pytest.mark.parametrize("fn", (straight, branching, looping, chosen, in_turn), ids=lambda f: f.__name__)
def test_what_is_read_of_bytecode_is_what_numba_reads(fn):
    func_id = bytecode.FunctionIdentity.from_function(fn)
    ours, numbas = (c(func_id).interpret(bytecode.ByteCode(func_id)) for c in (_ClosureReader, Interpreter))
    assert [str(i) for _, i in statements(ours.blocks)] == [str(i) for _, i in statements(numbas.blocks)]


LAYOUTS = {
    "decorated": "@(lambda f:\n  f)\n# def\ndef f(x):\n  return x\n\n# more\ny = 1\n",
    "method": "class A:\n  def f(self):\n\n    # note\n    return 1\n  def g(self): pass\nf = A.f\n",
    "one line": "def f(): return 1\nx = 2\n",
    "last": "def f():\n\treturn 1",
    "text": "def f():\n  x = '''\nx'''\n  return x\ny = 1\n",
    "text alone": "def f():\n  '''a\nb'''\ny = 1\n",
    "brackets": "def f(\n  x\n):\n  return (\n1, 2\n)\ny = 1\n",
    "backslash": "def f(x):\n  return x + \\\n1\ny = 1\n",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_function_s_syntax_is_that_of_what_inspect_finds(layout, tmp_path):
    file, space = tmp_path / "layouts.py", {}
    file.write_text(LAYOUTS[layout])
    exec(compile(LAYOUTS[layout], str(file), "exec"), space)
    code = space["f"].__code__
    lines, first = inspect.getsourcelines(code)
    found, at = syntax_of(space["f"])
    assert ast.unparse(found) == ast.unparse(ast.parse(textwrap.dedent("".join(lines)))) and at == first


@pytest.mark.parametrize("code, expected", [
    ("x + y", False), ("[a for a in x]", False), ("not x", True), ("x if y else x", True), ("x and y", True),
    ("lambda: not x", True), ("x is not y", False), ("[a for a in x if a]", True),
])  # fmt: skip
def test_a_condition_or_a_not_is_seen_in_the_code(code, expected):
    space = {}
    exec(f"def f(x, y): return {code}", space)
    assert decides(space["f"].__code__) is expected
