# SPDX-License-Identifier: Apache-2.0
"""`with cute.arch.elect_one():` in kernels: the `if` that it means, put in its place before an engine sees the code.
`with cute.arch.elect_one() as e:` gives `e` what is asked: True in the block, and which lane it was after it.

Python's `with` calls the object's methods around the block and catches what is raised there; a kernel has neither.
"""

from __future__ import annotations

import ast
import functools
import weakref
from types import CellType, CodeType, FunctionType
from typing import Any

from ..ground.bytecode import opnames
from ..ground.error import CuteError
from ..ground.packages import package_of
from ..ground.places import at_line, definition_of, syntax_of
from .imports import Imports, has_import
from .named_arguments import NamedArguments, has_dictionaries, has_many

_OPENS = frozenset(("BEFORE_WITH", "SETUP_WITH", "LOAD_SPECIAL"))
_MADE: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def without_with(fn: Any) -> Any:
    """Return a function whose `with elect_one():` are `if elect_one():`, whose imports are assignments, and whose calls
    `f(**names)` are of this library; itself where it has none.

    CuteError: another `with`, or one in a function whose source is not there.
    """
    if not isinstance(fn, FunctionType) or not any(has(fn.__code__) for has in (*_REWRITTEN, has_many)):
        return fn
    if fn not in _MADE:
        _MADE[fn] = _rewritten(fn)
    return _MADE[fn]


@functools.lru_cache(maxsize=4096)
def has_with(code: CodeType) -> bool:
    """Say whether code, or a function in it, has a `with`."""
    if not _OPENS.isdisjoint(opnames(code)):
        return True
    return any(has_with(c) for c in code.co_consts if isinstance(c, CodeType))


_REWRITTEN = (has_with, has_import, has_dictionaries)


def reaches_with(fn: Any) -> bool:
    """Say whether a function has a `with`, or a plain function that it names, as far as there is such a one now."""
    seen: set[int] = set()

    def reaches(f: Any) -> bool:
        if not isinstance(f, FunctionType) or id(f) in seen or package_of(f.__module__) == "numba_cute":
            return False
        seen.add(id(f))
        return has_with(f.__code__) or any(reaches(f.__globals__.get(n)) for n in f.__code__.co_names)

    return reaches(fn)


class Elect(ast.NodeTransformer):
    """Puts the `if` that is meant in the place of each `with elect_one():`. file: of the source."""

    def __init__(self, file: str) -> None:
        self.file = file

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        item = node.items[0]
        if opens_elected(node):
            if item.optional_vars is None:
                return ast.copy_location(ast.If(item.context_expr, node.body, []), node)
            if isinstance(item.optional_vars, ast.Name):
                asked = ast.Assign([item.optional_vars], item.context_expr)
                name = ast.Name(item.optional_vars.id, ast.Load())
                return [ast.copy_location(new, node) for new in (asked, ast.If(name, node.body, []))]
        text = ", ".join(ast.unparse(i) for i in node.items)
        e = CuteError(
            f"`with {text}:` in a kernel: a kernel has no context managers but `with cute.arch.elect_one():`, which "
            "means `if`; call what begins and what ends it"
        )
        raise at_line(e, self.file, node.lineno)


def opens_elected(node: ast.With) -> bool:
    """Say whether a `with` is one of `elect_one()` alone."""
    return len(node.items) == 1 and _name(node.items[0].context_expr) == "elect_one"


def _name(expr: ast.expr) -> str:
    """Return the last name of a function that is called, as `c` of `a.b.c()`."""
    f = expr.func if isinstance(expr, ast.Call) else None
    return f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""


def _rewritten(fn: FunctionType) -> FunctionType:
    code = fn.__code__
    try:
        tree, first = syntax_of(fn)
    except (OSError, SyntaxError):
        if not any(has(code) for has in _REWRITTEN):  # Numba knows calls of many names, unless one of them branches
            return fn
        e = CuteError(
            "`with`, `import` and `f(**names)` are read from the source, which is not there: write `if elect_one():`, "
            "import at the head of the file, and name the arguments"
        )
        raise at_line(e, *definition_of(fn)) from None
    ast.increment_lineno(tree, first - 1)
    body: Any = tree.body[0]
    body.decorator_list = []
    take_as(code, body.args)
    imports = Imports(fn)
    body = imports.visit(body)
    calls = NamedArguments(body)
    body = calls.visit(body)
    given = imports.given | calls.given
    names = dict.fromkeys((*code.co_freevars, *given))  # those of a function that was rewritten before come twice
    outer: Any = ast.parse(f"def outer({', '.join(names)}): pass").body[0]
    outer.body = [Elect(code.co_filename).visit(body)]
    module = ast.fix_missing_locations(ast.Module([outer], []))
    new = _found(compile(module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURE), fn)
    cells = dict(zip(code.co_freevars, fn.__closure__ or ())) | {n: CellType(x) for n, x in given.items()}
    made = FunctionType(
        new, fn.__globals__, fn.__name__, fn.__defaults__, tuple(cells[n] for n in new.co_freevars) or None
    )
    made.__kwdefaults__ = fn.__kwdefaults__
    functools.update_wrapper(made, fn)
    del made.__wrapped__  # type: ignore[attr-defined]
    return made


def take_as(code: CodeType, arguments: ast.arguments) -> None:
    """Have the parameters that a function's source shows be those of its code, where keyword-only ones may have been
    made ordinary."""
    if not code.co_kwonlyargcount:
        defaults = [d or ast.Constant(None) for d in arguments.kw_defaults]
        arguments.args, arguments.kwonlyargs = [*arguments.args, *arguments.kwonlyargs], []
        arguments.defaults, arguments.kw_defaults = [*arguments.defaults, *defaults], []


_FUTURE = 0x1000000  # of `from __future__ import annotations`


def _found(code: CodeType, fn: FunctionType) -> CodeType:
    """Return a function's code among that of what was compiled."""
    (outer,) = (c for c in code.co_consts if isinstance(c, CodeType))
    return next(c for c in outer.co_consts if isinstance(c, CodeType) and c.co_name == fn.__code__.co_name)
