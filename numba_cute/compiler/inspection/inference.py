# SPDX-License-Identifier: Apache-2.0
"""Infer the result of a call in a kernel without a kernel: Numba's typing on descriptions."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MethodType, ModuleType
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.ground.error import internal_error
from ...seam.ground.places import is_fault
from ...typed.descriptions import Constant, Description, Group, Object
from ..bridge import contexts, tree
from ..bridge.object_types import Value
from ..bridge.typeofs import type_of_argument
from ..bridge.values import abstract
from ..emit.tracer import Tracer
from ..ground.faults import is_numbas
from ..ground.memory import remembering
from ..ground.numba import target_override
from ..ground.numba_cuda import NumbaError, cuda_target, types
from ..ground.target import compiling_for
from .type_descriptions import description_of_type, numba_type


def infer(
    callee: Any, args: Sequence[Description], keywords: Mapping[str, Description] | None = None, *,
    attribute: str | None = None, arch: str = "sm_90a",
) -> Description:  # fmt: skip
    """Describe what a call gives in a kernel for `arch`.

    callee: a function or class; with `attribute`, None: the method of that name of the first of `args` is called.
    Raises CuteError for what the callee refuses, in its own words.
    """
    context = _context()
    given = [numba_type(a) for a in args]
    if attribute is not None and not given:
        raise CuteError(f"{attribute}: a method is called on its first operand, and there is none")
    named = {name: numba_type(a) for name, a in (keywords or {}).items()}
    with compiling_for(arch):
        if attribute == "__call__":
            function = given.pop(0)
        elif attribute is not None:
            function = _asked(context.resolve_getattr, given.pop(0), attribute)
        else:
            function = _value_type(context, callee)
        signature = _asked(context.resolve_function_type, function, tuple(given), named)
    return _given(signature, str(attribute or getattr(callee, "__name__", repr(callee))), args, keywords)


def infer_named(
    symbol: str, args: Sequence[Description], keywords: Mapping[str, Description] | None = None, *,
    arch: str = "sm_90a",
) -> Description:  # fmt: skip
    """Describe what a function that is found by import gives: "numba.cuda:atomic.add". Raises CuteError for one that
    kernels have not, and for what it refuses."""
    context = _context()
    named = {name: numba_type(a) for name, a in (keywords or {}).items()}
    with compiling_for(arch), target_override("cuda"):
        function = _found(context, symbol)
        signature = _asked(context.resolve_function_type, function, tuple(map(numba_type, args)), named)
    return _given(signature, symbol, args, keywords)


def _given(
    signature: Any, name: str, args: Sequence[Description], keywords: Mapping[str, Description] | None
) -> Description:
    if signature is None:
        raise CuteError(f"{name} takes no such arguments: {', '.join(map(str, (*args, *(keywords or {}).values())))}")
    return description_of_type(signature.return_type)


def infer_attribute(of: Description, name: str, *, arch: str = "sm_90a") -> Description:
    """Describe the attribute `name` of a value. Raises CuteError if it has none."""
    context = _context()
    with compiling_for(arch):
        found = _asked(context.resolve_getattr, numba_type(of), name)
    if found is None:
        raise CuteError(f"{of} has no attribute {name!r}")
    return description_of_type(found)


def _asked(ask: Any, *args: Any) -> Any:
    """Ask Numba's typing; an error of this library comes out of it as it went in."""
    try:
        with remembering():
            return ask(*args)
    except NumbaError as e:
        cause: BaseException | None = e
        while cause is not None and not isinstance(cause, CuteError):
            cause = cause.__cause__ or cause.__context__
        raise CuteError(str(cause or e)) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:  # of the callee's own Python
        if is_fault(e) and not is_numbas(e):
            raise internal_error("typing", e) from e
        raise CuteError(f"it does not take these: {type(e).__name__}: {e}") from e


def _context() -> contexts.CuteTypingContext:
    """Return the typing context, which knows all that is registered by now."""
    cuda_target.typing_context.refresh()
    cuda_target.target_context.refresh()
    return contexts.typing_context()


OPERATORS: dict[str, Any] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<": operator.lt, "<=": operator.le,
    "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge, "in": operator.contains,
    "is": operator.is_, "is not": operator.is_not, "neg": operator.neg, "pos": operator.pos, "~": operator.invert,
    "not": operator.not_,
}  # fmt: skip
"""Python's operators as the IR writes them; the last four have one operand."""


def infer_operator(name: str, operands: Sequence[Description], *, arch: str = "sm_90a") -> Description:
    """Describe what an operator of Python gives. name: as in `OPERATORS`. Raises CuteError for one that the operands
    do not have."""
    if name not in OPERATORS:
        raise CuteError(f"{name!r} is not an operator; these are: {' '.join(OPERATORS)}")
    return infer(OPERATORS[name], operands, arch=arch)


def infer_item(of: Description, index: Description, *, arch: str = "sm_90a") -> Description:
    """Describe `of[index]`. Raises CuteError for an index that it does not take."""
    context = _context()
    target = numba_type(of)
    with compiling_for(arch):
        if isinstance(index, Constant) and isinstance(index.value, (int, str)):
            found = _asked(context.resolve_static_getitem, target, index.value)
            if found is not None:
                return description_of_type(found.return_type)
        getitem = _asked(context.resolve_value_type, operator.getitem)
        signature = _asked(context.resolve_function_type, getitem, (target, numba_type(index)), {})
    if signature is None:
        raise CuteError(f"{of} is not indexed with {index}")
    return description_of_type(signature.return_type)


