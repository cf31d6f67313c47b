# SPDX-License-Identifier: Apache-2.0
"""Writing the cases of rows as PTX kernels, and assembling them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import pytest

from numba_cute.isa.form.assembly import Assembly
from numba_cute.isa.form.instr import Instr, supports

OLDEST = 75
"""The least target that the assembler of CUDA 13 has; rows for older ones assemble for it."""
_SLOT = re.compile(r"\$(\d+)")


@cache
def find_ptxas() -> str | None:
    """The assembler of the nvidia-cuda-nvcc wheel, or of the PATH."""
    spec = find_spec("nvidia")
    for root in spec.submodule_search_locations if spec else ():
        for path in sorted(Path(root).glob("*/bin/ptxas")):
            return str(path)
    return shutil.which("ptxas")


@cache
def ptx_version() -> str:
    """The PTX version that the assembler knows: CUDA 13.x is PTX 9.x, CUDA 12.x is PTX 8.x."""
    text = subprocess.run([find_ptxas(), "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = map(int, re.search(r"release (\d+)\.(\d+)", text).groups())
    return f"{major - 4}.{minor}"


def entry(asms: list[Assembly], name: str) -> str:
    """A kernel that loads the inputs from memory, issues cases that have the same operands, and stores the outputs."""
    asm, lines = asms[0], []
    slots = [f"%o{i}" for i in range(len(asm.outputs))]
    for operand, index in asm.inputs:
        slots.append(slots[asm.outputs.index((operand, index))] if operand.writes else f"%i{len(slots)}")
    registers = dict(zip(slots, [operand.kind.ptx for operand, _ in asm.outputs + asm.inputs]))
    lines += [f".reg {ptx} {register};" for register, ptx in registers.items()]
    inputs = slots[len(asm.outputs) :]
    lines += [f"ld.global{registers[r]} {r}, [%base+{8 * i}];" for i, r in enumerate(inputs)]
    lines += [_SLOT.sub(lambda m: slots[int(m.group(1))], a.text) for a in asms]
    lines += [f"st.global{registers[r]} [%base+{8 * i}], {r};" for i, r in enumerate(slots[: len(asm.outputs)])]
    head = f".visible .entry {name}(.param .b64 p) .maxntid 128 .minnctapersm 1 {{\n"
    return head + ".reg .b64 %base; ld.param.b64 %base, [p];\n" + "\n".join(lines) + "\nret; }\n"


Form = tuple[dict, tuple[str, ...]]
"""A case, and those of the operands that may be absent that are there (`Instr.forms`)."""


def pairwise(forms: Iterable[Form]) -> list[Form]:
    """Forms that hold every pair of values that two parameters have together in some form; whether an operand is there
    is a parameter too."""
    forms = list(forms)
    names = sorted({name for _, given in forms for name in given})
    seen: set[tuple] = set()
    kept = []
    for case, given in forms:
        said = sorted((k, repr(v)) for k, v in case.items()) + [(name, name in given) for name in names]
        pairs = set(combinations(said, 2)) or {tuple(said)}
        if not pairs <= seen:
            seen |= pairs
            kept.append((case, given))
    return kept


def arch_of(needs: tuple[str, ...], which: int = 0) -> str:
    """The target to assemble a form for that needs these, of the alternatives of a family the one at `which`."""
    chosen = [targets[min(which, len(targets) - 1)] for targets in (n.split("|") for n in needs)]
    arch = next(a for a in chosen if all(supports(a, n) for n in needs))
    return arch if int(re.sub(r"\D", "", arch)) >= OLDEST else f"sm_{OLDEST}"


def by_arch(row: Instr, forms: Iterable[Form], which: int = 0) -> dict[str, list[Form]]:
    """The forms of a row by the target to assemble them for."""
    found: dict[str, list[Form]] = {}
    for case, given in forms:
        found.setdefault(arch_of(row.needs(case, given), which), []).append((case, given))
    return found


def entries(row: Instr, forms: Iterable[Form]) -> str:
    """Kernels with forms of a row; those with the same operands share one, for speed (but a kernel has only one tcgen05
    CTA group)."""
    alike: dict[tuple, list[Assembly]] = {}
    for case, given in forms:
        asm = row.assembly(case, given)
        alike.setdefault((asm.outputs, asm.inputs, case.get("cta_group")), []).append(asm)
    return "".join(entry(asms, f"{row.name}_{i}") for i, asms in enumerate(alike.values()))


def assemble(target: str, row: Instr, forms: Iterable[Form], folder: Path) -> str:
    """Assemble forms of a row; gives what the assembler said against it, or nothing."""
    source = folder / f"{target}.ptx"
    source.write_text(f".version {ptx_version()}\n.target {target}\n.address_size 64\n{entries(row, forms)}")
    command = [find_ptxas(), "-O1", f"-arch={target}", str(source), "-o", str(folder / "out.cubin")]
    done = subprocess.run(command, capture_output=True, text=True)
    if "is not defined for option 'gpu-name'" in done.stderr:
        pytest.skip(f"this ptxas has no {target}")
    return "" if done.returncode == 0 else done.stdout + done.stderr
