# SPDX-License-Identifier: Apache-2.0
"""A kernel's function rewritten, on its source: classes that it describes its shared memory with, for Numba knows no
`class`, so that statement is made a call; generators that a call or several variables take whole, which are made lists;
and fields of its object that it sets."""

from __future__ import annotations

import ast
import builtins
import functools
from types import CellType, CodeType, FunctionType
from typing import Any

from ..ground.bytecode import opnames
from ..ground.error import CuteError
from ..ground.places import at_line, syntax_of
from ..marks.decorators import traced
from .imports import Imports
from .named_arguments import NamedArguments
from .own_fields import OWN_FIELDS, fields_set, with_variables
from .settings import stores_of
from .with_statements import Elect, take_as

_DESCRIBE = "__cute_describe__"


@traced
def describe(make: Any, name: str, names: tuple[str, ...], kinds: tuple[Any, ...]) -> Any:
    """Make the class that the statement would make: `make` is its decorator."""
    members = {"__annotations__": dict(zip(names, kinds)), "__qualname__": name, "__module__": "kernel"}  # no import's
    return make(type(name, (), members))


def without_classes(function: Any, is_kernel: bool = False) -> Any:
    """Return a function that makes by calls what classes it has, gives lists to what takes a generator whole, and, if
    it `is_kernel`, has as variables what fields of its object it sets; itself, if it has none.

    CuteError: a class that is more than annotated names under one decorator, or a function with one without source.
    """
    code = function.__code__
    has_class, sets = "LOAD_BUILD_CLASS" in opnames(code), is_kernel and _is_method(function) and any(stores_of(code))
    if not (has_class or sets or _has_generator(code) or _has_starred(code)):
        return function
    try:
        tree, first = syntax_of(function)
    except (OSError, SyntaxError) as e:
        if not has_class:  # what it sets is refused where it is compiled
            return function
        raise CuteError(f"{function.__name__} has a class in it, and its source cannot be read: {e}") from e
    ast.increment_lineno(tree, first - 1)
    (definition,) = tree.body
    if not isinstance(definition, ast.FunctionDef):  # a lambda, whose source is the statement that has it
        return function
    Elect(code.co_filename).visit(definition)  # the source has its `with` still, imports, and `f(**names)`
    imports, calls = Imports(function), NamedArguments(definition)
    definition = calls.visit(imports.visit(definition))
    taking = frozenset(n for n in _TAKES_WHOLE + _LEAVES_OUT if _is_builtin(n, function))
    definition.body = _Calls(code.co_filename, taking).visit(ast.Module(definition.body, [])).body
    names = fields_set(definition) if sets else frozenset()
    if names:
        with_variables(definition, names)
    return _remade(function, definition, imports.given | calls.given)


_ADDED = {_DESCRIBE: describe, **OWN_FIELDS}
"""Functions that a rewritten function calls, by the names that it has there."""


def _is_method(function: Any) -> bool:
    """Say whether a function stands in a class."""
    return not function.__qualname__.rpartition(".")[0].endswith(("<locals>",)) and "." in function.__qualname__


_TAKES_WHOLE = ("tuple", "list", "sum", "min", "max")
"""Functions of Python's that take all that a generator gives."""
_LEAVES_OUT = ("any", "all")
"""Those that may leave some of it out: they are given a list where nobody can tell, as its items only compare names."""
_ONLY_READS = (
    ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Attribute, ast.Tuple, ast.List, ast.boolop,
    ast.unaryop, ast.cmpop, ast.expr_context,
)  # fmt: skip


