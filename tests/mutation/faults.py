# SPDX-License-Identifier: Apache-2.0
"""Faults in functions of this library, by its syntax tree: one small change each, that still is Python."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Change = tuple[str, Callable[[], None]]

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add,
                                                          ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv}  # fmt: skip
HEADS = (ast.If, ast.While, ast.For, ast.With, ast.Try, ast.Match)


@dataclass(frozen=True)
class Fault:
    """One change of a file: the function, what is changed, the lines of its statement, and its number in the file."""

    path: str
    function: str
    change: str
    lines: tuple[int, int]
    number: int

    def __str__(self) -> str:
        return f"{self.path}: {self.function}: {self.change}"

    def tree(self, root: Path) -> ast.Module:
        """Return the file's syntax tree with the fault in it."""
        tree = ast.parse((root / self.path).read_text())
        changes = list(_changes(tree))
        changes[self.number][3][1]()
        return ast.fix_missing_locations(tree)


def functions(root: Path, path: str) -> set[str]:
    """Return the names of a file's functions."""
    return {name for name, node, _ in _functions(ast.parse((root / path).read_text()))}


def faults(root: Path, path: str) -> list[Fault]:
    """Return all faults of a file's functions, each with a text of its own."""
    tree = ast.parse((root / path).read_text())
    times: Counter[str] = Counter()
    found = []
    for number, (name, _, stmt, (change, _)) in enumerate(_changes(tree)):
        text = f"{name}: {change}"
        times[text] += 1
        again = f" #{times[text]}" if times[text] > 1 else ""
        found.append(Fault(path, name, change + again, _lines(stmt), number))
    return found


def chosen(every: list[Fault], count: int) -> list[Fault]:
    """Return some faults of one function, always the same: of different kinds and lines, as far as there are."""

    def rank(fault: Fault) -> tuple[bool, str]:
        told = fault.change.startswith("returns None")  # what comes of it is mostly an AttributeError
        return told, hashlib.sha256(str(fault).encode()).hexdigest()

    taken: list[Fault] = []
    for fault in sorted(every, key=rank):
        if len(taken) < count and all(fault.lines != t.lines for t in taken):
            taken.append(fault)
    return taken


def _functions(tree: ast.AST, before: str = "") -> Iterator[tuple[str, ast.FunctionDef, str]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield before + node.name, node, before
            yield from _functions(node, f"{before}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{before}{node.name}.")
        else:
            yield from _functions(node, before)


def _lines(stmt: ast.stmt) -> tuple[int, int]:
    """Return the first and last line of a statement, or of its head."""
    if isinstance(stmt, HEADS):
        return stmt.lineno, max(stmt.lineno, (stmt.body if not isinstance(stmt, ast.Match) else [stmt])[0].lineno - 1)
    return stmt.lineno, stmt.end_lineno or stmt.lineno


def _changes(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef, ast.stmt, Change]]:
    for name, node, _ in _functions(tree):
        for body, at in list(_statements(node)):
            stmt = body[at]
            for change in _of_statement(body, at):
                yield name, node, stmt, change
            for expr in _expressions(stmt):
                for change in _of_expression(expr):
                    yield name, node, stmt, change


