# SPDX-License-Identifier: Apache-2.0
"""Lines of operations as the CuTe DSL prints them, each made a module of its own: what it takes is a function's
arguments, of the types that the line says or that follow from it. A list of such lines (`### operation (uses)`, then
the lines between ```) is counted by operation: it holds where each of its lines is read, verified, and printed the same
to the letter, but for the numbers of values.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from xdsl.context import Context

from numba_cute.ir.dialect import modules

LIST = Path("/work/shared/golden/printed_ir.md")
BESIDE = "nvvm.barrier"
"""An operation beside each line: what is written as it is published too is known for printed by what stands there."""
_VALUE = re.compile(r"%[\w#]+")
_QUOTED = re.compile(r'"[^"]*"')


@functools.cache
def _context() -> Context:
    return modules.context()


def read(source: str) -> modules.Read:
    """Read a module by one context."""
    return modules.read(source, _context())


def operations(path: Path = LIST) -> Iterator[tuple[str, list[str]]]:
    """List the operations of a list, with their lines."""
    text = path.read_text().partition("## Operations")[2]
    for name, body in re.findall(r"### (\S+) \(\d+\)\n```\n(.*?)```", text, re.DOTALL):
        yield name, [line for line in body.splitlines() if line.strip()]


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets and quotes."""
    found, depth, start, quoted = [], 0, 0, False
    for i, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif not quoted:
            depth += (c in "(<[{") - (c in ")>]}" and text[i - 1] != "-")
            if c == "," and not depth:
                found.append(text[start:i].strip())
                start = i + 1
    return [t for t in [*found, text[start:].strip()] if t]


def _outside(text: str, wanted: str, last: bool = False) -> int:
    """Where a piece stands outside of brackets and quotes; -1 for nowhere."""
    depth, quoted, at = 0, False, -1
    for i, c in enumerate(text):
        if not quoted and not depth and text.startswith(wanted, i):
            if not last:
                return i
            at = i
        if c == '"':
            quoted = not quoted
        elif not quoted:
            depth += (c in "(<[{") - (c in ")>]}" and text[i - 1] != "-")
    return at


def _types(line: str) -> tuple[list[str], list[str]]:
    """The types of operands and of results that a line says."""
    at = _outside(line, " : ", last=True)
    if at < 0:
        arrow = _outside(line, " -> ")
        return [], [line[arrow + 4 :]] if arrow >= 0 else []
    text, results = line[at + 3 :], ""
    for word in (" -> ", " to "):
        cut = _outside(text, word)
        if cut >= 0:
            text, results = text[:cut], text[cut + 4 :]
    flat = [t for part in _split(text) for t in (_split(part[1:-1]) if part.startswith("(") else [part])]
    return flat, _split(results[1:-1] if results.startswith("(") else results)


def _fields(type: str) -> list[str]:
    return _split(type[type.index("<") + 1 : type.rindex(">")])


def _of_layout(quoted: str) -> str:
    return f"!cute.{'composed_layout' if ' o ' in quoted else 'layout'}<{quoted}>"


def _hidden(name: str, result: str) -> list[str]:
    """The types of operands that follow from the result's."""
    if name in ("cute.make_layout", "cute.make_identity_layout", "cute.make_identity_tensor"):
        shape, stride = _fields(result)[-1].strip('"').split(":")
        return [f'!cute.shape<"{shape}">', f'!cute.stride<"{stride}">']
    if name == "cute.make_composed_layout":
        parts = _fields(result)[0].strip('"').split(" o ")
        return [f'!cute.{k}<"{p}">' for k, p in zip(("swizzle", "int_tuple", "layout"), parts, strict=True)]
    if name in ("cute.make_tiled_copy", "cute.make_tiled_mma"):
        return _fields(result)[:1]
    if name in ("cute.make_view", "cute.memref.alloca"):
        *pointer, layout = _fields(result)
        kind = "ptr" if result.startswith("!cute.memref") else "arith_tuple_iter"
        first = [] if name == "cute.memref.alloca" else [f"!cute.{kind}<{', '.join(pointer)}>"]
        return [*first, _of_layout(layout)]
    if name == "vector.from_elements":
        return [result.rpartition("x")[2].rstrip(">")] * 64
    if name == "cf.assert":
        return ["i1"]
    if result and name == "cute_nvgpu.arch.make_warp_uniform":
        return [result]
    return []


