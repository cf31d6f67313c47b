# SPDX-License-Identifier: Apache-2.0
"""Turn Numba's refusals in a kernel into the words of both engines (`seam.source.language`)."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

import numpy as np

from ...seam import CuteError
from ...seam.guards.messages import NO_ALIGNMENT, NO_NEW_ARRAY, no_static_shape
from ...seam.source import language as say
from .faults import is_numbas
from .host_functions import asked, called, has_overload, named
from .numba import OtherNumbaError
from .numba_cuda import NumbaError, UnsupportedBytecodeError

SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "and_": "&",
    "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "matmul": "@", "neg": "-", "pos": "+", "invert": "~",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "iadd": "+", "isub": "-", "imul": "*",
    "itruediv": "/", "ifloordiv": "//", "imod": "%",
}  # fmt: skip
_TYPES = (
    (r"Literal\[int\].*", "int64"), (r"Literal\[bool\].*|bool(ean)?", "bool"),
    (r"Literal\[str\].*|unicode_type", "str"), (r"__nv_bfloat16", "bfloat16"),
    (r"(Uni|Named)?(Uni)?Tuple\(.*", "tuple"), (r"(unaligned )?array\(.*|(Array|readonly).*", "array"),
    (r"none|NoneType.*", "None"), (r"(DictType|LiteralStrKey|initial).*", "dict"),
    (r"(reflected )?list\(.*|List\(.*|ListType.*|Literal(List|\[list).*", "list"), (r"class\(.*|type\(.*", "type"),
    (r"(reflected )?set\(.*|Set\(.*", "set"), (r"range_(state|iter)_.*", "range"),
    (r"Module\(.*", "module"), (r"cute\.(.+)\.\d+", r"\1"), (r"[Ff]unction\(.*|type\(CUDADispatcher.*", "function"),
)  # fmt: skip


_NOT_SET = "NotSet"
"""Name, in errors, the type of a field that is not set (`seam.source.kernels_object`)."""
_DRIVER = "numba.cuda.cudadrv."
"""The part of Numba that speaks to the driver and to libNVVM: its errors are not the kernel's."""
NUMBAS = (NumbaError, OtherNumbaError, UnsupportedBytecodeError)
"""The errors of numba-cuda, and of the Numba that it builds on."""


def kind(ty: str) -> str:
    """Return how errors call a type, which Numba writes so."""
    for pattern, name in _TYPES:
        found = re.fullmatch(pattern, ty, re.DOTALL)
        if found is not None:
            return found.expand(name)
    return ty


