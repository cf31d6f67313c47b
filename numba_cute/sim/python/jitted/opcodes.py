# SPDX-License-Identifier: Apache-2.0
"""The instructions of Python 3.10 to 3.13 on symbols (see `flow`). One that is not known here gives what is unknown.

Kinds of nodes: "const" (data: the value), "param" (its number), "copy" (what a variable is set to), "global", "free"
and "cell" (the name), "attr" (name), "binary", "inplace" and "unary" (the name of the function of `operator`),
"contains", "is" (data: whether it is "is not"), "item" (container, index), "tuple", "list", "unpack" (data: which),
"iter", "next", "call" (data: the names of the last arguments), "function" (code, defaults), "phi", "undefined" and
"unknown".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any

from .bytecode import VERSION, Instruction, decode
from .flow import NULL, UNDEFINED, UNKNOWN, Block, Flow, Node, State, accesses, stack_effect
from .symbols import operator_name

_NOTHING = ("NOP", "RESUME", "CACHE", "PRECALL", "MAKE_CELL", "COPY_FREE_VARS", "GEN_START", "TO_BOOL")


@functools.lru_cache(maxsize=1024)
def flow_of(code: CodeType) -> Flow:
    """A code's flow."""
    return Flow(code, decode(code), run_block)


def run_block(flow: Flow, block: Block) -> None:
    """Run a block's instructions from its entry, and leave the state on each way on."""
    assert block.entry is not None
    state = block.entry.copy()
    state.made = block.made
    for i in block.instructions:
        state.by = i
        if i is block.last and (i.target is not None or i.name in ("RETURN_VALUE", "RETURN_CONST")):
            break
        _run(flow, state, i)
    else:
        block.ways = [(b, state) for b in flow._following(block)]
        return
    _leave(flow, block, state, block.last)


def _leave(flow: Flow, block: Block, state: State, i: Instruction) -> None:
    """The last instruction of a block: it jumps, or returns."""
    if i.name == "RETURN_VALUE":
        (block.returned,) = state.pop()
        return
    if i.name == "RETURN_CONST":
        block.returned = Node("const", data=i.value)
        return
    following = flow._following(block)
    on, jump = state.copy(), state
    if i.name == "FOR_ITER":
        on.push(Node("next", (on.stack[-1],)))
        if VERSION >= (3, 12):
            jump.push(UNKNOWN)  # which END_FOR takes away
        else:
            jump.pop()
    elif i.name in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"):
        block.condition = on.stack[-1], i.name
        on.pop()
    elif "IF" in i.name.split("_"):
        block.condition = on.stack[-1], i.name
        on.pop()
        jump.pop()
    elif i.name.startswith("SETUP_"):
        _effect(on, i)
        block.ways = [(b, on) for b in following]
        return
    elif len(following) > 1 or i.name not in _PLAIN_JUMPS:
        _effect(on, i, False)
        _effect(jump, i, True)
    block.ways = list(zip(following, (jump, on)))


_PLAIN_JUMPS = ("JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")


def _effect(state: State, i: Instruction, jumps: bool = False) -> None:
    """An instruction of which only its effect on the stack's height is known."""
    change = stack_effect(i, jumps)
    if change < 0:
        state.pop(-change)
    if state.stack:
        state.stack[-1] = UNKNOWN
    if change > 0:
        state.push(*[UNKNOWN] * change)


def _run(flow: Flow, state: State, i: Instruction) -> None:
    operator = operator_name(i)
    if operator is not None:
        kind, name = operator
        args = state.pop(1 if kind == "unary" else 2)
        state.push(Node(kind, tuple(args), name))
    elif i.name in _NOTHING:
        pass
    elif accesses(i):
        _fast(state, i)
    elif i.name in _HANDLERS:
        _HANDLERS[i.name](flow, state, i)
    else:
        _effect(state, i)


def _fast(state: State, i: Instruction) -> None:
    for kind, name in accesses(i):
        if kind == "read":
            state.push(state.variables.get(name, UNDEFINED))
        elif i.name == "DELETE_FAST":
            state.variables[name] = UNDEFINED
        else:
            state.push(Node("copy", tuple(state.pop())))
            (state.variables[name],) = state.pop()


def _load_const(flow: Flow, state: State, i: Instruction) -> None:
    state.push(Node("const", data=i.value))


def _load_global(flow: Flow, state: State, i: Instruction) -> None:
    null = VERSION >= (3, 11) and i.arg & 1
    _push_callable(state, Node("global", data=i.value), bool(null))


def _push_callable(state: State, node: Node, null: bool) -> None:
    if null and VERSION < (3, 13):
        state.push(NULL)
    state.push(node)
    if null and VERSION >= (3, 13):
        state.push(NULL)


def _load_attr(flow: Flow, state: State, i: Instruction) -> None:
    (owner,) = state.pop()
    method = i.name == "LOAD_METHOD" or VERSION >= (3, 12) and bool(i.arg & 1)
    if i.name == "LOAD_METHOD" and VERSION < (3, 11):
        state.push(Node("attr", (owner,), i.value), NULL)
    else:
        _push_callable(state, Node("attr", (owner,), i.value), method)


def _load_deref(flow: Flow, state: State, i: Instruction) -> None:
    kind = "cell" if i.value in flow.code.co_cellvars else "free"
    state.push(Node(kind, data=i.value))


