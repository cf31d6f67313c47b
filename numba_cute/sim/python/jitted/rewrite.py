# SPDX-License-Identifier: Apache-2.0
"""A kernel's code with Numba's operators in the place of Python's (`arithmetic.operators`): each becomes a call of a
function on what lies on the stack. Lines, names and everything else stay as they are."""

from __future__ import annotations

import bisect
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType
from typing import Any

from ....seam import after_set
from ....seam.ground.pythons import Inside, knows_bytecode
from ..arithmetic import by_reference
from ..arithmetic.number import from_python, wide
from ..arithmetic.operators import BINARY, INPLACE, UNARY, contains, lacks
from .bytecode import VERSION, Body, Instruction, decode, encode
from .conversions import Cast, Handed, Plan, Unset, caster, is_set, loops_asked, versions_of
from .masks import with_masks
from .settings import settings
from .symbols import operator_name
from .ways import ORIGINS, Origin, counting, iterators

_MORE_STACK = 3

Casts = dict[CodeType, tuple[Cast, ...] | Handed]
"""A plan, by the code."""


def rewritten(code: CodeType, plan: Plan = (), reference: bool = False) -> CodeType:
    """The code, and all the code inside it, with Numba's operators, and casts.

    reference: with the CuTe DSL's operators. CuteError: on a Python whose bytecode is another than those that are
    known.
    """
    return _rewritten_of_file(code.co_filename, code, plan, reference)


@functools.lru_cache(maxsize=4096)
def _rewritten_of_file(file: str, code: CodeType, plan: Plan, reference: bool) -> CodeType:
    """The same. file: code of two files may be equal."""
    REWRITING.require()
    return _rewritten(code, dict(plan), loops_asked(plan), reference)


def _rewritten(code: CodeType, plan: Casts, loops: dict[CodeType, set[int]], reference: bool = False) -> CodeType:
    """The code rewritten. loops: those of which casts ask the rounds, by their code."""
    body = decode(code)
    was = {id(i): 2 * i.offset for i in body.instructions}
    consts = [_constant(c, plan, loops, reference) for c in code.co_consts]
    sets = {id(body.instructions[at]): name for at, name in settings(code).items()}
    casts = plan.get(code, ())
    assert not isinstance(casts, Handed)
    out = _handing(code, body.instructions, plan, consts, reference)
    if code in loops:
        out = _counted(out, loops[code], consts)
    if casts:
        out = _cast(code, _guarded(code, out, casts, consts), casts, consts)
    out = _masked(out, sets, consts)
    out = replaced(out, consts, reference)
    out = _with_settings(code, out, sets, consts) if sets else out
    made = encode(code, Body(out, _handlers(body, out)), tuple(consts), _MORE_STACK)
    ORIGINS[made] = Origin(code, [(2 * i.offset, was[id(i)]) for i in out if id(i) in was])
    return made


def _masked(instructions: list[Instruction], sets: dict[int, str], consts: list[Any]) -> list[Instruction]:
    """The instructions with `if`s into which some lanes go alone."""
    out: list[Instruction] = []
    for i, before in with_masks(instructions, sets, constant(None, consts), lambda f, i: _called_on(f, i, consts)):
        out += _behind(i, before)
    return out


def _behind(i: Instruction, made: list[Instruction]) -> list[Instruction]:
    """An instruction behind others, which are jumped to in its place."""
    if not made:
        return [i]
    moved = Instruction(i.name, i.arg, i.position, i.target, i.value)
    moved.offset = i.offset
    _become(i, made[0].name, made[0].arg)
    return [i, *made[1:], moved]


def _constant(value: Any, plan: Casts, loops: dict[CodeType, set[int]], reference: bool) -> Any:
    """A constant as kernels have it: floats are numbers of a type, ints are static; by the reference both are."""
    if isinstance(value, CodeType):
        handed = isinstance(plan.get(value), Handed)
        return _rewritten(value, {} if handed else plan, {} if handed else loops, reference)
    if isinstance(value, tuple):
        return tuple(_constant(v, plan, loops, reference) for v in value)
    if type(value) is float and not reference:
        return from_python(value)
    return wide(value) if type(value) is int and value >= 1 << 63 and value < 1 << 64 else value


def _handlers(body: Body, out: list[Instruction]) -> list[Any]:
    """Handlers that begin where an instruction was that is gone, as they are now."""
    stays = set(map(id, out))
    assert all(id(h.start) in stays and id(h.target) in stays for h in body.handlers)
    return body.handlers


def _handing(
    code: CodeType, instructions: list[Instruction], plan: Casts, consts: list[Any], reference: bool
) -> list[Instruction]:
    """The instructions, with functions of several versions in the place of those that they make."""
    handed = {at: x for at, c in enumerate(code.co_consts) if isinstance(x := plan.get(c), Handed)} if plan else {}
    out: list[Instruction] = []
    making: int | None = None
    for at, i in enumerate(instructions):
        out.append(i)
        if i.name == "LOAD_CONST" and isinstance(code.co_consts[i.arg], CodeType):
            making = i.arg
        following = instructions[at + 1].name if at + 1 < len(instructions) else ""
        if making in handed and i.name in _MAKE and following not in _MAKE:
            versions = versions_of(
                code.co_consts[making], handed[making], functools.partial(rewritten, reference=reference)
            )
            out += _called_on(versions, i, consts)
            making = None
    return out


