# SPDX-License-Identifier: Apache-2.0
"""A kernel's IR holds no more statements than its types and its code need, and means the same with fewer."""

import numpy as np
import pytest
from numba import cuda
from numba.cuda.compiler import run_frontend
from numba.cuda.core import ir

import numba_cute as cute
from numba_cute.compiler.passes import inference, leftovers, module_names, typed_constants
from numba_cute.compiler.passes.definitions import instructions
from numba_cute.compiler.passes.uses import read_in
from tests.native import Native


@pytest.fixture
def inferred(monkeypatch):
    """The statements of each function whose types are inferred, by its name."""
    found, run = {}, inference.TypeInference.run_pass

    def noted(self, state):
        found[state.func_id.func_name] = instructions(state.func_ir.blocks)
        return run(self, state)

    monkeypatch.setattr(inference.TypeInference, "run_pass", noted)
    return found


@pytest.fixture
def copies(monkeypatch):
    """How many statements the copies have that are typed for constants."""
    found, typed = [], typed_constants.TypedConstants._typed

    def noted(self, func_ir):
        found.append(len(instructions(func_ir.blocks)))
        return typed(self, func_ir)

    monkeypatch.setattr(typed_constants.TypedConstants, "_typed", noted)
    return found


def names(out):
    last = 0
    for i in cute.range_constexpr(4):
        k = i * 2
        held = k
        out[k + 1] = held + last
        last = i
        if out[0] > 7:
            held = 5
            out[i] += held
    step = 3
    for j in range(2):
        out[8 + j] += step
        step = 4
    out[10] = last + i + step


def test_constants_that_nothing_reads_are_left_out(inferred):
    given = np.zeros(11, np.int64)
    given[0] = 9
    ours, pythons = given.copy(), given.copy()
    Native(names, (ours,)).run(1, ours)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cute, "range_constexpr", range)
        names(pythons)
    assert ours.tolist() == pythons.tolist()
    found = inferred["names"]
    read = {v for inst in found for v in read_in(inst)}
    made = [i for i in found if type(i) is ir.Assign and type(i.value) is ir.Const]
    assert len(made) > 8
    assert {i.target.name for i in made} - read == {"last"}  # which each copy sets anew


def copied(out):
    for i in cute.range_constexpr(4):
        j = i
        out[j] = j


def test_copies_of_a_loop_read_their_index_by_one_name(inferred):
    out = np.zeros(4, np.int64)
    Native(copied, (out,)).run(1, out)
    assert out.tolist() == [0, 1, 2, 3]
    assert not [str(i) for i in inferred["copied"] if type(i) is ir.Assign and isinstance(i.value, ir.Var)]


ROWS = 3


def settled(out):
    for i in cute.range_constexpr(2):
        if cute.const_expr(ROWS > 2):
            out[i] = ROWS + cute.size(cute.make_layout((i, ROWS)))
        if cute.const_expr(cute.size(cute.make_layout(ROWS)) == 2):
            out[i] = ROWS


def test_of_conditions_that_are_known_nothing_is_left_and_a_global_is_loaded_once(inferred):
    out = np.zeros(2, np.int64)
    Native(settled, (out,)).run(1, out)
    assert out.tolist() == [3, 6]
    made = [i for i in inferred["settled"] if type(i) is ir.Assign]
    loads = [i.value.value for i in made if isinstance(i.value, ir.Global)]
    assert len(loads) == len(set(loads)) and bool not in loads
    consts = [i.value.value for i in made if isinstance(i.value, ir.Const)]
    assert len(consts) == len(set(map(repr, consts)))


def test_a_debugger_finds_them(inferred, monkeypatch):
    left = []
    monkeypatch.setattr(leftovers, "leave_out", left.append)
    args = (np.zeros(11, np.int64),)
    cute.compile(cuda.jit(names, debug=True, opt=False), args)
    assert inferred and not left
    cute.compile(cuda.jit(names, lineinfo=True), args)
    assert left


def bounded(out, n: int):
    tile = cute.make_layout((2, 3))
    for j in range(n):
        out[j] = j * j
        out[j] += out[j + 1] % 7
        out[j + 1] -= 4
    other = tile
    for i in cute.range_constexpr(cute.size(other)):
        out[i] = other(i) + n


def test_of_what_tells_a_bound_alone_types_are_inferred_for_it(copies, inferred):
    out = np.zeros(8, np.int64)
    Native(bounded, (out, 0)).run(1, out, 0)
    assert out.tolist() == [*range(6), 0, 0]
    assert copies and max(copies) < 25  # with the branches and jumps that are there
    assert len(inferred["bounded"]) > 60


def before(out, n: int):
    out.nothing(3)
    for i in cute.range_constexpr(cute.size(out.nothing)):
        out[i] = n


def test_what_is_wrong_before_a_bound_is_said_of_its_line(copies):
    with pytest.raises(cute.CuteError, match="nothing") as e:
        cute.compile(before, (np.zeros(8, np.int64), 3))
    assert "out.nothing(3)" in str(e.value)
    assert len(copies) > 1 and copies[-1] > copies[0]  # all of it, where the part told no type


def loading(out):
    out[cute.arch.thread_idx()[0]] = cute.size(cute.make_layout(4))


def test_names_in_modules_of_the_library_are_loaded_at_once(inferred):
    cute.compile(loading, (np.zeros(2, np.int64),))
    loads = [i.value for i in inferred["loading"] if type(i) is ir.Assign and isinstance(i.value, ir.Global)]
    assert {x.value for x in loads} >= {cute.arch.thread_idx, cute.size, cute.make_layout}
    assert not [x for x in loads if x.value in (cute, cute.arch)]


def test_what_is_not_the_librarys_is_loaded_as_it_is_written():
    assert not module_names.load_at_once(run_frontend(lambda out: np.zeros(out)), None)


def untyped(out):
    out[0] = cute.Timeline(3)


def test_what_has_no_type_is_refused_where_it_is_read():
    with pytest.raises(cute.CuteError, match="Timeline") as e:
        cute.compile(untyped, (np.zeros(2, np.int64),))
    assert "out[0] = cute.Timeline(3)" in str(e.value)
