# SPDX-License-Identifier: Apache-2.0
"""The layer rules of docs/architecture.md, and the size budgets."""

from __future__ import annotations

import ast
import functools
import re
import sys
from dataclasses import dataclass, field
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
    "promotion": {"seam", "dtypes"},
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
    "notebooks": GROUND | {"tensor", "atoms", "utils"},
    "results": GROUND | {"tensor", "math", "atoms", "nvgpu"},
    "inspecting": {"seam", "compiler"},
    "compiler": GROUND | {"config", "isa", "promotion", "typed"},
    "sim": GROUND | {"config", "isa", "promotion", "typed"},
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
# And pictures.
MAY_IMPORT["pictures"] = GROUND | {"isa", "tensor", "atoms", "utils"}
# And what debugs kernels on a GPU: it compiles and launches, and reports as the simulator does.
MAY_IMPORT["debugging"] = GROUND | {"tensor", "compiler", "sim"}
# And kernels, written as users write theirs.
MAY_IMPORT["kernels"] = {FACADE, *MAY_IMPORT[FACADE]} - {"compiler", "sim"}
# And NVIDIA's names for all of it.
MAY_IMPORT["compat"] = {FACADE, *MAY_IMPORT[FACADE], "testing"}
MAY_IMPORT["cli"] = {FACADE, "seam", "isa", "dtypes", "config", "ir", "inspecting", "compiler", "sim", "compat"}
MAY_IMPORT["__main__"] = {FACADE, "seam", "cli"}

THIRD_PARTY = {
    "cuda": "compiler",
    "greenlet": "sim",
    "xdsl": "ir",
}

# The files that import numba, numba-cuda and llvmlite, by the longest name that fits: all others take names from them.
SEAM_OF_NUMBA = {
    "numba": ("numba_cute/compiler/ground/numba.py",),
    "numba.cuda": ("numba_cute/compiler/ground/numba_cuda.py", "numba_cute/compiler/ground/numba.py"),
    "numba_cuda": (),
    "numba_cuda_mlir": (),  # it is met when a program imports it (compiler/mlir.py)
    "llvmlite": ("numba_cute/compiler/ground/llvmlite.py",),
}

ALLOWED = {
    ("numba_cute/utils/hardware_info.py", "cuda"): "it asks the driver what the GPU has; imported when called",
    ("numba_cute/compat/launch_errors.py", "cuda"): "NVIDIA's files ask for the runtime's code of an error",
    ("numba_cute/compat/on_host.py", "cuda"): "it stands for the driver where there is no GPU",
    ("numba_cute/compat/cutlass/driver.py", "cuda"): "NVIDIA's files have the driver's streams and errors",
    ("numba_cute/compat/cutlass/torch.py", "cuda"): "NVIDIA's files have the driver's streams",
}