_MAKE = ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE")


def _counted(instructions: list[Instruction], loops: Iterable[int], consts: list[Any]) -> list[Instruction]:
    """The instructions with iterators that count the rounds of some loops."""
    counted = iterators(instructions, loops)
    out: list[Instruction] = []
    for at, i in enumerate(instructions):
        out += [i, *_called_on(counting(counted[at]), i, consts)] if at in counted else [i]
    return out


_CHECKED = ("LOAD_FAST_CHECK" if VERSION >= (3, 12) else "LOAD_FAST", "LOAD_DEREF")
"""Instructions that read a variable that may not be set."""


def _guarded(
    code: CodeType, instructions: list[Instruction], casts: Iterable[Cast], consts: list[Any]
) -> list[Instruction]:
    """The instructions with variables that are cast, and that may not be set then, set to what stands for none, which
    code does not read."""
    given = code.co_varnames[: _arguments(code)]
    own = {*code.co_varnames, *code.co_cellvars}.difference(given)
    names = sorted({c.variable for c in casts if c.variable in own})
    if not names:
        return instructions
    begins: list[Instruction] = []
    for name in names:
        kind, at = _variable(code, name)
        unset = constant(Unset(name), consts)
        begins += [Instruction("LOAD_CONST", unset), Instruction(f"STORE_{kind}", at)]
    resumed = next((n + 1 for n, i in enumerate(instructions) if i.name == "RESUME"), 0)
    for i in begins:
        i.offset = instructions[resumed - 1].offset if resumed else -1
    out = [*instructions[:resumed], *begins]
    for i in instructions[resumed:]:
        out += [i, *_called_on(is_set, i, consts)] if i.name in _CHECKED and i.value in names else [i]
    return out


def _arguments(code: CodeType) -> int:
    flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + flags


def _called_on(f: Callable[..., Any], i: Instruction, consts: list[Any]) -> list[Instruction]:
    """Instructions behind another that call `f` on what it leaves on the stack."""
    made = [Instruction("LOAD_CONST", constant(f, consts), i.position), *call_below(1, i.position)]
    for m in made:
        m.offset = i.offset
    return made


