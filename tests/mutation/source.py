# SPDX-License-Identifier: Apache-2.0
"""A kernel as its source: what mutants are made of."""

import inspect
import linecache
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Kernel:
    """A module's kernel. functions: where its synchronisation stands. problems: each runs it as the module's names in
    `space` define it, `problem(space, options)`, and compares its result; the quickest first."""

    name: str
    module: Any
    functions: frozenset[str]
    problems: tuple[Callable[[dict, dict], None], ...]

    def run(self, space: dict, options: dict) -> None:
        """Run all problems."""
        for problem in self.problems:
            problem(space, options)

    @property
    def source(self) -> str:
        return getattr(self.module, "SOURCE", None) or inspect.getsource(self.module)


FUTURE = "from __future__ import annotations\n"


def small(module: Any, *changes: tuple[str, str], within: tuple[ModuleType, ...] = ()) -> Any:
    """The module with some constants changed, so that its kernels work on smaller tiles. within: modules whose source
    takes the place of the line that imports them, since part of the kernel stands there."""
    text = inspect.getsource(module)
    for part in within:
        (line,) = re.findall(rf"^from \S*\b{part.__name__.rpartition('.')[2]} import .*\n", text, re.MULTILINE)
        text = FUTURE + text.replace(line, inspect.getsource(part).replace(FUTURE, "")).replace(FUTURE, "")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    made = ModuleType(f"small_{module.__name__}")
    made.__file__ = f"small_{module.__name__}.py"
    made.__package__ = module.__package__  # what it imports from beside it
    sys.modules[made.__name__] = made  # where its structs' annotations are looked up
    linecache.cache[made.__file__] = (len(text), None, text.splitlines(True), made.__file__)
    exec(compile(text, made.__file__, "exec"), vars(made))
    made.SOURCE = text  # type: ignore[attr-defined]
    return made
