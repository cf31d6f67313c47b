# SPDX-License-Identifier: Apache-2.0
"""Every operation that the API gives: its text there and back, its documentation, and that it refuses what no function
takes."""

from __future__ import annotations

import inspect

import pytest

import numba_cute as cute

pytest.importorskip("xdsl")

from xdsl.utils.exceptions import VerifyException  # noqa: E402

from numba_cute.ir.library import definitions, operations  # noqa: E402
from numba_cute.ir.module import Module, context, dialects  # noqa: E402
from numba_cute.ir.text.python import parsed, printed  # noqa: E402

ALL = definitions.all_definitions()
HEAD = 'builtin.module attributes {numba_cute.target = "sm_90a"} {\n  func.func @k(%a: i32) {\n'
TAIL = "\n    func.return\n  }\n}\n"


def of_room(definition: definitions.Definition) -> str:
    """What stands before the operation's last name."""
    return definition.name.rpartition(".")[0]


ROOMS = sorted({of_room(d) for d in ALL})


def test_there_are_as_many_operations_as_the_reference_has():
    cute_ops = [d for d in ALL if not d.name.startswith("numba_cute.nvgpu.")]
    assert len(cute_ops) >= 85 and len(ALL) - len(cute_ops) >= 30
    by_dialect = {d.name: {op.name for op in d.operations} for d in dialects()}
    assert {d.name for d in ALL} <= by_dialect["numba_cute"]


@pytest.mark.parametrize("room", ROOMS)
def test_an_operations_text_is_read_as_it_is_printed(room):
    found = [d.name for d in ALL if of_room(d) == room]
    lines = [f'    %r{i} = {name} %a, (1, _), "x", named = !f16 : i32' for i, name in enumerate(found)]
    source = HEAD + "\n".join(lines) + TAIL
    module, _ = parsed(source, context())
    assert [op.name for op in module.walk() if isinstance(op, operations.ApiOp)] == found
    text = printed(module).source
    assert text == source
    assert printed(parsed(text, context())[0]).source == text


@pytest.mark.parametrize("room", ROOMS)
def test_an_operation_refuses_more_than_its_function_takes(room):
    taken = []
    for definition in (d for d in ALL if of_room(d) == room):
        if _takes_anything(definition):
            continue
        many = ", ".join(["%a"] * 40)
        module, _ = parsed(f"{HEAD}    %r = {definition.name} {many} : i32{TAIL}", context())
        op = next(op for op in module.walk() if isinstance(op, operations.ApiOp))
        try:
            op.verify()
        except VerifyException as e:
            assert definition.name in str(e)
        else:
            taken.append(definition.name)
    assert taken == []


def _takes_anything(definition: definitions.Definition) -> bool:
    meant = definition.function or inspect.getattr_static(definition.cls, definition.attribute)
    try:
        parameters = inspect.signature(meant).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind is p.VAR_POSITIONAL for p in parameters)


def test_an_operation_says_what_its_function_says():
    for definition in ALL:
        assert operations.operation(definition).__doc__ == definition.doc
    assert "layout" in definitions.named("numba_cute.make_layout").doc


def test_a_module_of_an_unknown_operation_names_it():
    with pytest.raises(cute.CuteError, match=r"cute\.make_layuot is not registered"):
        cute.ir.parse(f"{HEAD}    cute.make_layuot 4{TAIL}")
    assert isinstance(cute.ir.parse(HEAD + TAIL), Module)