def _split(text: str) -> list[str]:
    """Take the types of a signature apart at the commas that no bracket holds."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def _implementation(what: str, name: str, types: str) -> str:
    if name == "_ol_array_allocate":
        return NO_NEW_ARRAY
    kinds = [kind(t) for t in _split(types)]
    if _NOT_SET in kinds:
        return say.NOT_SET
    space = re.match(r"function (shared|local)\.array", what)
    if space is not None and not types.startswith("Literal[int]"):
        return no_static_shape(f"cuda.{space[1]}.array")
    if name in SIGNS:
        return say.no_operator(SIGNS[name], kinds)
    one: Any = {"getitem": say.no_index, "setitem": say.no_setitem, "delitem": lambda _: say.NO_DELETION}.get(name)
    if one is not None:
        return str(one(kinds[0]))
    return _no_function(what, name, kinds)


def _no_function(what: str, name: str, kinds: list[str]) -> str:
    """Write the message for a call of a function that has no implementation. what: how Python writes the function."""
    found = named(what, name)
    return say.no_function(name, kinds) if found is None else _of_host(*found, kinds)


def _of_host(name: str, function: Any, kinds: list[str]) -> str:
    return say.no_host_function(name, kinds if has_overload(function) else None)


def _not_lowered(what: str | None, method: str | None, types: str) -> str:
    """Write the message for a call that has a type and no implementation: of a function or of a method."""
    kinds = list(map(kind, _split(types)))
    return _no_function(what or "", what.split()[-3] if what else str(method), kinds)


def _typed(error: BaseException) -> str | None:
    """Write the message for a call, or a name of a module, for which Numba's own code raised an error; None if it is
    of neither."""
    found, attribute = called(error), asked(error)
    if found is None:
        return None if attribute is None else say.no_module_attribute(*attribute)
    name, function, types = found
    kinds = [kind(str(ty)) for ty in types]
    return say.no_function(name, kinds) if function is None else _of_host(name, function, kinds)


def _no_unification(a: str, b: str, name: str) -> str:
    lengths = _length(a), _length(b)
    if _NOT_SET in (kind(a), kind(b)):
        return say.NOT_SET
    if None in lengths or lengths[0] == lengths[1]:
        return say.no_unification(kind(a), kind(b))
    return say.no_one_length(name, *lengths)


def _length(ty: str) -> int | None:
    """Return how many elements a tuple has, or what stands for a list; None for anything else."""
    found = re.fullmatch(r"(?:Named)?UniTuple\(.* x (\d+)\)|(?:Named)?Tuple\((.*)\)", ty, re.DOTALL)
    if found is None:
        return None
    return int(found[1]) if found[1] else len(_split(found[2]))


def _attribute(name: str, ty: str) -> str:
    module = re.match(r"Module\(<module '([\w.]+)'", ty)
    return say.no_module_attribute(module[1], name) if module else say.no_attribute(kind(ty), name)


_PATTERNS: tuple[tuple[str, Any], ...] = (
    (
        r"No implementation of function _?Function\(<(.*?)>\) found for signature:\s+>>> ([\w.]+)\((.*?)\)\n",
        _implementation,
    ),
    (
        r"No implementation of function Function\(([^()<>]+)\) found for signature:\s+>>> <?[\w. ]+>?\((.*?)\)\n",
        lambda name, types: say.no_function(name, list(map(kind, _split(types)))),
    ),
    (r"No definition for lowering (?:<(.*?)>|([\w.]+))\((.*?)\) -> ", _not_lowered),
    (
        r"Invalid use of BoundFunction\(([\w.]+) for .*?\) with parameters \((.*?)\)\n",
        lambda name, types: say.no_function(name, list(map(kind, _split(types)))),
    ),
    (r"Use of unsupported NumPy function '([\w.]+)'", say.no_host_function),
    (r"Invalid use of getiter with parameters \((.*?)\)\n", lambda ty: say.no_iteration(kind(ty))),
    (r"No type info available for (\S+) as a callable", lambda ty: say.no_call(kind(ty))),
    (r"Unknown attribute '(\w+)' of type ([^\n]*)", _attribute),
    (r"NameError: name '(\w+)' is not defined", say.no_name),
    (r"failed to analyze the bytecode\. Variable '(\w+)' is not defined", say.no_value),
    (
        r"Cannot unify (.*) and (.*) for '\$?([\w.]+?)(?:\.\d+)*', defined",
        lambda a, b, n: _no_unification(a, b, n),
    ),
    (
        r"Can't unify return type from the following types: ([^\n]*)",
        lambda types: say.no_result(*map(kind, (_split(types)[0], _split(types)[-1]))),
    ),
    (r"wrong tuple length for .*?expected (\d+), got (\d+)", lambda n, g: say.wrong_count(n)),
    (r"tuple index out of range", lambda: say.OUT_OF_TUPLE),
    (
        r"Untyped global name '(\w+)'[^\n]*Cannot determine Numba type of <class '(.*?)'>",
        lambda n, t: say.no_global(n, t),
    ),
    (r"Int value is too large: (-?\d+)", lambda value: say.too_large(int(value))),
    (r"\*args in function call should be a tuple, got (\S+)", lambda ty: say.no_iteration(kind(ty))),
    (
        r"OverloadSelector object at \w+>, \(([^\n]*?),?\)(?:\n|$)",
        lambda types: say.no_operation(list(map(kind, _split(types)))),
    ),
    (r"Directly raising a string constant", lambda: say.RAISED),
    (r"print\(\) function implementation does not support keyword", lambda: say.PRINT_KEYWORD),
    (r"printing unimplemented for values of type (\S+)", lambda ty: say.no_print(kind(ty))),
    (r"Cannot cast (.*?) to (\w+): ", lambda a, b: say.no_cast(kind(a), kind(b))),
    (r"No conversion from (\S+) to none for", lambda ty: say.RESULT),
    (r"Alignment must be ", lambda: NO_ALIGNMENT),
    (r"op_MAKE_FUNCTION with kwdefaults", lambda: say.NO_NAMED_DEFAULTS),
    (r"compiler re-entrant to the same function signature|insert_unresolved_ref", lambda: say.CALLS_ITSELF),
    (r"Cannot capture a constant value for variable '(\w+)' as there are multiple", lambda n: say.no_capture(n)),
    (r'isinstance\(\) cannot determine the type of variable "(\w+)" due to a branch', lambda n: say.no_class_of(n)),
    (r"Unsupported use of cell variable", lambda: say.SET_FROM_INSIDE),
)


_COLOUR = re.compile(r"\x1b\[[\d;]*m")  # where colorama is installed, Numba colours what it says


def refusal(error: BaseException) -> CuteError | None:
    """Return what both engines say where Numba, or Python as it types a kernel, raised `error`; None where that is
    none of what a user's code can cause."""
    text = _COLOUR.sub("", str(error))
    for pattern, write in _PATTERNS:
        found = re.search(pattern, text, re.DOTALL)
        if found is not None and (isinstance(error, (*NUMBAS, NotImplementedError)) or _is_numbas(error)):
            return CuteError(str(write(*found.groups())))
    if isinstance(error, KeyError) and isinstance(error.args[0], np.ufunc):  # Numba's table for CUDA lacks it
        return CuteError(say.no_ufunc(error.args[0].__name__))
    if isinstance(error, ValueError) and text.startswith(say.no_number_in("")[:-2]):
        return CuteError(text)
    words = say.words_of(error)
    if words is not None and (_is_operator(error.__traceback__) or str(error).startswith("module ")):
        return CuteError(words)
    if isinstance(error, (*NUMBAS, RecursionError)) or _is_numbas(error):
        typed = _typed(error)
        if typed is not None:
            return CuteError(typed)
    if isinstance(error, NUMBAS):
        return CuteError(f"Numba does not compile this: {_core(text)}")
    if _is_numbas(error):
        return CuteError(f"Numba does not compile this: {type(error).__name__}: {_core(text)}")
    return None


def _is_numbas(error: BaseException) -> bool:
    """Say whether Numba's own code met an error of Python's while it typed or lowered a function."""
    if not isinstance(error, Exception) or isinstance(error, Warning) or not is_numbas(error):
        return False
    return not _module(error.__traceback__).startswith(_DRIVER)


def _is_operator(trace: TracebackType | None) -> bool:
    """Say whether an error was raised where an operator of the kernel's is applied to objects."""
    return _module(trace) == _OPERATORS


def _module(trace: TracebackType | None) -> str:
    """Return the name of the module whose code raised an error."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__"))


_OPERATORS = f"{__name__.rpartition('.ground.')[0]}.bridge.operators"


def _core(text: str) -> str:
    """Return what Numba's error says first."""
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith(("Failed in", "During:", 'File "'))]
    return re.sub(r"\bcute\.(\w+)\.\d+", r"\1", said[0] if said else text.strip())
