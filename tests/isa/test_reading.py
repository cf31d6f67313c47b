# SPDX-License-Identifier: Apache-2.0
"""What an instruction means is read from its row's fields: nobody outside isa/ reads its text or its name, or makes a
row's name up. And the rooms of isa/ have an order: facts, form, rows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ..each import each

PACKAGE = Path(__file__).resolve().parents[2] / "numba_cute"
READERS = [p for p in sorted(PACKAGE.rglob("*.py")) if p.relative_to(PACKAGE).parts[0] != "isa"]
ROWS = {"row", "instr", "by"}
"""What variables and attributes that hold a row are called."""
TABLES = {"isa", "table", "rows", "TABLE"}


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def of_row(node: ast.AST, *fields: str) -> bool:
    """Whether an expression is one of these fields of a row."""
    if not isinstance(node, ast.Attribute) or node.attr not in fields:
        return False
    held = node.value
    return (isinstance(held, ast.Name) and held.id in ROWS) or (isinstance(held, ast.Attribute) and held.attr in ROWS)


def read_from_text(tree: ast.AST):
    """Where a row's text is used at all, or its name compared, searched or taken apart."""
    for node in ast.walk(tree):
        if of_row(node, "ptx"):
            yield node
        elif isinstance(node, ast.Compare):
            yield from (node for part in (node.left, *node.comparators) if of_row(part, "name", "doc"))
        elif isinstance(node, ast.Attribute) and of_row(node.value, "name", "doc"):
            yield node  # a method of it


def made_up(tree: ast.AST):
    """Where a row is looked up by a name that is computed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            held = node.args[0]
            if isinstance(held, ast.Name) and held.id in TABLES and not isinstance(node.args[1], ast.Constant):
                yield node
        if isinstance(node, ast.Subscript):
            held = node.value
            table = isinstance(held, ast.Name) and held.id == "TABLE"
            if (table or (isinstance(held, ast.Attribute) and held.attr == "TABLE")) and not isinstance(
                node.slice, ast.Constant
            ):
                yield node


@each("path", READERS, ids=relative)
def test_nobody_reads_a_rows_text_or_name_or_makes_one_up(path):
    tree = ast.parse(path.read_text())
    bad = [f"{relative(path)}:{n.lineno}: {ast.unparse(n)}" for n in (*read_from_text(tree), *made_up(tree))]
    assert not bad, "read a field of the row instead (isa/form/instr.py), or add one"


@pytest.mark.parametrize(
    "wrong",
    [
        'if ".relaxed" in m.row.ptx: pass', 'm.row.name.startswith("tcgen05_ld")', 'x = "_inc" in self.row.name',
        'row.name == "ld"', 'getattr(isa, f"ld_{space}")', "getattr(isa, name)", 'isa.TABLE[f"cvt_{t}"]', "TABLE[name]",
    ],
)  # fmt: skip
def test_the_patterns_find_what_they_are_for(wrong):
    tree = ast.parse(wrong)
    assert [*read_from_text(tree), *made_up(tree)]


@pytest.mark.parametrize(
    "right", ["key = (row.name, id(case))", 'f"{m.row.name} of"', "isa.TABLE['ld']", "dtype.ptx == 'f16'"]
)
def test_names_may_be_printed_and_kept(right):
    tree = ast.parse(right)
    assert not [*read_from_text(tree), *made_up(tree)]


def rooms_imported(path: Path) -> set[str]:
    """The rooms of isa/ that a file of it imports."""
    here = path.relative_to(PACKAGE).parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*here[: len(here) - node.level], *(node.module or "").split(".")]
            if base[0] == "isa" and len(base) > 1:
                found.add(base[1])
    return found - {here[1], ""}


@pytest.mark.parametrize("room, above", [("facts", set()), ("form", set()), ("rows", {"facts", "form"})])
def test_a_room_of_the_table_imports_only_those_above_it(room, above):
    for path in sorted((PACKAGE / "isa" / room).glob("*.py")):
        assert rooms_imported(path) <= above, relative(path)
