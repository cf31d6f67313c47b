# SPDX-License-Identifier: Apache-2.0
"""The layer rules of docs/architecture.md, and the size budgets."""

import ast
import re
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "numba_cute"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# The rooms of this package, and what each may import of it beside itself.
GROUND = {"seam", "layout", "dtypes"}
MAY_IMPORT = {
    "seam": set(),
    "config": {"seam"},
    "layout": {"seam"},
    "dtypes": {"seam"},
    "typed": {"seam", "dtypes"},
    "isa": GROUND,
    "tensor": GROUND | {"isa"},
    "runtime": GROUND | {"tensor"},
    "math": GROUND | {"isa", "tensor"},
    "arch": GROUND | {"isa", "tensor"},
    "atoms": GROUND | {"isa", "tensor"},
    "nvgpu": GROUND | {"isa", "tensor", "arch", "atoms"},
    "pipeline": GROUND | {"isa", "tensor", "arch", "atoms"},
    "tilelang": GROUND | {"isa", "tensor", "arch", "atoms", "nvgpu"},
    "utils": GROUND | {"isa", "tensor", "arch", "atoms", "nvgpu", "runtime"},
    "experimental": GROUND | {"isa", "tensor", "arch", "atoms", "nvgpu", "pipeline", "utils", "compiler"},
    "timelines": {"seam"},
    "results": GROUND | {"tensor", "math", "atoms", "nvgpu"},
    "inspecting": {"seam", "compiler"},
    "compiler": GROUND | {"config", "isa", "typed"},
    "sim": GROUND | {"config", "isa", "typed"},
}
# What hands a kernel to the compiler or the simulator: `numba_cute` itself, which imports every room.
FACADE = "__init__"
MAY_IMPORT[FACADE] = set(MAY_IMPORT)
CORE = set(MAY_IMPORT) - {"compiler", "sim"}
# Beside it: the IR speaks of all that the package shows, and is loaded on demand.
MAY_IMPORT["ir"] = set(MAY_IMPORT)
# And what measures kernels, and hands them to PyTorch, on demand too.
MAY_IMPORT["testing"] = GROUND | {"isa", "tensor", "runtime", "arch", "compiler", "config"}
MAY_IMPORT["torch_ops"] = {"seam"}
# And kernels, written as users write theirs.
MAY_IMPORT["kernels"] = {FACADE, *MAY_IMPORT[FACADE]} - {"compiler", "sim"}
MAY_IMPORT["__main__"] = {FACADE, "seam", "ir", "inspecting", "compiler"}

THIRD_PARTY = {
    "numba": "compiler",
    "llvmlite": "compiler",
    "cuda": "compiler",
    "greenlet": "sim",
    "xdsl": "ir",
}

ALLOWED = {
    ("numba_cute/utils/hardware_info.py", "cuda"): "it asks the driver what the GPU has; imported when called",
}

MAX_FILE_LINES, MAX_FUNCTION_LINES = 500, 60
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {
    "numba_cute/kernels/attention/backward.py:kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/backward.py:make_kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/backward_wide.py:dk_dv": "one kernel, shown whole",
    "numba_cute/kernels/attention/backward_wide.py:dq": "one kernel, shown whole",
    "numba_cute/kernels/attention/backward_wide.py:make_keys_kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/backward_wide.py:make_queries_kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/forward.py:kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/forward.py:make_kernel": "one kernel, shown whole",
    "examples/ampere_gemm.py:gemm": "one kernel, shown whole",
    "examples/blackwell_attention.py:kernel": "one kernel, shown whole",
    "examples/blackwell_attention.py:make_kernel": "one kernel, shown whole",
    "examples/blackwell_blockscaled_gemm.py:kernel": "one kernel, shown whole",
    "examples/blackwell_blockscaled_gemm.py:make_kernel": "one kernel, shown whole",
    "examples/blackwell_gemm.py:kernel": "one kernel, shown whole",
    "examples/blackwell_gemm.py:make_kernel": "one kernel, shown whole",
    "examples/experimental_blackwell_gemm.py:make_kernel": "one kernel, shown whole",
    "examples/experimental_blockscaled_gemm.py:gemm": "one kernel, shown whole",
    "examples/experimental_blockscaled_gemm.py:make_kernel": "one kernel, shown whole",
    "examples/experimental_gemm.py:make_kernel": "one kernel, shown whole",
    "examples/experimental_gemm.py:gemm": "one kernel, shown whole",
    "numba_cute/kernels/gemm/grouped.py:grouped": "one kernel, shown whole",
    "numba_cute/kernels/gemm/mixed.py:mixed": "one kernel, shown whole",
    "examples/hopper_mixed_gemm.py:gemm": "one kernel, shown whole",
    "numba_cute/kernels/gemm/dense.py:gemm": "one kernel, shown whole",
    "numba_cute/kernels/gemm/plan.py:arguments": "all that one launch takes, in the kernel's order",
}