def module_of(name: str, line: str) -> str:
    """Make a module of a line, in which `HERE` ends the line before it."""
    if line.endswith("{"):
        return _opened(name, line)
    body = _without_results(line)
    given, results = _types(body)
    values = list(dict.fromkeys(_VALUE.findall(_QUOTED.sub("", body))))
    order = _VALUE.findall(_QUOTED.sub("", body))
    hidden = _hidden(name, (results or given or [""])[-1])
    if hidden or len(given) < len(order):
        fill = given[-1] if name.startswith("arith.") else "i32"
        given = hidden or [*given, *[fill] * len(order)]
    kinds = dict(reversed(list(zip(order, given, strict=False))))
    arguments = ", ".join(f"{v}: {kinds.get(v, 'i32')}" for v in values)
    if name == "scf.yield":
        types = ", ".join(given)
        return (f"func.func @f(%cond: i1, {arguments}) {{\n%r = scf.if %cond -> ({types}) {{\n{line}\n}} else {{\n"
                f"{line}\n}}\nreturn\n}}\n")  # fmt: skip
    return f"func.func @f({arguments}) {{\n{BESIDE}\n{line}\nreturn\n}}\n"


def _opened(name: str, line: str) -> str:
    """Make a module of a line that opens a region."""
    if name == "gpu.module":
        return line + "\n}\n"
    if name == "func.func":
        return line + "\n%c0_i32 = arith.constant 0 : i32\nreturn %c0_i32 : i32\n}\n"
    body = _without_results(line)
    values = list(dict.fromkeys(_VALUE.findall(_QUOTED.sub("", body))))
    arrow = _outside(body, " -> ")
    results = _split(_split(body[arrow + 4 : body.rindex(")") + 1])[0][1:-1]) if arrow >= 0 else []
    made = {v: "i32" for v in values}
    own: list[str] = []
    if name == "scf.if":
        made = {values[0]: "i1"}
        given = [f"%v{i}" for i in range(len(results))]
        made |= dict(zip(given, results, strict=True))
    else:
        pairs = re.findall(r"(%\w+) = (%\w+)", body)
        own = [a for a, _ in pairs]
        made |= dict(zip([b for _, b in pairs[1:]], results, strict=True))
        given = own[1:]
    arguments = ", ".join(f"{v}: {t}" for v, t in made.items() if v not in own)
    end = f"scf.yield {', '.join(given)} : {', '.join(results)}\n" if results else ""
    other = f"}} else {{\n{end}" if name == "scf.if" and results else ""
    return f"func.func @f({arguments}) {{\n{line}\n{end}{other}}}\nreturn\n}}\n"


def _without_results(line: str) -> str:
    return re.sub(r"^%[\w:#]+(, %[\w:#]+)* = ", "", line)


def _numbered(line: str) -> str:
    """A line with its values numbered as they come, and the names of results without their numbers."""
    found = re.match(r"(%[\w:#]+(?:, %[\w:#]+)*) = ", line)
    results = [] if found is None else [re.sub(r"_\d+$", "", r) for r in found[1].split(", ")]
    results = [re.sub(r"^%\d+", "%", r) for r in results]
    names: dict[str, str] = {}
    body = re.sub(r'"[^"]*"|%[\w#]+', lambda m: m[0] if m[0][0] == '"' else names.setdefault(m[0], f"%v{len(names)}"),
                  _without_results(line))  # fmt: skip
    return f"{', '.join(results)} = {body}" if results else body


def problem(name: str, line: str) -> str | None:
    """Read, verify and print a line, and read it again in both forms; gives what goes wrong, or None."""
    found = read(module_of(name, line))
    if found.op is None or found.problems:
        return found.problems[0].message
    printed = modules.printed(found.op)
    wanted = _numbered(line)
    if not any(_numbered(shown.strip()) == wanted for shown in printed.splitlines()):
        start = _without_results(line).split(" ")[0].split("(")[0]
        like = [_numbered(s.strip()) for s in printed.splitlines() if start in s]
        return f"prints as {like}"
    for text in (printed, modules.printed(found.op, generic=True)):
        again = read(text)
        if again.op is None or again.problems:
            return f"printed text: {again.problems[0].message}"
    return None if modules.printed(read(printed).op) == printed else "printed text is another module"


__all__ = ["LIST", "module_of", "operations", "problem"]
