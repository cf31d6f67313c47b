# SPDX-License-Identifier: Apache-2.0
"""Constructs of Python that kernels lack, found in a function's code, and operations on values that are not this
library's, in the words of both engines."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Iterator
from itertools import zip_longest
from types import CodeType, FunctionType
from typing import Any

from ..ground.bytecode import handlers, operations, opnames
from ..ground.error import CuteError
from ..ground.naming import article, described, type_name
from ..ground.places import at_line, definition_of
from ..marks.decorators import no_step
from ..marks.prints import prints

# ---------------------------------------------------------------- constructs

_OPCODES = {
    "STORE_GLOBAL": "a global is set: a kernel's globals are constants; write to an array, or return the value",
    "DELETE_GLOBAL": "a global is deleted: a kernel's globals are constants",
    "DELETE_FAST": "`del x` in a kernel: a name is not deleted; leave it out",
    "DELETE_DEREF": "`del x` in a kernel: a name is not deleted; leave it out",
    "DELETE_ATTR": "`del x.y` in a kernel: an object's fields are static",
    "IMPORT_NAME": "`import` in a kernel: import at the head of the file",
    "UNPACK_EX": "`a, *b = …` in a kernel: write `a, b = x[0], x[1:]`",
    "BUILD_SET": "a set in a kernel: use a tuple (`x in (1, 2)`)",
    "DICT_MERGE": "`f(**names)` in a kernel: name the arguments one by one, `f(a=x, b=y)`",
    "DICT_UPDATE": "`{**d}` in a kernel: write the keys",
    "PUSH_EXC_INFO": "`try` in a kernel: threads catch nothing; test the condition with `if`",
    "SETUP_FINALLY": "`try` in a kernel: threads catch nothing; test the condition with `if`",
    "YIELD_VALUE": "`yield` in a kernel: it gives nothing back; write to an array",
}
_TEXT = (
    "an f-string in a kernel: its text is made at run time, and kernels make none; print(…) takes the values, and a "
    "@cute.kernel makes texts of what is static"
)
_TEXTS = ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC")
GENERATOR = "a generator in a kernel: use a list, `[f(x) for x in …]`, or a loop"
_COROUTINE = "`async def` of a kernel: its threads run at once; write `def`"
_SET = _OPCODES["BUILD_SET"]


def refuse_code(function: Any) -> None:
    """Raise a CuteError, with its line, if a function that Numba compiles has what no kernel has of Python."""
    code = function.__code__
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise at_line(CuteError(_COROUTINE), *definition_of(function))
    found = _first_refused(code, not prints(function))
    if found is not None:
        raise at_line(CuteError(found[0]), code.co_filename, found[1])


_ASSEMBLES = frozenset(("inline_asm", "inline_ptx"))
_FOLLOWED = ("DICT_MERGE", "DICT_UPDATE", "MAP_ADD")


def follows_python(function: Any) -> bool:
    """Say whether a function has what Python alone does, `f(**names)`, `{**d}`, a dict's comprehension, a generator, or
    a text of PTX that it makes: a kernel takes what it gives, as of a plain function, and Numba compiles it only where
    it cannot be followed."""
    return isinstance(function, FunctionType) and _is_followed(function.__code__)


@functools.lru_cache(maxsize=4096)
def _is_followed(code: CodeType) -> bool:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    generators = any(c.co_flags & inspect.CO_GENERATOR for c in inner)
    texts = not opnames(code).isdisjoint(_TEXTS) and not _ASSEMBLES.isdisjoint(code.co_names)
    return generators or texts or not opnames(code).isdisjoint(_FOLLOWED) or any(map(_is_followed, inner))


@functools.lru_cache(maxsize=4096)
def _first_refused(code: CodeType, texts: bool) -> tuple[str, int] | None:
    return next(_refused(code, texts), None)


def _refused(code: CodeType, texts: bool) -> Iterator[tuple[str, int]]:
    """List the refused constructs, with their lines; texts: f-strings too."""
    line = code.co_firstlineno
    for o, after in zip_longest(found := list(operations(code)), found[1:]):
        line = o.line or line
        words = _TEXT if texts and o.name in _TEXTS else _OPCODES.get(o.name)
        if o.name == "PUSH_EXC_INFO":
            line = _try_line(code, o.offset) or line
        elif o.name == "LOAD_CONST" and isinstance(o.value, frozenset):
            words = None if after is not None and after.name == "CONTAINS_OP" else _SET  # `x in {1, 2}`
        elif o.name == "LOAD_CONST" and type(o.value) is int and not -(1 << 63) <= o.value < 1 << 64:
            words = too_large(o.value)
        if words is not None:
            yield words, line
        if isinstance(o.value, CodeType):
            if o.value.co_flags & inspect.CO_GENERATOR:
                yield GENERATOR, line
            yield from (x for x in _refused(o.value, texts) if x[0] != _OPCODES["DICT_MERGE"])  # it may be left out


def _try_line(code: CodeType, handler: int) -> int | None:
    """The line of the `try` whose handler stands there."""
    starts = [start for start, target in handlers(code) if target == handler]
    if not starts:
        return None
    before = [o for o in operations(code) if o.offset < min(starts)]
    return before[-1].line if before and before[-1].name == "NOP" else None


# ---------------------------------------------------------------- operations


def no_operator(sign: str, kinds: list[str]) -> str:
    """Write the message for an operator that there is not for values of these kinds."""
    text = f"{sign}{kinds[0]}" if len(kinds) == 1 else f" {sign} ".join(kinds)
    return f"`{text}`: kernels have no such operator for these types; convert them, or compute with their elements"


def no_index(kind: str) -> str:
    """Write the message for `x[i]` of a value that has no elements."""
    return f"`x[i]` of {kind}: it has no elements; arrays, tensors and tuples have"


def no_setitem(kind: str) -> str:
    """Write the message for `x[i] = y` of a value whose elements cannot be set."""
    return f"`x[i] = y` of {kind}: its elements cannot be set; those of arrays and tensors can"


NO_REPETITION = (
    "a tuple times a number that is known only at run time: how many items a tuple has is static; repeat it by a "
    "static number, or write a loop"
)


LIST_CHANGED = (
    "a list changes where another function made it, or an object or a tuple holds it: in a kernel such a list stays as "
    "it was; make a list of the new items, and give it back"
)


NO_KEY = (
    "a number that is known only at run time cannot be hashed, and so not be looked for in a dict or a set: compare it "
    "(`x == 5`), or look in a tuple (`x in (1, 2)`)"
)
NO_DISPATCH = "functools.singledispatch of a number that is known only at run time: ask isinstance(x, float)"
NO_DICT = (
    "a dict in a kernel: it is a table, which is asked for items by static keys, as {ADD: add, MAX: max}[op], and gone "
    "over; it does not change, and is not handed on: write `if`s, or make it outside of the kernel's functions"
)


def no_key(kind: str) -> str:
    """Return the words for a key that cannot be hashed."""
    return f"{kind} is not a key of a dict: keys are static numbers and texts"


def no_such_key(key: Any, keys: list[Any]) -> str:
    """Return the words for a key that a table lacks, or of a dict that begins with none."""
    if not keys:
        return NO_DICT
    return f"{key!r} is none of this table's keys: {', '.join(map(repr, keys))}"


NO_DELETION = "`del x[i]`: elements cannot be deleted in a kernel"


def no_call(kind: str) -> str:
    """Write the message for a call of what is not a function."""
    return f"`x(…)` of {kind}: it is not a function"


def no_iteration(kind: str) -> str:
    """Write the message for a loop over what has no elements."""
    return f"{kind} cannot be iterated over; range(n) and tuples can"


def no_attribute(kind: str, name: str) -> str:
    """Write the message for an attribute that a number, text or array lacks."""
    if kind == "list" and name in ("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"):
        return LIST_CHANGED
    return f"{kind} has no attribute {name!r}"


def no_name(name: str) -> str:
    """Write the message for a name that is defined nowhere."""
    return f"name {name!r} is not defined"


def no_module_attribute(module: str, name: str) -> str:
    """Write the message for a name of a module that kernels do not have, whether or not Python has it."""
    real = sys.modules.get(module)
    if real is not None and module.partition(".")[0] in _OF_HOST and hasattr(real, name):
        kind = isinstance(getattr(real, name), type) and getattr(real, name).__module__ == "numpy"
        full = f"{module}.{name}"
        return f"{_short(full)}: kernels have no such type" if kind else no_host_function(full)
    return f"module {module!r} has no attribute {name!r}"


_OF_HOST = ("cmath", "heapq", "math", "numpy", "random")
"""Modules of which kernels have a few functions, or of which Numba has some for the CPU alone."""
_DRAWN = (
    "draw the numbers on the host and pass them, or call numba.cuda.random.xoroshiro128p_uniform_float32(states, i)"
)
_INSTEAD = "call it on the host and pass the result, or write a loop over the elements"


def _short(name: str) -> str:
    return re.sub(r"^numpy\b", "np", name)


def no_host_function(name: str, kinds: list[str] | None = None) -> str:
    """Write the message for a function of NumPy's or Python's modules that kernels do not have, for arguments of these
    kinds or (None) at all. name: with its module."""
    name = _short(name)
    instead = _DRAWN if re.match(r"(np\.)?random\.", name) else _INSTEAD
    if kinds is None:
        return f"{name}: kernels have no such function; {instead}"
    return f"{no_function(name, kinds)}; {instead}"


def no_number_in(text: str) -> str:
    """Write the message for `float(text)` of what is not a number."""
    return f"could not convert string to float: {text!r}"


def no_ufunc(name: str) -> str:
    """Write the message for a function of NumPy that kernels do not have for numbers."""
    of_math = f"math.{name}(…)" if name in _OF_MATH else "it with operators and functions of math"
    instead = _WRITTEN.get(name, of_math)
    return f"np.{name}: kernels have no such function of numbers; write {instead}"


_WRITTEN = {
    "absolute": "abs(x)", "add": "x + y", "subtract": "x - y", "multiply": "x * y", "floor_divide": "x // y",
    "remainder": "x % y", "mod": "x % y", "power": "x ** y", "pow": "x ** y", "float_power": "x ** y",
    "negative": "-x", "positive": "x", "square": "x * x", "reciprocal": "1 / x", "rint": "round(x)",
    "sign": "math.copysign(1.0, x)", "divmod": "x // y and x % y",
}  # fmt: skip
"""Write these in place of functions of NumPy."""
_OF_MATH = frozenset((
    "ceil", "copysign", "exp", "exp2", "expm1", "fabs", "floor", "fmod", "frexp", "isfinite", "isinf", "ldexp", "log1p",
    "modf", "nextafter", "sqrt", "trunc",
))  # fmt: skip
"""Functions of NumPy's that kernels have not, and those of math of the same name, which they have."""