MAX_FILE_LINES, MAX_FUNCTION_LINES = 500, 60
LICENCE = "# SPDX-License-Identifier: Apache-2.0"
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {
    "numba_cute/kernels/attention/backward.py:kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/backward.py:make_kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/backward_wide.py:dk_dv": "one kernel, shown whole",
    "numba_cute/kernels/attention/backward_queries.py:dq": "one kernel, shown whole",
    "numba_cute/kernels/attention/backward_wide.py:make_keys_kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/backward_queries.py:make_queries_kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/forward.py:kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/forward.py:make_kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/latent.py:kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/latent.py:make_kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/umma.py:kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/umma.py:make_kernel": "one kernel, shown whole",
    "numba_cute/kernels/attention/warps.py:make_forward": "one kernel, shown whole",
    "numba_cute/kernels/attention/warps.py:attention": "one kernel, shown whole",
    "numba_cute/kernels/attention/warps_backward.py:make_queries": "one kernel, shown whole",
    "numba_cute/kernels/attention/warps_backward.py:gradient_of_queries": "one kernel, shown whole",
    "numba_cute/kernels/attention/warps_backward.py:make_keys": "one kernel, shown whole",
    "numba_cute/kernels/attention/warps_backward.py:gradients_of_keys": "one kernel, shown whole",
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
    "numba_cute/kernels/gemm/grouped_outer.py:outer": "one kernel, shown whole",
    "numba_cute/kernels/gemm/mixed.py:mixed": "one kernel, shown whole",
    "examples/hopper_mixed_gemm.py:gemm": "one kernel, shown whole",
    "numba_cute/kernels/gemm/dense.py:gemm": "one kernel, shown whole",
    "numba_cute/kernels/gemm/umma.py:multiply": "one kernel, shown whole",
    "numba_cute/kernels/gemm/umma_grouped.py:grouped": "one kernel, shown whole",
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


@dataclass
class File:
    """What a file holds that rules are about, each with its line. imports: absolute modules, with names imported from a
    package, but for those that types alone need. nested: imports of this package by a function. strings: those that are
    no docstrings. functions: their names, with their lengths too."""

    lines: list[str]
    imports: list[tuple[str, int]] = field(default_factory=list)
    nested: list[int] = field(default_factory=list)
    strings: list[tuple[str, int]] = field(default_factory=list)
    functions: list[tuple[str, int, int]] = field(default_factory=list)


@functools.cache
def read(path: Path) -> File:
    """Read a file once, for all rules."""
    text = path.read_text()
    file = File(text.splitlines())
    _walk(ast.parse(text), file, package_of(path), False, False)
    return file


def package_of(path: Path) -> tuple[str, ...]:
    return ("numba_cute", *path.relative_to(PACKAGE).parts[:-1]) if path.is_relative_to(PACKAGE) else ()


def _walk(node: ast.AST, file: File, package: tuple[str, ...], inside: bool, typing: bool) -> None:
    """Note what a node and those below it are. inside: of a function; typing: under TYPE_CHECKING."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        if not typing:
            file.imports += ((m, node.lineno) for m in imported(node, package))
        if inside and isinstance(node, ast.ImportFrom) and (node.level or node.module.startswith("numba_cute")):
            file.nested.append(node.lineno)
        return
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            file.strings.append((node.value, node.lineno))
        return
    below = children(node)
    if isinstance(node, ast.FunctionDef):
        file.functions.append((node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1))
        inside = True
    elif isinstance(node, ast.If):
        typing = typing or names_type_checking(node.test)
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body:
        if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
            below.remove(node.body[0])  # its docstring
    for part in below:
        _walk(part, file, package, inside, typing)


BARREN = (ast.Name, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below one, but for those that hold none; ast.iter_child_nodes takes twice as long."""
    below: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            below += [v for v in value if isinstance(v, ast.AST) and not isinstance(v, BARREN)]
        elif isinstance(value, ast.AST) and not isinstance(value, BARREN):
            below.append(value)
    return below


def names_type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def imported(node: ast.Import | ast.ImportFrom, package: tuple[str, ...]) -> list[str]:
    """Give the absolute names that an import imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
    module = ".".join(filter(None, (base, node.module)))
    return [f"{module}.{alias.name}" for alias in node.names]


def layer_of_module(module: str) -> str:
    rest = module.split(".")[1:]
    return rest[0] if rest and rest[0] in MAY_IMPORT else FACADE


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_layers_import_only_what_stands_above_them():
    assert [fault for path in SOURCES for fault in faults_of_layer(path)] == []


def faults_of_layer(path: Path) -> list[str]:
    here = layer(path)
    bad = []
    for module, line in read(path).imports:
        if module.split(".")[0] == "numba_cute":
            there = layer_of_module(module)
            if there != here and there not in MAY_IMPORT[here]:
                bad.append(f"{relative(path)}:{line}: {here} imports {module}")
        elif (relative(path), module.split(".")[0]) in ALLOWED:
            continue
        elif here == "kernels" and module == "numba.cuda":
            continue  # `from numba import cuda`, as its users write
        elif not in_seam_of_numba(relative(path), module):
            bad.append(f"{relative(path)}:{line}: {module} belongs in compiler/ground/ only, in the file named so")
        elif module.split(".")[0] in THIRD_PARTY and here != THIRD_PARTY[module.split(".")[0]]:
            bad.append(f"{relative(path)}:{line}: {module} belongs in {THIRD_PARTY[module.split('.')[0]]}/ only")
        elif here in ("seam", "layout") and module.split(".")[0] not in sys.stdlib_module_names:
            bad.append(f"{relative(path)}:{line}: {here} uses the standard library only, not {module}")
    return bad


def in_seam_of_numba(file: str, module: str) -> bool:
    """Say whether a file may import a module as far as it is of numba or llvmlite."""
    names = [n for n in SEAM_OF_NUMBA if f"{module}.".startswith(f"{n}.")]
    return not names or file in SEAM_OF_NUMBA[max(names, key=len)]


def test_numba_and_llvmlite_have_a_file_each():
    ground, other = "numba_cute/compiler/ground", "numba_cute/compiler/bridge/values.py"
    assert in_seam_of_numba(f"{ground}/numba_cuda.py", "numba.cuda.types")
    assert in_seam_of_numba(f"{ground}/llvmlite.py", "llvmlite.ir")
    assert in_seam_of_numba(other, "numbaish") and in_seam_of_numba(other, "numpy")
    for module in ("numba", "numba.core.errors", "numba.cuda.types", "numba_cuda", "llvmlite.ir"):
        assert not in_seam_of_numba(other, module)
    assert not in_seam_of_numba(f"{ground}/numba_cuda.py", "numba.core.types")


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
    return {file_of(m) for m, _ in read(path).imports if m.startswith("numba_cute")} - {module_of(path)}


def test_no_files_import_each_other_in_a_circle():
    assert len(MODULES) > 250
    TopologicalSorter({m: own_imports(path) for m, path in MODULES.items()}).prepare()  # a CycleError shows the circle


def test_functions_of_the_core_import_no_file_of_this_package():
    core = [path for path in SOURCES if layer(path) in CORE]
    assert [f"{relative(path)}:{line}" for path in core for line in read(path).nested] == []


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
    (
        "python/jitted",
        "checks",
        "prove",
        "exploring",
        "lanes",
    ),  # code rewritten; what watches the machine; orders; lanes
    (".",),  # launches
)


# Those of the IR.
IR_ROOMS = (
    ("dialect",),  # the one that NVIDIA published
    ("text",),  # types and attributes of this library, read and written
    ("library",),  # its operations, each a call
    ("publish",),  # calls as published operations, and back
    ("module",),
    ("passes", "python", "from_kernels"),  # one module to another, to Python, and of what Numba has typed
    ("lift",),  # kernels of modules that the CuTe DSL prints
    (".",),  # kernels of modules
)


def room_of(file: str, rooms: tuple[tuple[str, ...], ...]) -> tuple[int, str]:
    """The line of a part's rooms on which the one of its file stands, and the room."""
    at = {room: line for line, those in enumerate(rooms) for room in those}
    room = next((r for r in sorted(at, key=len, reverse=True) if f"{file}/".startswith(r + "/")), ".")
    return at[room], room


@pytest.mark.parametrize("part, rooms", [("sim", SIM_ROOMS), ("ir", IR_ROOMS)], ids=["sim", "ir"])
def test_rooms_inside_a_part_stand_in_order(part, rooms):
    bad = []
    for file, targets in imports_within(part).items():
        here, room = room_of(file, rooms)
        for there, other, imported in ((*room_of(t, rooms), t) for t in targets):
            if room != other and there >= here:
                bad.append(f"{part}/{file} ({room}) imports {part}/{imported} ({other})")
    assert not bad


def test_the_published_dialect_stands_on_the_algebra_alone():
    room = [p for p in SOURCES if p.is_relative_to(PACKAGE / "ir" / "dialect")]
    below = ("numba_cute.ir.dialect", "numba_cute.layout", "numba_cute.seam")
    bad = [f"{relative(p)} imports {m}" for p in room for m in own_imports(p) if not f"{m}.".startswith(below)]
    assert len(room) > 20
    assert not bad


def test_ptx_text_stands_only_in_the_instruction_table():
    # inline assembly that one recognises, and what the other writes beside a kernel's
    known = PACKAGE / "ir" / "lift" / "machine.py", PACKAGE / "debugging" / "pieces.py"
    files = [path for path in SOURCES if layer(path) != "isa" and path not in known]
    others = [(path, *string) for path in files for string in read(path).strings]
    assert [f"{relative(path)}:{line}: {text!r}" for path, text, line in others if PTX.search(text)] == []


def test_ptx_pattern_finds_an_instruction_and_no_prose():
    assert PTX.search("mbarrier.arrive.shared::cta.b64 _, [$0];")
    assert PTX.search("{ .reg .pred p; wgmma.fence.sync.aligned; }")
    assert not PTX.search("add a fence.proxy.async before the TMA store")


ALL = [*SOURCES, *sorted((ROOT / "examples").glob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]


EXAMPLE = re.compile(r'\n\n *>>> .*?\n *"""', re.DOTALL)


def without_examples(lines: list[str]) -> int:
    """How many lines there are beside the examples of docstrings, which are for readers of help() and the reference."""
    return len(EXAMPLE.sub('"""', "\n".join(lines)).splitlines())


def test_files_have_their_licence_and_few_lines():
    bad = [f"{relative(p)}: lacks the SPDX header" for p in ALL if read(p).lines[:1] not in ([], [LICENCE])]
    sizes = {relative(path): without_examples(read(path).lines) for path in ALL}
    bad += [f"{name}: {n} lines" for name, n in sizes.items() if n > MAX_FILE_LINES and name not in LONG_FILES]
    assert not bad


def long_functions() -> dict[str, str]:
    """Every function that is too long beside the examples of its docstring, by file and name: how long it is."""
    found = {}
    for path in ALL:
        for name, line, n in read(path).functions:
            if n > MAX_FUNCTION_LINES:
                n = without_examples(read(path).lines[line - 1 : line - 1 + n])
            if n > MAX_FUNCTION_LINES:
                found[f"{relative(path)}:{name}"] = f"line {line}, {n} lines"
    return found


def test_functions_have_few_lines():
    assert {name: size for name, size in long_functions().items() if name not in LONG_FUNCTIONS} == {}


def test_exceptions_to_the_budgets_are_still_needed():
    assert [name for name in LONG_FILES if len(read(ROOT / name).lines) <= MAX_FILE_LINES] == []
    assert LONG_FUNCTIONS.keys() - long_functions().keys() == set()


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