def _has_generator(code: CodeType) -> bool:
    """Say whether a generator expression stands in a function, or in one inside."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return any(c.co_name == "<genexpr>" or _has_generator(c) for c in inner)


def _has_starred(code: CodeType) -> bool:
    """Say whether `a, *b = x` stands in a function, or in one inside."""
    return "UNPACK_EX" in opnames(code) or any(_has_starred(c) for c in code.co_consts if isinstance(c, CodeType))


def _unpacked(target: ast.Tuple | ast.List, value: ast.expr, at: ast.stmt) -> list[ast.stmt]:
    """The statements of `a, *b, c = value`: each variable is given an element, and one a list. `*_` is a tuple: nobody
    asks for it, and its elements may be of any types."""
    names = target.elts
    star = next(i for i, n in enumerate(names) if isinstance(n, ast.Starred))
    after = len(names) - star - 1
    made = _parsed(
        f"{_UNPACKED} = tuple(None)\nassert len({_UNPACKED}) >= {len(names) - 1}, 'not enough values to unpack'", at
    )
    made[0].value.args[0] = value
    for i, name in enumerate(names):
        place = f"{i}:{-after or ''}" if i == star else str(i if i < star else i - len(names))
        text = f"{_UNPACKED}[{place}]"
        to: Any = name.value if isinstance(name, ast.Starred) else name
        whole = i == star and not (isinstance(to, ast.Name) and to.id == "_")
        (given,) = _parsed(f"{_UNPACKED} = list({text})" if whole else f"{_UNPACKED} = {text}", at)
        given.targets = [to]
        made.append(given)
    return made


def _parsed(text: str, at: ast.stmt) -> list[Any]:
    """The statements of a text, which stand where another does."""
    module = ast.parse(text)
    for node in ast.walk(module):
        ast.copy_location(node, at)
    return module.body


_UNPACKED = "__cute_unpacked__"


def _is_builtin(name: str, function: Any) -> bool:
    code = function.__code__
    own = (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
    return name not in own and function.__globals__.get(name) in (None, getattr(builtins, name))


def _only_reads(generator: ast.GeneratorExp) -> bool:
    """Say whether the items of a generator are no more than comparisons of names, so that one more changes nothing."""
    parts = (generator.elt, *(c for g in generator.generators for c in g.ifs))
    return all(isinstance(n, _ONLY_READS) for part in parts for n in ast.walk(part))


class _Calls(ast.NodeTransformer):
    """Puts a call of `describe` in the place of each class, and a list in that of a generator which one of the
    functions `taking`, or several variables, `a, b = …`, take whole. filename: of the source."""

    def __init__(self, filename: str, taking: frozenset[str]) -> None:
        self._filename, self._taking = filename, taking

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        of = node.args[0] if node.args else None
        taker = node.func.id if isinstance(node.func, ast.Name) else None
        if isinstance(of, ast.GeneratorExp) and taker in self._taking and (taker in _TAKES_WHOLE or _only_reads(of)):
            node.args[0] = ast.copy_location(ast.ListComp(of.elt, of.generators), of)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        of, to = node.value, node.targets[0]
        if isinstance(to, (ast.Tuple, ast.List)) and any(isinstance(n, ast.Starred) for n in to.elts):
            return _unpacked(to, of, node) if len(node.targets) == 1 else node
        if isinstance(of, ast.GeneratorExp) and all(isinstance(t, (ast.Tuple, ast.List)) for t in node.targets):
            node.value = ast.copy_location(ast.ListComp(of.elt, of.generators), of)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        body = _without_names(body)
        fields = [
            s for s in body if isinstance(s, ast.AnnAssign) and s.value is None and isinstance(s.target, ast.Name)
        ]
        if len(node.decorator_list) != 1 or node.bases or node.keywords or len(fields) != len(body):
            wrong = CuteError(
                f"class {node.name} in a kernel: it may describe shared memory, by annotated names under @cute.struct "
                "or @cute.union alone; make any other outside of it"
            )
            raise at_line(wrong, self._filename, node.lineno)
        names = ast.Tuple([ast.Constant(f.target.id) for f in fields], ast.Load())  # type: ignore[union-attr]
        kinds = ast.Tuple([f.annotation for f in fields], ast.Load())
        call = ast.Call(
            ast.Name(_DESCRIBE, ast.Load()), [node.decorator_list[0], ast.Constant(node.name), names, kinds], []
        )
        made = ast.copy_location(ast.Assign([ast.Name(node.name, ast.Store())], call), node)
        return ast.fix_missing_locations(made)


def _without_names(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a class without those that give a name to an expression: it stands where the name is read."""
    given: dict[str, ast.expr] = {}
    left: list[ast.stmt] = []
    for s in body:
        s = _Written(given).visit(s)
        if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
            given[s.targets[0].id] = s.value
        else:
            left.append(s)
    return left


class _Written(ast.NodeTransformer):
    """Puts an expression in the place of each name that is read and was given to one. given: those names."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> Any:
        return self._given.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def _remade(function: Any, definition: ast.FunctionDef, imported: dict[str, Any]) -> Any:
    """Make a function of a changed definition of it, with its own globals, closure, defaults and attributes. imported:
    by their names in it, what it imports."""
    added = _ADDED | imported
    arguments = definition.args
    definition.decorator_list, definition.returns = [], None
    for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if a is not None:
            a.annotation = None
    code = function.__code__
    take_as(code, arguments)
    nothing = ast.copy_location(ast.Constant(None), definition)
    arguments.defaults = [nothing for _ in arguments.defaults]
    arguments.kw_defaults = [d and nothing for d in arguments.kw_defaults]
    free = [*added, *(n for n in code.co_freevars if n not in added)]
    outer = ast.FunctionDef(
        "outer", ast.arguments([], [ast.arg(n) for n in free], None, [], [], None, []), [definition], [], lineno=1
    )
    outer.type_params = []  # type: ignore[attr-defined]  # from Python 3.12 on
    module = ast.fix_missing_locations(ast.Module([outer], []))
    new = _code_in(_code_in(compile(module, code.co_filename, "exec", dont_inherit=True), "outer"), definition.name)
    if hasattr(new, "co_qualname"):
        new = new.replace(co_qualname=code.co_qualname)
    cells = dict(zip(code.co_freevars, function.__closure__ or ())) | {n: CellType(f) for n, f in added.items()}
    made: Any = FunctionType(
        new, function.__globals__, function.__name__, function.__defaults__, tuple(cells[n] for n in new.co_freevars)
    )
    made.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(made, function)
    del made.__wrapped__
    return made


def _code_in(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