def wrong_count(wanted: Any) -> str:
    """Write the message for `a, b = x` with another number of elements."""
    return f"what is unpacked into {wanted} names has another number of elements"


def no_unification(a: str, b: str) -> str:
    """Write the message for a variable that is of one type on one way through the code and of another on another."""
    return f"a variable is {a} on one way to here and {b} on another: kernels need one type; use two names"


def no_one_length(name: str, a: Any, b: Any) -> str:
    """Write the message for a tuple or list that has other lengths on two ways through the code."""
    return (
        f"{name} has {a} elements on one way to here and {b} on another: the length of a tuple or a list is static; "
        "use two names, or decide it by cute.const_expr"
    )


def no_result(a: str, b: str) -> str:
    """Write the message for a function that gives values of two types."""
    why = "; what is static in one of them, as 0, may be made run-time, as cute.Int32(0)" if a == b else ""
    return f"the function returns {a} on one way and {b} on another: kernels need one type{why}"


def no_function(name: str, kinds: list[str]) -> str:
    """Write the message for a function that kernels do not have for values of these kinds."""
    return f"{name}({', '.join(kinds)}): kernels have no such function for these types"


def no_operation(kinds: list[str]) -> str:
    """Write the message for an operation, which the line shows, that there is not for values of these kinds."""
    return f"kernels have no such operation for {' and '.join(kinds)}"