def check_set_item(of: Description, index: Description, value: Description, *, arch: str = "sm_90a") -> None:
    """Raise CuteError if `of[index] = value` is not allowed."""
    context = _context()
    with compiling_for(arch):
        if _asked(context.resolve_setitem, *map(numba_type, (of, index, value))) is None:
            raise CuteError(f"{of} takes no item of {value} at {index}")


def check_set_attribute(of: Description, name: str, value: Description, *, arch: str = "sm_90a") -> None:
    """Raise CuteError if `of.name = value` is not allowed."""
    context = _context()
    with compiling_for(arch):
        if _asked(context.resolve_setattr, numba_type(of), name, numba_type(value)) is None:
            raise CuteError(f"{of} has no attribute {name!r} that is set to {value}")


def converts(given: Description, wanted: Description) -> bool:
    """Say whether Numba converts a value of one description to another, explicitly as `int32(x)` does."""
    numbers = (types.Number, types.Boolean)
    a, b = types.unliteral(numba_type(given)), types.unliteral(numba_type(wanted))
    if isinstance(a, numbers) and isinstance(b, numbers):
        return True
    context = _context()
    return context.can_convert(a, b) is not None


def is_whole(d: Description) -> bool:
    """Say whether a description says its value whole: nothing of it is known only at run time."""
    if isinstance(d, Constant):
        return True
    if isinstance(d, Group):
        return all(map(is_whole, d.items))
    return isinstance(d, Object) and all(map(is_whole, d.fields))


def value_of(d: Description) -> Any:
    """Return the value that a description says whole."""
    if isinstance(d, Constant):
        return d.value
    if isinstance(d, Group):
        return tuple(map(value_of, d.items))
    ty = numba_type(d)
    if not is_whole(d) or not isinstance(ty, Value):
        raise CuteError(f"{d}: parts of it are known only at run time")
    return tree.unflatten(ty.spec, iter(()))


def infer_value(symbol: str, *, arch: str = "sm_90a") -> Description:
    """Describe a value that is found by import: "numba.cuda:laneid". Raises CuteError for one that kernels have not."""
    with compiling_for(arch):
        return description_of_type(_found(_context(), symbol))


def _value_type(context: Any, value: Any) -> Any:
    """Return the type of a global; of a class's method, of which Numba knows by the class."""
    if isinstance(value, MethodType):
        return _asked(context.resolve_getattr, _value_type(context, value.__self__), value.__name__)
    return _asked(context.resolve_value_type, value)


def infer_global(value: Any, *, arch: str = "sm_90a") -> Description:
    """Describe an object that a kernel captures as a global. Raises CuteError for one that kernels do not know."""
    with compiling_for(arch):
        found = _asked(_context().resolve_value_type, value)
    return description_of_type(
        found.copy(readonly=True) if isinstance(found, types.Array) else found
    )  # which is a constant


def description_of_argument(value: Any) -> Description:
    """Describe a kernel's argument: an array, a tensor, a number, any object that a kernel takes."""
    return description_of_type(type_of_argument(value))


def example_of(d: Description) -> Any:
    """Return an object that a description tells of, as traced code sees it: its leaves have types and no values. Within
    `abstractly`."""
    tracer: Any = seam.current()
    return abstract(numba_type(d), None, tracer)


@contextmanager
def abstractly(arch: str) -> Iterator[None]:
    """Run traced code as typing does, for a target: on leaves without values, and nothing is emitted."""
    with compiling_for(arch), seam.running(Tracer()):
        yield


NUMBAS = ("numba", "builtins", "cmath", "math", "numpy", "operator")
"""The packages of which Numba knows functions and values."""


def is_of_numba(symbol: str) -> bool:
    """Say whether a symbol, "module:qualname", is of what Numba itself knows: not a module, no function of Python,
    which typing would call, and not `getattr`, for which the IR has operations."""
    try:
        with target_override("cuda"):
            found = _found(_context(), symbol)
    except CuteError:
        return False
    return not isinstance(found, (Value, types.Module)) and symbol != "builtins:getattr"


def _found(context: Any, symbol: str) -> Any:
    """Return the Numba type of what a kernel finds by a symbol, in the modules that are loaded."""
    name, _, path = symbol.partition(":")
    module = sys.modules.get(name)
    if module is None or name.partition(".")[0] not in NUMBAS:
        raise CuteError(f"{symbol}: a kernel has no such value")
    found = _asked(context.resolve_value_type, module)
    for part in path.split("."):
        found = None if part.startswith("__") else _asked(context.resolve_getattr, found, part)
        if found is None or isinstance(found, types.Module) and not _within(found.pymod, name):
            raise CuteError(f"{symbol}: a kernel has no such value")
    return found


def _within(space: Any, name: str) -> bool:
    """Say whether what Numba takes for a module, a class too, is of the package of the module of this name."""
    own = space.__name__ if isinstance(space, ModuleType) else space.__module__
    return bool(own.partition(".")[0] == name.partition(".")[0])
