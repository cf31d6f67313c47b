# SPDX-License-Identifier: Apache-2.0
"""A fault in the simulator's type inference is heard: it never becomes another number."""

import types as python_types

import pytest

from numba_cute.seam import CuteError
from numba_cute.sim import simulate
from numba_cute.sim.python.jitted import infer, opcodes, specialise
from numba_cute.sim.python.jitted.types import NOTHING

from ..fuzz.build import kernel_of
from . import inference_faults as faults


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.slow)], ids=["sample", "all"])
def test_each_function_of_the_inference_is_heard_when_it_raises(step, monkeypatch):
    right = faults.results()
    assert all(isinstance(r, list) for r in right), right
    silent, unused = [], []
    for name, owner, attribute in list(faults.functions())[::step]:
        with monkeypatch.context() as patch:
            called = faults.fault(owner, attribute, patch)
            found = faults.results()
        if not called:
            unused.append(name)
        elif any(got != want and not isinstance(got, str) for got, want in zip(found, right)):
            silent.append(name)
        elif found == right:
            silent.append(f"{name}, which nobody hears")
    faults.forget()
    assert not silent
    assert len(unused) < 25, unused


@pytest.mark.parametrize("method", ["_binary", "_unary", "_next", "_call", "_item", "_global"])
@pytest.mark.parametrize("wrong", [None, NOTHING], ids=["unknown", "nothing"])
def test_a_type_that_is_lost_changes_a_result_of_these_kernels(method, wrong, monkeypatch):
    right = faults.results(faults.SOURCES[-1:])
    assert right == [[0.0] * 8]
    monkeypatch.setattr(infer.Inference, method, lambda self, node: wrong)
    found = faults.results(faults.SOURCES[-1:])
    monkeypatch.undo()
    faults.forget()
    assert found != right


def test_a_fault_names_the_function_and_the_users_line(monkeypatch):
    monkeypatch.setattr(infer.Inference, "_binary", lambda self, node: [][1])
    kernel = kernel_of("def kernel(out, n):\n    v = 1\n    for i in range(n):\n        v = v * 1.5\n    out[0] = v\n")
    with pytest.raises(CuteError, match="(?s)kernel: internal error while the types.*IndexError.*report.*in kernel"):
        simulate(kernel)[1, 1]([0.0], 3)
    faults.forget()


def _codes(code):
    yield code
    for c in code.co_consts:
        if isinstance(c, python_types.CodeType):
            yield from _codes(c)


@pytest.mark.parametrize("module", ["argparse", "ast", "dataclasses", "textwrap", "statistics"])
def test_code_of_every_shape_is_understood(module):
    source = __import__(module).__file__
    with open(source) as f:
        code = compile(f.read(), source, "exec")
    for c in list(_codes(code))[1:]:
        opcodes.flow_of(c)
        specialise.may_need_casts(c)