def no_global(name: str, kind: str) -> str:
    """Write the message for a name of the host's that means nothing in a kernel."""
    return f"{name!r} is of the host ({type_name(kind)}), and kernels cannot use it: pass what they need of it"


def no_argument(value: Any) -> str:
    """Write the message for what a kernel cannot be given."""
    if type(value) is int:
        return too_large(value)
    what = described(value) if isinstance(value, type) else article(type(value).__name__)
    return f"a kernel is given {what}: it takes arrays, tensors, numbers, tuples, and objects of this library"


def too_large(value: int) -> str:
    """Write the message for an int that no type holds."""
    return f"{value}: an int of more than 64 bits, which kernels do not have"


def no_value(name: str) -> str:
    """Write the message for a variable that was set on other ways to a line."""
    return f"variable {name!r} has no value here: set it on every way to this line"


def immutable(cls: str, name: str) -> str:
    """Write the message for `x.name = y` of an object of an immutable class."""
    return f"{cls}.{name} cannot be assigned: a {cls} is immutable"


NOT_SET = "a field of `self` that is not set is used: give it a value on every way to this line, or at the launch"


RAISED = "`raise` takes an exception's class or instance, as ValueError('why')"
OUT_OF_LIST = "list index out of range"


def no_print(kind: str) -> str:
    """Write the message for Numba's print of an object."""
    return f"print({kind}): a kernel of @cuda.jit prints numbers and texts alone; cute.print_tensor does more"