def _store_deref(flow: Flow, state: State, i: Instruction) -> None:
    flow.cells.setdefault(i.value, []).append(state.pop()[0])


def _call(flow: Flow, state: State, i: Instruction) -> None:
    names = state.names
    state.names = ()
    if i.name in ("CALL_FUNCTION_KW", "CALL_KW"):
        (given,) = state.pop()
        names = given.data if given.kind == "const" else None  # type: ignore[assignment]
    args = state.pop(i.arg)
    if i.name in ("CALL_FUNCTION", "CALL_FUNCTION_KW"):
        (f,) = state.pop()
    else:
        a, b = state.pop(2)
        f = b if a is NULL else a
        if a is not NULL and b is not NULL:  # a method, and its object
            args = [b, *args]
    state.push(UNKNOWN if names is None else Node("call", (f, *args), tuple(names)))


def _names(flow: Flow, state: State, i: Instruction) -> None:
    state.names = flow.code.co_consts[i.arg]


def _build(flow: Flow, state: State, i: Instruction) -> None:
    kind = "tuple" if i.name == "BUILD_TUPLE" else "list"
    state.push(Node(kind, tuple(state.pop(i.arg))))


def _unpack(flow: Flow, state: State, i: Instruction) -> None:
    (whole,) = state.pop()
    state.push(*(Node("unpack", (whole,), n) for n in reversed(range(i.arg))))


def _make_function(flow: Flow, state: State, i: Instruction) -> None:
    if VERSION < (3, 11):
        state.pop()  # the name
    (code,) = state.pop()
    defaults: Any = ()
    if VERSION < (3, 13):
        flags = [flag for flag in (8, 4, 2, 1) if i.arg & flag]
        for flag in flags:
            (given,) = state.pop()
            defaults = given.args if flag == 1 and given.kind == "tuple" else defaults
    state.push(Node("function", tuple(defaults), code.data))


def _function_attribute(flow: Flow, state: State, i: Instruction) -> None:
    value, f = state.pop(2)
    if f.kind == "function":  # which is whole with its last attribute: its closure may be that
        state.made.remove(f)
        f = Node("function", value.args if i.arg == 1 and value.kind == "tuple" else f.args, f.data)
    state.push(f)


def _is(flow: Flow, state: State, i: Instruction) -> None:
    state.push(Node("is", tuple(state.pop(2)), bool(i.arg)))


def _copy(flow: Flow, state: State, i: Instruction) -> None:
    state.push(state.stack[-i.arg])


def _swap(flow: Flow, state: State, i: Instruction) -> None:
    s = state.stack
    s[-1], s[-i.arg] = s[-i.arg], s[-1]


def _rotate(count: int | None) -> Callable[[Flow, State, Instruction], None]:
    def call(flow: Flow, state: State, i: Instruction) -> None:
        top = state.stack.pop()
        state.stack.insert(len(state.stack) - ((count or i.arg) - 1), top)

    return call


def _duplicate(count: int) -> Callable[[Flow, State, Instruction], None]:
    return lambda flow, state, i: state.push(*state.stack[-count:])


def _made(kind: str, taken: int) -> Callable[[Flow, State, Instruction], None]:
    """What makes one value of so many."""
    return lambda flow, state, i: state.push(Node(kind, tuple(state.pop(taken)), i.value))


def _taken(count: int) -> Callable[[Flow, State, Instruction], None]:
    return lambda flow, state, i: _drop(state, count)


def _drop(state: State, count: int) -> None:
    state.pop(count)


def _end_for(flow: Flow, state: State, i: Instruction) -> None:
    state.pop(2 if VERSION < (3, 13) else 1)


_HANDLERS: dict[str, Callable[[Flow, State, Instruction], None]] = {
    "LOAD_CONST": _load_const, "LOAD_GLOBAL": _load_global, "LOAD_ATTR": _load_attr, "LOAD_METHOD": _load_attr,
    "LOAD_DEREF": _load_deref, "LOAD_CLASSDEREF": _load_deref, "STORE_DEREF": _store_deref,
    **dict.fromkeys(("CALL", "CALL_METHOD", "CALL_FUNCTION", "CALL_FUNCTION_KW", "CALL_KW"), _call),
    "KW_NAMES": _names, "BUILD_TUPLE": _build, "BUILD_LIST": _build, "UNPACK_SEQUENCE": _unpack,
    "MAKE_FUNCTION": _make_function, "SET_FUNCTION_ATTRIBUTE": _function_attribute,
    "PUSH_NULL": lambda flow, state, i: state.push(NULL),
    "POP_TOP": _taken(1), "STORE_ATTR": _taken(2), "STORE_SUBSCR": _taken(3), "STORE_SLICE": _taken(4),
    "STORE_GLOBAL": _taken(1), "DELETE_SUBSCR": _taken(2), "DELETE_ATTR": _taken(1), "END_FOR": _end_for,
    "BINARY_SUBSCR": _made("item", 2), "GET_ITER": _made("iter", 1), "IS_OP": _is,
    "COPY": _copy, "SWAP": _swap, "ROT_TWO": _rotate(2), "ROT_THREE": _rotate(3), "ROT_FOUR": _rotate(4),
    "ROT_N": _rotate(None), "DUP_TOP": _duplicate(1), "DUP_TOP_TWO": _duplicate(2),
}  # fmt: skip
