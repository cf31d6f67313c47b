# SPDX-License-Identifier: Apache-2.0
"""Blocks as nested loops and conditions: they run the same, whatever the graph."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

pytest.importorskip("xdsl")

from numba_cute.dtypes import Boolean, Int64
from numba_cute.seam import CuteError
from numba_cute.typed.descriptions import Constant, Scalar
from numba_cute.typed.form import Block, Branch, Call, Copy, Function, Jump, Known, Return, Set
from numba_cute.typed.graph import Graph
from numba_cute.typed.rotation import unrotated
from numba_cute.typed.structure import Choose, For, Go, If, Repeat, While, structured

STEPS = 60


def function(blocks, variables=()):
    described = {"trace": Scalar(Int64), **{f"c{label}": Scalar(Boolean) for label in blocks}, **dict(variables)}
    return Function(function, (), described, blocks, 0)


def random_graph(rng):
    """Blocks that note that they ran: branches go on, or back to blocks that dominate them (so it is reducible)."""
    count = rng.randrange(2, 12)
    forward = {i: [rng.randrange(i + 1, count + 1) for _ in range(rng.choice((1, 2, 2)))] for i in range(count)}
    graph = Graph({i: tuple(t) for i, t in forward.items()}, 0)
    blocks = {}
    for i, targets in forward.items():
        headers = [h for h in range(i + 1) if h and i in graph._dominator and h in graph._dominator]
        headers = [h for h in headers if graph._dominates(h, i)]
        if headers and rng.random() < 0.5:
            targets[rng.randrange(len(targets))] = rng.choice(headers)
        end = Jump(targets[0]) if len(targets) == 1 else Branch(f"c{i}", *targets)
        blocks[i] = Block((Set("trace", Known(i)),), end)
    blocks[count] = Block((Set("trace", Known(count)),), Return(None))
    return blocks


class Ends(Exception):
    """The run was long enough."""


class Run:
    """A run whose conditions come from a seed."""

    def __init__(self, seed):
        self.rng, self.trace, self.selectors = random.Random(seed), [], {}

    def statement(self, s):
        if s.target == "trace":
            self.trace.append(s.source.value)
            if len(self.trace) >= STEPS:
                raise Ends

    def holds(self, condition):
        if condition is None:
            return True
        if condition.label is None:
            found = self.rng.random() < 0.5
        else:
            found = self.selectors[condition.variable] == condition.label
        return found is not condition.negated

    def blocks(self, blocks):
        at = 0
        while True:
            for s in blocks[at].statements:
                self.statement(s)
            end = blocks[at].terminator
            if isinstance(end, Return):
                return
            if isinstance(end, Jump) or end.then == end.otherwise:
                at = end.target if isinstance(end, Jump) else end.then
            else:
                at = (end.otherwise, end.then)[self.rng.random() < 0.5]

    def region(self, region):
        for node in region:
            if isinstance(node, Go):
                self.selectors[node.selector] = node.label
            elif isinstance(node, Choose):
                self.selectors[node.selector] = node.then if self.holds(node.condition) else node.otherwise
            elif isinstance(node, If):
                self.region(node.then if self.holds(node.condition) else node.otherwise)
            elif isinstance(node, While):
                self.region(node.test)
                while self.holds(node.condition):
                    self.region(node.body)
                    self.region(node.test)
            elif isinstance(node, Repeat):
                self.region(node.body)
                while self.holds(node.again):
                    self.region(node.body)
            else:
                assert not isinstance(node, For)
                self.statement(node)


def traced(run, what, *args):
    with suppress(Ends):
        what(run, *args)
    return run.trace


@pytest.mark.parametrize("seeds", [range(300), pytest.param(range(300, 6000), marks=pytest.mark.slow)], ids=len)
def test_any_reducible_graph_runs_the_same(seeds):
    for seed in seeds:
        blocks = random_graph(random.Random(seed))
        body = structured(function(blocks)).body
        for choices in range(6):
            want = traced(Run(choices), Run.blocks, blocks)
            assert traced(Run(choices), Run.region, body) == want, (seed, blocks)


def test_a_loop_with_two_entries_is_refused():
    blocks = {
        0: Block((), Branch("c0", 1, 2)), 1: Block((Set("trace", Known(1)),), Jump(2)),
        2: Block((), Branch("c2", 1, 3)), 3: Block((), Return(None)),
    }  # fmt: skip
    with pytest.raises(CuteError, match="a loop is entered in several places"):
        structured(function(blocks))


def asks(name, of):
    return Set(name, Call(bool, (of,)))


@pytest.mark.parametrize("other", [False, True])
def test_the_two_tests_of_a_while_become_one_if_they_are_the_same(other):
    """In front of the loop and at its end `bool(x)` of what `x` is joined of; or another function."""
    after = Set("q", Call(abs, ("y",))) if other else asks("q", "y")
    blocks = {
        0: Block((Set("x", Known(1)), Set("p", Copy("x")), asks("c", "x")), Branch("c", 1, 2)),
        1: Block((Set("y", Copy("p")), Set("p", Copy("y")), after), Branch("q", 1, 2)),
        2: Block((), Return(None)),
    }
    names = {n: Scalar(Int64) for n in "xyp"} | {n: Scalar(Boolean) for n in "cq"}
    found = structured(function(blocks, names)).body
    loop = next((n for n in found if isinstance(n, While)), None)
    assert (loop is None) is other
    if loop is not None:
        assert loop.test == [asks("q", "p")] and loop.condition.variable == "q"


def test_a_test_whose_parts_are_read_elsewhere_stays():
    blocks = {
        0: Block((Set("x", Known(1)), Set("p", Copy("x")), asks("c", "x")), Branch("c", 1, 2)),
        1: Block((Set("y", Copy("c")), Set("p", Copy("y")), asks("q", "y")), Branch("q", 1, 2)),
        2: Block((), Return(None)),
    }
    names = {n: Scalar(Int64) for n in "xyp"} | {n: Scalar(Boolean) for n in "cq"}
    assert unrotated(function(blocks, names)).blocks == blocks
    assert Constant(1) != Constant(True)


@pytest.mark.parametrize("values", [(1, 1.0), (1, True), (0.0, -0.0)], ids=str)
def test_constants_that_python_takes_for_equal_are_two(values):
    assert len({Constant(v) for v in values}) == 2


def test_nan_is_one_constant():
    assert Constant(float("nan")) == Constant(float("nan"))