def no_cast(given: str, wanted: str) -> str:
    """Write the message for a value that is stored as a number of another kind."""
    return f"{given} is no {wanted}, and cannot be stored as one"


def no_capture(name: str) -> str:
    """Write the message for a function within a kernel's, which reads what that sets in more than one place."""
    return f"a function in this one reads {name}, which is set in more than one place: pass {name} as an argument"


def no_class_of(name: str) -> str:
    """Write the message for `isinstance` of a variable that is of several types."""
    return f"isinstance({name}, …): {name} is of one type on one way to here and of another on another: use two names"


PRINT_KEYWORD = (
    "print(…, sep=…): a kernel of @cuda.jit prints its arguments alone; one of @cute.kernel takes sep and end"
)
SET_FROM_INSIDE = (
    "a comprehension, or a function in this one, sets a variable of this one (`:=`, `nonlocal`): write a loop, or let "
    "the function return the value"
)
CALLS_ITSELF = "a function calls itself, by itself or by another, as often as only run time decides: write a loop"
NO_NAMED_DEFAULTS = (
    "a function in this one has a keyword-only parameter with a default, `def f(x, *, k=3)`: leave the `*` out, or "
    "define it outside"
)
RESULT = "a kernel gives nothing back: write the result to an array"
OUT_OF_TUPLE = "tuple index out of range"

# ---------------------------------------------------------------- Python's own words

_OF_PYTHON: tuple[tuple[str, Any], ...] = (
    (r"unsupported operand type\(s\) for (\S+?)=?: '(.*)' and '(.*)'", lambda s, a, b: no_operator(s, _both(a, b))),
    (r"'(\S+)' not supported between instances of '(.*)' and '(.*)'", lambda s, a, b: no_operator(s, _both(a, b))),
    (r"bad operand type for unary (\S+): '(.*)'", lambda s, a: no_operator(s, [type_name(a)])),
    (r'can only concatenate (\w+) \(not "(.*)"\) to \w+', lambda a, b: no_operator("+", _both(a, b))),
    (r"'(.*)' object is not callable", lambda a: no_call(type_name(a))),
    (r"'(.*)' object is not subscriptable", lambda a: no_index(type_name(a))),
    (r"'(.*)' object is not iterable", lambda a: no_iteration(type_name(a))),
    (r"'(.*)' object does not support item assignment", lambda a: no_setitem(type_name(a))),
    (r"'(.*)' object (?:does not|doesn't) support item deletion", lambda a: NO_DELETION),
    (r"'(\w+)' object has no attribute '(\w+)'", lambda a, n: no_attribute(type_name(a), n)),
    (r"unhashable type: '(.*)'", lambda a: no_key(type_name(a))),
    (r"__delitem__", lambda: NO_DELETION),
    (r"module '(.*)' has no attribute '(.*?)'.*", no_module_attribute),
    (r"name '(.*?)' is not defined.*", no_name),
    (r"too many values to unpack \(expected (\d+)(?:, got (\d+))?\)", lambda n, g: wrong_count(n)),
    (r"not enough values to unpack \(expected (\d+), got (\d+)\)", lambda n, g: wrong_count(n)),
    (r".* argument after \* must be an iterable, not (\w+)", lambda a: no_iteration(type_name(a))),
    (r"exceptions must derive from BaseException", lambda: RAISED),
    (r"range object index out of range|list index out of range", lambda: OUT_OF_LIST),
    (r"tuple index out of range", lambda: OUT_OF_TUPLE),
    (r"range\(\) arg 3 must not be zero", lambda: no_step("range")),
)


def _both(a: str, b: str) -> list[str]:
    return [type_name(a), type_name(b)]


def words_of(e: BaseException) -> str | None:
    """Return what both engines say where Python raised `e` in a kernel's own code; None if it is none of the errors
    that Numba has too."""
    if type(e) is UnboundLocalError:
        found = re.search(r"variable '(\w+)'", str(e))
        return no_value(found[1] if found else "?")
    if type(e) not in (TypeError, AttributeError, NameError, ValueError, IndexError):
        return None
    for pattern, write in _OF_PYTHON:
        found = re.fullmatch(pattern, str(e), re.DOTALL)
        if found is not None:
            return str(write(*found.groups()))
    return None
