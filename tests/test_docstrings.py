# SPDX-License-Identifier: Apache-2.0
"""What public docstrings must say."""

import inspect
import re
from pathlib import Path

import numba_cute
from numba_cute.atoms.op import CopyOp, MmaOp
from tests import api


def function_of(member):
    """The function behind a method, property or function; None of anything else."""
    member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return member if inspect.isfunction(member) else None


def documented():
    """(name, function or class, its own docstring, all that documents its parameters) of each public function, class,
    method, constructor and property; a method's parameters may be those of the same method of a base, or of a class."""
    seen = set()
    for module, attribute, value in api.names():
        name = f"{module}.{attribute}"
        if id(value) in seen:
            continue
        seen.add(id(value))
        if inspect.isclass(value):
            bases = [c for c in value.__mro__ if c.__module__.startswith("numba_cute")]
            about = " ".join(c.__dict__.get("__doc__") or "" for c in bases)
            yield name, value, value.__doc__ or "", about
            for method, member in {k: v for c in reversed(bases) for k, v in vars(c).items()}.items():
                public = not method.startswith("_") or method in ("__init__", "__call__")
                function = function_of(member) if public else None
                # `struct` makes constructors that take any arguments; the fields are the class's affair
                if (
                    function
                    and function.__module__.startswith("numba_cute")
                    and function.__module__ != "numba_cute.seam.marks.decorators"
                ):
                    said = (function_of(vars(c).get(method)) for c in bases)
                    inherited = " ".join(f.__doc__ or "" for f in said if f)
                    yield f"{name}.{method}", function, function.__doc__ or "", f"{inherited} {about}"
        elif callable(value) and hasattr(value, "__name__"):
            doc = inspect.getdoc(value) or ""
            yield name, value, doc, doc


def test_docstrings_name_every_public_parameter():
    unnamed = []
    for name, function, _, about in documented():
        parameters = () if inspect.isclass(function) else inspect.signature(function).parameters
        missing = [p for p in parameters if p not in ("self", "loc", "ip") and not re.search(rf"\b{p}\b", about)]
        unnamed += [f"{name}: {', '.join(missing)}"] if missing else []
    assert not unnamed, "\n".join(unnamed)


def test_public_docstrings_say_what_a_thing_does_or_is():
    """As in "Say whether …" and "The rows that …", not "Whether …" and "What …"."""
    assert not [name for name, _, doc, _ in documented() if re.match(r"(What|How|Whether)\b", doc)]


TARGET = re.compile(r"\bsm_\d+|any target|least target|(?i:the targets? that)|PTX as")
OF_DEVICES = ("numba_cute.arch.", "numba_cute.math")
"""Rooms of functions of kernels. What is said of others is read in their code: that they issue an instruction."""


def issues(function):
    """Return whether a function of the library says in its own code that it issues an instruction."""
    if function.__module__.startswith(OF_DEVICES):
        return True
    return named_in(inspect.unwrap(function).__code__, {"isa", "issue"})


def named_in(code, names):
    inner = (c for c in code.co_consts if inspect.iscode(c))
    return not names.isdisjoint(code.co_names) or any(named_in(c, names) for c in inner)


def test_what_issues_instructions_names_its_least_target():
    """As the reference does: functions of kernels, operations, and what issues one."""
    asked = []
    for name, value, doc, about in documented():
        operation = inspect.isclass(value) and issubclass(value, (CopyOp, MmaOp)) and value not in (CopyOp, MmaOp)
        if operation or inspect.isfunction(inspect.unwrap(value)) and issues(value):
            asked.append((name, doc + about))
    assert len(asked) > 300
    assert not [name for name, text in asked if not TARGET.search(" ".join(text.partition(">>>")[0].split()))]


QUESTION = re.compile(r'^[ \t]*[rRfF]?"""\s*(?:What|How|Whether|Which|Where|Who|Why)\b', re.MULTILINE)


def test_no_docstring_is_half_a_question():
    """Of public and private names, modules and attributes: a verb comes first, or a noun phrase."""
    root = Path(numba_cute.__file__).parents[1]
    found = []
    for path in (*(root / "numba_cute").rglob("*.py"), *(root / "examples").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found += [f"{path.relative_to(root)}:{text.count(chr(10), 0, m.end()) + 1}" for m in QUESTION.finditer(text)]
    assert not found