# An instruction of PTX at the start of a string or after a brace, semicolon or predicate.
PTX = re.compile(
    r"(^|[;{}\n]|@!?%?\w+)\s*(mbarrier|wgmma|tcgen05|cp\.async|fence|barrier|bar|mapa|setmaxnreg|ldmatrix|stmatrix|elect"
    r"|prefetch|ld|st|mov|mma|red|atom|cvt|griddepcontrol|membar)\.[a-z_0-9:.]+[ \t]*[^;\n]*;"
)


def layer(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert first in MAY_IMPORT, f"{relative(path)} is in no room; give it one, or list it in MAY_IMPORT"
    return first


def imports(path: Path):
    """(absolute module, line) of every import in a file, names imported from a package included."""
    package = ("numba_cute", *path.relative_to(PACKAGE).parts[:-1])
    tree = ast.parse(path.read_text())
    ifs = [n for n in ast.walk(tree) if isinstance(n, ast.If)]
    checks = [n for n in ifs if ast.unparse(n.test).rpartition(".")[2] == "TYPE_CHECKING"]
    never_run = {id(n) for check in checks for n in ast.walk(check)}
    for node in ast.walk(tree):
        if id(node) in never_run:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            for alias in node.names:
                yield f"{module}.{alias.name}", node.lineno


def layer_of_module(module: str) -> str:
    rest = module.split(".")[1:]
    return rest[0] if rest and rest[0] in MAY_IMPORT else FACADE


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_layer_imports_only_what_stands_above_it(path):
    here = layer(path)
    bad = []
    for module, line in imports(path):
        if module.split(".")[0] == "numba_cute":
            there = layer_of_module(module)
            if there != here and there not in MAY_IMPORT[here]:
                bad.append(f"{relative(path)}:{line}: {here} imports {module}")
        elif (relative(path), module.split(".")[0]) in ALLOWED:
            continue
        elif here == "kernels" and module == "numba.cuda":
            continue  # `from numba import cuda`, as its users write
        elif module.split(".")[0] in THIRD_PARTY and here != THIRD_PARTY[module.split(".")[0]]:
            bad.append(f"{relative(path)}:{line}: {module} belongs in {THIRD_PARTY[module.split('.')[0]]}/ only")
        elif here in ("seam", "layout") and module.split(".")[0] not in sys.stdlib_module_names:
            bad.append(f"{relative(path)}:{line}: {here} uses the standard library only, not {module}")
    assert not bad


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def file_of(module: str) -> str:
    """The file's module that an import reaches: the name itself may be a function's or a class's."""
    while module not in MODULES:
        module = module.rpartition(".")[0]
    return module


MODULES = {module_of(path): path for path in SOURCES}


def own_imports(path: Path) -> set[str]:
    """The files of this package that a file imports."""
    return {file_of(m) for m, _ in imports(path) if m.startswith("numba_cute")} - {module_of(path)}


def test_no_files_import_each_other_in_a_circle():
    assert len(MODULES) > 250
    TopologicalSorter({m: own_imports(path) for m, path in MODULES.items()}).prepare()  # a CycleError shows the circle


@pytest.mark.parametrize("path", [p for p in SOURCES if layer(p) in CORE], ids=relative)
def test_functions_of_the_core_import_no_file_of_this_package(path):
    tree = ast.parse(path.read_text())
    nested = [n for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)]
    bad = [n.lineno for n in nested if isinstance(n, ast.ImportFrom) and (n.level or n.module.startswith("numba_cute"))]
    assert not bad


def imports_within(part: str) -> dict[str, set[str]]:
    """The files of a part of this package, as "ground/errors", and those of it that each imports."""
    start = f"numba_cute.{part}."
    files = {m: p for m, p in MODULES.items() if m.startswith(start)}
    name = {m: p.relative_to(PACKAGE / part).with_suffix("").as_posix() for m, p in files.items()}
    return {name[m]: {name[t] for t in own_imports(p) & files.keys()} for m, p in files.items()}


