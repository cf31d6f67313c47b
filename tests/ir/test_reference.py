# SPDX-License-Identifier: Apache-2.0
"""The operations of CuTe's own compiler by name (tests/compatibility/seeds.json): each is defined, its text is read as
it is printed, its verifier refuses, kernels with it are executed and assembled. Its summary counts more than these, 85
and 30: as many are executed and assembled of both dialects."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("xdsl")

from xdsl.utils.exceptions import VerifyException  # noqa: E402

from numba_cute.ir.library import operations  # noqa: E402
from numba_cute.ir.module import context  # noqa: E402
from numba_cute.ir.text.python import parsed, printed  # noqa: E402

from ..compatibility.page import SEEDS  # noqa: E402
from .executed import CALLS, LOWERED, TESTS  # noqa: E402
from .test_every_operation import HEAD, TAIL  # noqa: E402
from .test_executed import ALL  # noqa: E402

OF_NVGPU = SEEDS["S3 CuTe IR cute_nvgpu_ir"]
NAMES = [f"numba_cute.{n}" for n in SEEDS["S3 CuTe IR cute_ir"]["names"]]
NAMES += [f"numba_cute.nvgpu.{n}" for n in (*OF_NVGPU["names"], *OF_NVGPU["nvgpu"])]
SUMMARY = {"numba_cute": 85, "numba_cute.nvgpu": 30}
"""How many operations the summary counts."""


def verified(name, operands):
    """The text of a module with the operation, once it was read and printed; and whether the operation verifies."""
    source = f"{HEAD}    %r = {name} {operands} : i32{TAIL}"
    module, _ = parsed(source, context())
    op = next(op for op in module.walk() if isinstance(op, operations.ApiOp))
    assert op.name == name
    try:
        op.verify()
    except VerifyException as e:
        assert name in str(e)
        return printed(module).source == source, False
    return printed(module).source == source, True


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_of_the_reference_is_all_there(name):
    definition = ALL[name]
    assert definition.doc
    assert verified(name, "%a, (1, _), named = !f16")[0]
    meant = definition.function or inspect.getattr_static(definition.cls, definition.attribute)
    several = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(meant).parameters.values())
    assert verified(name, "no_such_keyword = 1" if several else ", ".join(["%a"] * 40)) == (True, False)
    assert any(name in where for where in (CALLS, TESTS, LOWERED)), "no kernel with it is executed, nor assembled"


@pytest.mark.parametrize("dialect", SUMMARY)
def test_a_dialect_has_as_many_operations_as_the_summary_says(dialect):
    there = {n for n in ALL if part(n) == dialect}
    assert len(there & {*CALLS, *TESTS, *LOWERED}) >= SUMMARY[dialect]
    assert len([n for n in NAMES if part(n) == dialect]) == {"numba_cute": 46, "numba_cute.nvgpu": 23}[dialect]


def part(name):
    return "numba_cute.nvgpu" if name.startswith("numba_cute.nvgpu.") else "numba_cute"