def _cast(
    code: CodeType, instructions: list[Instruction], casts: Sequence[Cast], consts: list[Any]
) -> list[Instruction]:
    """The instructions with casts before and after some of them."""
    before: dict[int, list[Cast]] = {}
    after: dict[int, list[Cast]] = {}
    offsets = [i.offset for i in instructions]
    for c in casts:
        at = bisect.bisect_left(offsets, c.at // 2)  # of one with a long argument, it is where that begins
        passed_by = instructions[at].name == "END_FOR"  # by a loop that ends
        (after if c.after or passed_by else before).setdefault(at, []).append(c)
    out: list[Instruction] = []
    for at, i in enumerate(instructions):
        out += _with_casts(code, i, before.get(at, ()), consts)
        for c in after.get(at, ()):
            out += _one_cast(code, c, i.position, consts)
    return out


def _with_casts(code: CodeType, i: Instruction, casts: Sequence[Cast], consts: list[Any]) -> list[Instruction]:
    """An instruction after casts, which are jumped to in its place."""
    if not casts:
        return [i]
    made: list[Instruction] = []
    moved = Instruction(i.name, i.arg, i.position, i.target, i.value)
    if i.name == "RETURN_CONST":
        made.append(Instruction("LOAD_CONST", i.arg, i.position))
        moved = Instruction("RETURN_VALUE", 0, i.position)
    for c in casts:
        made += _one_cast(code, c, i.position, consts)
    _become(i, made[0].name, made[0].arg)
    return [i, *made[1:], moved]


def _one_cast(code: CodeType, cast: Cast, position: Any, consts: list[Any]) -> list[Instruction]:
    call = [Instruction("LOAD_CONST", constant(caster(code, cast), consts), position), *call_below(1, position)]
    if cast.variable is None:
        return call
    kind, at = _variable(code, cast.variable)
    return [Instruction(_CHECKED[kind == "DEREF"], at, position), *call, Instruction(f"STORE_{kind}", at, position)]


def _variable(code: CodeType, name: str) -> tuple[str, int]:
    """Return the kind of a variable, which the instructions that read and set it name, and its number."""
    if name in (*code.co_cellvars, *code.co_freevars):
        own = code.co_varnames if VERSION >= (3, 11) else ()
        return "DEREF", (*own, *(n for n in code.co_cellvars if n not in own), *code.co_freevars).index(name)
    return "FAST", code.co_varnames.index(name)


def _with_settings(
    code: CodeType, instructions: list[Instruction], sets: dict[int, str], consts: list[Any]
) -> list[Instruction]:
    """The instructions, with variables set to what `x.set(…)` in a statement of its own gives. sets: the variables, by
    the instructions that would drop it."""
    out: list[Instruction] = []
    for i in instructions:
        name = sets.get(id(i))
        if name is None or i.name != "POP_TOP":
            out.append(i)
            continue
        at = code.co_varnames.index(name)
        _become(i, "LOAD_FAST", at)
        function = Instruction("LOAD_CONST", constant(_set, consts), i.position)
        out += [i, function, *call_below(2, i.position), Instruction("STORE_FAST", at, i.position)]
    return out


def _set(made: Any, x: Any) -> Any:
    return after_set(x, made)


def replaced(instructions: list[Instruction], consts: list[Any], reference: bool = False) -> list[Instruction]:
    """The instructions with calls of Numba's operators, or the CuTe DSL's; `consts` gets the functions that they
    call."""
    tables = _OF_REFERENCE if reference else _TABLES
    out: list[Instruction] = []
    for at, i in enumerate(instructions):
        operator = operator_name(i)
        following = instructions[at + 1] if at + 1 < len(instructions) else None
        if operator is None:
            dropped = i.name == "TO_BOOL" and following is not None and following.name == "UNARY_NOT"
            if dropped:  # the operator takes what is not a bool
                _become(i, "NOP")
            out.append(i)
            continue
        kind, name = operator
        out += _call(i, tables[kind][name], 1 if kind == "unary" else 2, consts)
        if VERSION >= (3, 13) and following is not None and following.name.startswith("POP_JUMP_IF_"):
            out.append(Instruction("TO_BOOL", 0, i.position))  # it takes nothing but bools
    return out


def _contains(x: Any, container: Any) -> bool:
    return contains(container, x)


def _lacks(x: Any, container: Any) -> bool:
    return lacks(container, x)


_TABLES: dict[str, dict[str, Callable[..., Any]]] = {
    "binary": BINARY, "inplace": INPLACE, "unary": UNARY, "contains": {"contains": _contains, "lacks": _lacks},
}  # fmt: skip

_OF_REFERENCE: dict[str, dict[str, Callable[..., Any]]] = {
    **_TABLES, "binary": by_reference.BINARY, "inplace": by_reference.INPLACE, "unary": by_reference.UNARY,
}  # fmt: skip


def _become(i: Instruction, name: str, arg: int = 0) -> None:
    """Make an instruction another, which is jumped to as before."""
    made = Instruction(name, arg)
    i.name, i.opcode, i.arg, i.target, i.value = name, made.opcode, arg, None, None


def _call(i: Instruction, f: Callable[..., Any], count: int, consts: list[Any]) -> list[Instruction]:
    """A call of `f` on the values on top of the stack: `f` is put below them."""
    _become(i, "LOAD_CONST", constant(f, consts))
    return [i, *call_below(count, i.position)]


def constant(value: Any, consts: list[Any]) -> int:
    """The place of a value among the constants."""
    for at, x in enumerate(consts):
        if x is value:
            return at
    consts.append(value)
    return len(consts) - 1


def call_below(count: int, position: Any) -> list[Instruction]:
    """Call the function on top of the stack on the `count` values below it."""
    if VERSION < (3, 11):
        return [
            Instruction("ROT_TWO" if count == 1 else "ROT_THREE", 0, position),
            Instruction("CALL_FUNCTION", count, position),
        ]
    out = [Instruction("SWAP", n, position) for n in range(count + 1, 1, -1)]
    if VERSION < (3, 12):  # the first operand is in the place of a method's object
        out.append(Instruction("PRECALL", count - 1, position))
    return [*out, Instruction("CALL", count - 1, position)]


# ---------------------------------------------------------------- a Python that is not known


def _example(n: int) -> Any:
    """Code of the kinds that kernels have, for what is rewritten."""
    total, items = 0, [x + 1 for x in range(n) if x is not None]

    def inner(x: int, y: int = 2) -> int:
        return x * y - total

    for i, x in enumerate(items):
        if i % 2 == 0 and not x < 1:
            total += inner(x, y=3)
        else:
            total -= -x
    while total > 40:
        total //= 2
    return total, items[-1], 1 < n <= 5


def _difference() -> str | None:
    """Say how code of a Python that is not known is not taken apart, put together and rewritten as its own."""
    if knows_bytecode():
        return None
    code = _example.__code__
    again = encode(code, decode(code), code.co_consts, 0)
    if _laid_out(again) != _laid_out(code):
        return "code is another when it is put together again"
    found = FunctionType(_rewritten(code, {}, {}), _example.__globals__)(5)
    return None if found == _example(5) else f"rewritten code gives {found}, not {_example(5)}"


def _laid_out(code: CodeType) -> Any:
    body = decode(code)
    rows = [(h.start.offset, h.target.offset, h.depth, h.lasti) for h in body.handlers]
    return [(i.name, i.arg, i.offset) for i in body.instructions], rows


REWRITING = Inside("bytecode", "it is not rewritten, and no kernel is simulated", _difference)
"""That code can be taken apart, changed and put together."""