def _statements(node: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    """Yield where the statements of a function stand, not those of functions in it."""
    for field in ("body", "orelse", "finalbody"):
        body = getattr(node, field, [])
        for at, stmt in enumerate(body):
            if isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
                continue
            yield body, at
            yield from _statements(stmt)
    for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from _statements(inner)


def _of_statement(body: list[ast.stmt], at: int) -> Iterator[Change]:
    stmt = body[at]

    def put(new: ast.stmt) -> Callable[[], None]:
        return lambda: body.__setitem__(at, ast.copy_location(new, stmt))

    said = _said(stmt)
    dropped = isinstance(stmt, ast.Expr) and not isinstance(stmt.value, (ast.Constant, ast.Yield, ast.YieldFrom))
    if isinstance(stmt, ast.Assign):
        dropped = not any(isinstance(t, (ast.Name, ast.Tuple)) for t in stmt.targets)
    if dropped or isinstance(stmt, (ast.AugAssign, ast.Delete, ast.Continue, ast.Break)):
        yield f"without {said}", put(ast.Pass())
    elif isinstance(stmt, ast.Return) and isinstance(stmt.value, ast.Constant) and isinstance(stmt.value.value, bool):
        yield f"returns {not stmt.value.value}", put(ast.Return(ast.Constant(not stmt.value.value)))
    elif isinstance(stmt, ast.Return) and stmt.value and not _is_none(stmt.value):
        yield f"returns None for {said}", put(ast.Return(ast.Constant(None)))
    elif isinstance(stmt, (ast.If, ast.While)) and not _is_guard(stmt):
        yield f"not ({_said(stmt.test)})", lambda: setattr(stmt, "test", _negated(stmt.test))
    elif isinstance(stmt, ast.For):
        yield f"all but the last of {_said(stmt.iter)}", lambda: setattr(stmt, "iter", _without_last(stmt.iter))


def _is_guard(stmt: ast.If | ast.While) -> bool:
    """Say whether a condition leads to an error: negated, everything is one."""
    return isinstance(stmt.body[0], ast.Raise)


def _of_expression(node: ast.expr | ast.comprehension) -> Iterator[Change]:
    said = _said(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = COMPARED[type(node.ops[0])]()
        yield f"compares otherwise in {said}", lambda: node.ops.__setitem__(0, other)
    elif isinstance(node, ast.BoolOp):
        other_op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        nothing = ast.copy_location(ast.Constant(isinstance(node.op, ast.And)), node)
        yield f"and/or swapped in {said}", lambda: setattr(node, "op", other_op)
        yield f"last left out of {said}", lambda: node.values.__setitem__(-1, nothing)
    elif isinstance(node, ast.IfExp):
        yield f"not in {said}", lambda: setattr(node, "test", _negated(node.test))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"no not in {said}", lambda: setattr(node, "operand", _negated(node.operand))
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED and not isinstance(node.left, ast.JoinedStr):
        computed = COMPUTED[type(node.op)]()
        yield f"computes otherwise in {said}", lambda: setattr(node, "op", computed)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield f"{node.value + 1} for {said}", lambda: setattr(node, "value", node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield f"{not node.value} for {said}", lambda: setattr(node, "value", not node.value)
    elif isinstance(node, ast.comprehension):
        yield f"all but the last of {_said(node.iter)}", lambda: setattr(node, "iter", _without_last(node.iter))
        for at, test in enumerate(node.ifs):
            yield f"not ({_said(test)})", lambda at=at, test=test: node.ifs.__setitem__(at, _negated(test))
    elif isinstance(node, ast.Call) and len(node.args) == 2 and not any(isinstance(x, ast.Starred) for x in node.args):
        if not (isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass", "getattr", "cast")):
            yield f"arguments swapped in {said}", lambda: node.args.reverse()


def _expressions(stmt: ast.stmt) -> Iterator[ast.expr | ast.comprehension]:
    """Yield the expressions of a statement: of its head, if it holds others; of none that is a message."""
    if isinstance(stmt, (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)):
        return
    held = [n for n in ast.iter_child_nodes(stmt) if isinstance(n, (ast.expr, ast.withitem))]
    if isinstance(stmt, ast.AnnAssign):
        held = [stmt.value] if stmt.value else []
    while held:
        node = held.pop()
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, (ast.expr, ast.comprehension)):
            yield node
        held += [n for n in ast.iter_child_nodes(node) if isinstance(n, (ast.expr, ast.comprehension, ast.keyword))]


def _said(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:90]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _negated(test: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def _without_last(iterated: ast.expr) -> ast.expr:
    head = ast.List([ast.Starred(iterated, ast.Load())], ast.Load())
    last = ast.Slice(None, ast.UnaryOp(ast.USub(), ast.Constant(1)))
    return ast.copy_location(ast.Subscript(head, last, ast.Load()), iterated)