# The simulator's rooms, each of which imports those above it only; those of one line do not import each other.
SIM_ROOMS = (
    ("ground",),  # errors, vector clocks, accesses
    ("python/arithmetic",),  # Numba's numbers, of one lane and of several
    ("hardware",),  # the machine, and the events that it tells
    ("python",),  # what stands for numba.cuda and for arrays, and answers traced code
    ("python/jitted", "checks", "lanes"),  # code rewritten; what watches the machine; lanes that run together
    (".",),  # launches
)


def sim_room(file: str) -> tuple[int, str]:
    """The line of SIM_ROOMS on which the room of a file of sim/ stands, and the room."""
    at = {room: line for line, rooms in enumerate(SIM_ROOMS) for room in rooms}
    room = next((r for r in sorted(at, key=len, reverse=True) if file.startswith(r + "/")), ".")
    return at[room], room


def test_rooms_of_the_simulator_stand_in_order():
    bad = []
    for file, targets in imports_within("sim").items():
        here, room = sim_room(file)
        for there, other, imported in ((*sim_room(t), t) for t in targets):
            if room != other and there >= here:
                bad.append(f"sim/{file} ({room}) imports sim/{imported} ({other})")
    assert not bad


def strings(path: Path):
    """Every string constant of a file that is no docstring."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {id(n.body[0].value) for n in ast.walk(tree)
            if isinstance(n, documented) and n.body and isinstance(n.body[0], ast.Expr)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value, node.lineno


@pytest.mark.parametrize("path", [p for p in SOURCES if layer(p) != "isa"], ids=relative)
def test_ptx_text_stands_only_in_the_instruction_table(path):
    bad = [f"{relative(path)}:{line}: {text!r}" for text, line in strings(path) if PTX.search(text)]
    assert not bad


def test_ptx_pattern_finds_an_instruction_and_no_prose():
    assert PTX.search("mbarrier.arrive.shared::cta.b64 _, [$0];")
    assert PTX.search("{ .reg .pred p; wgmma.fence.sync.aligned; }")
    assert not PTX.search("add a fence.proxy.async before the TMA store")


@pytest.mark.parametrize(
    "path", [*SOURCES, *sorted((ROOT / "examples").glob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))], ids=relative
)
def test_size_budgets_and_licence_header(path):
    text = path.read_text()
    lines = text.splitlines()
    if lines:
        assert lines[0] == "# SPDX-License-Identifier: Apache-2.0", f"{relative(path)} lacks the SPDX header"
    assert len(lines) <= MAX_FILE_LINES or relative(path) in LONG_FILES, f"{relative(path)}: {len(lines)} lines"
    bad = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES and f"{relative(path)}:{node.name}" not in LONG_FUNCTIONS:
                bad.append(f"{relative(path)}:{node.lineno}: {node.name} has {length} lines")
    assert not bad


def test_exceptions_to_the_budgets_are_still_needed():
    stale = [name for name in LONG_FILES if len((ROOT / name).read_text().splitlines()) <= MAX_FILE_LINES]
    for entry in LONG_FUNCTIONS:
        file, name = entry.split(":")
        tree = ast.parse((ROOT / file).read_text())
        spans = [n.end_lineno - n.lineno + 1 for n in ast.walk(tree) if getattr(n, "name", "") == name]
        if not any(s > MAX_FUNCTION_LINES for s in spans):
            stale.append(entry)
    assert not stale


# The rooms of seam/ and compiler/, and the rooms beside it that each may import. The loose files stand above them all.
SEAM_ROOMS: dict[str, set[str]] = {
    "ground": set(),
    "marks": {"ground"},
    "hooks": {"ground"},
    "source": {"ground", "marks"},
    "guards": {"ground", "marks"},
    "": {"ground", "marks"},
}
COMPILER_ROOMS: dict[str, set[str]] = {
    "ground": set(),
    "emit": {"ground"},
    "bridge": {"ground", "emit"},
    "passes": {"ground", "emit", "bridge"},
    "host/native": {"ground", "emit", "bridge"},
    "host": {"ground", "emit", "bridge", "host/native"},
    "inspection": {"ground", "emit", "bridge", "host"},
    "": {"ground", "emit", "bridge", "passes", "host", "host/native", "inspection"},
}


@pytest.mark.parametrize(
    "part, allowed", [("seam", SEAM_ROOMS), ("compiler", COMPILER_ROOMS)], ids=lambda x: str(x)[:8]
)
def test_rooms_import_only_what_stands_below_them(part, allowed):
    bad = []
    for file, targets in imports_within(part).items():
        here = file.rpartition("/")[0]
        rooms = {t.rpartition("/")[0] for t in targets} - {here}
        bad += [f"{file} imports {room or 'a loose file'}" for room in rooms - allowed[here]]
    assert not bad
