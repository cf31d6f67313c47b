# SPDX-License-Identifier: Apache-2.0
"""No exception is control flow: what catches every one stands here, with its reason, and the list only shrinks."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import numba_cute

ROOT = Path(numba_cute.__file__).parent
ALL = ("Exception", "BaseException")
NAMED = re.compile(rf"\bexcept\s*:|\b({'|'.join(ALL)})\b")
USERS = "the user's own code runs there"
FOREIGN = "another library's errors have no class in common"
ENGINE = "a thread, a process or a device of another ends so, and it is told"
DOOR = "the door of the library: what is no refusal is put into words"
TOLD = "a candidate that fails is told of beside those that do not"

ALLOWED = {
    ("__main__.py/__main__.py", "main"): (1, USERS),
    ("cli/intermediate.py", "_module"): (1, USERS),
    ("cli/launched.py", "_ran"): (1, USERS),
    ("cli/naming.py", "evaluated"): (1, USERS),
    ("cli/naming.py", "module_of"): (1, USERS),
    ("compiler/refused.py", "call"): (1, DOOR),
    ("compiler/refused.py", "__call__"): (1, DOOR),
    ("compiler/calls.py", "type_call"): (1, USERS),
    ("compiler/code_reads.py", "imported"): (1, USERS),
    ("compiler/files.py", "write"): (1, "a file that is half written is taken away"),
    ("compiler/linking.py", "link"): (1, FOREIGN),
    ("compiler/mlir_kernels.py", "_answer"): (1, USERS),
    ("compiler/nvvm.py", "_settle"): (1, ENGINE),
    ("compiler/offline.py", "_argument_types"): (1, USERS),
    ("compiler/state.py", "unchanged"): (1, USERS),
    ("kernels/gradients.py", "_derived"): (1, USERS),
    ("ir/modules.py", "_parsed"): (1, FOREIGN),
    ("ir/python.py", "parsed"): (1, FOREIGN),
    ("seam/backend.py", "following"): (1, USERS),
    ("seam/constexpr.py", "_notes"): (1, USERS),
    ("seam/decorators.py", "annotations_of"): (1, USERS),
    ("seam/facade.py", "call"): (3, DOOR),
    ("seam/facade.py", "operator"): (1, DOOR),
    ("seam/leaf.py", "to"): (1, USERS),
    ("seam/naming.py", "shown"): (1, USERS),
    ("seam/pythons.py", "difference"): (1, "of a Python that is not known anything may be raised"),
    ("sim/grid.py", "execute"): (1, ENGINE),
    ("sim/launch.py", "once"): (1, ENGINE),
    ("sim/launch.py", "_launch"): (1, DOOR),
    ("sim/launch.py", "_thread"): (1, ENGINE),
    ("testing/children.py", "_serve"): (1, ENGINE),
    ("testing/clocks.py", "_nvml"): (1, FOREIGN),
    ("testing/closeness.py", "to_numpy"): (1, FOREIGN),
    ("testing/configurations.py", "_array"): (1, FOREIGN),
    ("testing/measuring.py", "compare"): (1, TOLD),
    ("testing/measuring.py", "attempt"): (1, TOLD),
    ("testing/tuned.py", "_here"): (1, TOLD),
    ("testing/tuned.py", "first_that_works"): (1, TOLD),
    ("utils/hardware_info.py", "__init__"): (1, FOREIGN),
}
"""By room, file and function: how many, and why."""


def caught() -> Counter[tuple[str, str]]:
    """Count what catches every exception, by file and function."""
    found: Counter[tuple[str, str]] = Counter()
    for file in sorted(ROOT.rglob("*.py")):
        where, text = f"{file.relative_to(ROOT).parts[0]}/{file.name}", file.read_text()
        if NAMED.search(text):
            _look(ast.parse(text), where, "", found)
    return found


def _look(node: ast.AST, file: str, function: str, found: Counter[tuple[str, str]]) -> None:
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        if isinstance(child, ast.ExceptHandler) and _is_of_all(child):
            found[file, function] += 1
        _look(child, file, child.name if named else function, found)


def _is_of_all(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or isinstance(kind, ast.Name) and kind.id in ALL for kind in kinds)


def test_what_catches_every_exception_is_known_and_has_its_reason():
    allowed = {where: count for where, (count, _) in ALLOWED.items()}
    found = caught()
    more = {w: n for w, n in found.items() if n > allowed.get(w, 0)}
    gone = {w: n for w, n in allowed.items() if found[w] < n}
    assert not more, "name the exceptions that are expected"
    assert not gone, "take from the list what is gone"
