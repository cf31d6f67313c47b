# SPDX-License-Identifier: Apache-2.0
"""A kernel with its inputs, to be run in the simulator and on a GPU, and how their results must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from numba_cute import dtypes, recast_tensor, seam, simulate
from numba_cute.isa.form.instr import Instr, supports
from numba_cute.isa.form.kinds import Kind
from numba_cute.runtime import from_dlpack
from numba_cute.seam import Regs
from numba_cute.tensor.ssa import bitcast

from ...conftest import POISON, Gpu, Places, poison

Uint16, Uint32, Uint64 = dtypes.Uint16, dtypes.Uint32, dtypes.Uint64
Arrays = dict[str, np.ndarray]


def exactly(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Bit for bit."""
    bad = np.argwhere(ours != theirs)
    assert bad.size == 0, (
        f"{name}: {len(bad)} of {ours.size} words differ; the first at {tuple(bad[0])}: simulator "
        f"{int(ours[tuple(bad[0])]):#x}, GPU {int(theirs[tuple(bad[0])]):#x}"
    )


@dataclass(frozen=True)
class Program:
    """name; kernel, a @cuda.jit function that takes the arrays as tensors of Uint32 (and then what `extra` makes of
    `place` and the arrays); inputs and outputs, arrays of uint32 by name, in the order of the arguments; those of
    `changed` are read and written. agree: how an output of the simulator and the GPU are compared.
    rows: those that it is there for."""

    name: str
    kernel: Any
    inputs: Arrays
    outputs: Arrays
    grid: Any = 1
    block: int = 128
    cluster: Any = None
    smem: int = 0
    changed: tuple[str, ...] = ()
    extra: Callable[[Arrays], list[Any]] | None = None
    agree: dict[str, Callable[[str, np.ndarray, np.ndarray], None]] = field(default_factory=dict)
    rows: frozenset[str] = frozenset()

    def run(self, way: Any) -> Arrays:
        """The outputs (and changed inputs) after a run; the program's own arrays are left as they are."""
        arrays = {n: a.copy() for n, a in (*self.inputs.items(), *self.outputs.items())}
        args: list[Any] = [tensor(a) for a in arrays.values()]
        if self.extra is not None:
            args += self.extra(arrays)
        outs, inouts = [arrays[n] for n in self.outputs], [arrays[n] for n in self.changed]
        way(self.kernel, self.grid, self.block, args, outputs=outs, inouts=inouts, cluster=self.cluster, smem=self.smem)
        return {n: arrays[n] for n in (*self.outputs, *self.changed)}

    def compare(self, ours: Arrays, theirs: Arrays) -> None:
        for n in ours:
            self.agree.get(n, exactly)(f"{self.name}, {n}", ours[n], theirs[n])


@dataclass(frozen=True)
class Simulated:
    arrays: Arrays
    issued: frozenset[str]


@contextmanager
def recorded() -> Iterator[set[str]]:
    """The names of all rows whose bodies run meanwhile."""
    names: set[str] = set()
    perform = Instr.perform

    def recording(self: Instr, m: Any, case: Any, values: Any) -> Any:
        names.add(self.name)
        return perform(self, m, case, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Instr, "perform", recording)
        yield names


_RESULTS: dict[str, Simulated] = {}


class Unchecked:
    """The simulator at its fastest: what is compared are results; hazards have tests of their own."""

    def __call__(self, kernel: Any, grid: Any, block: Any, args: list[Any], **how: Any) -> None:
        for out in how["outputs"]:
            poison(out)  # as on the GPU: words that no row writes are the same on both
        placed = Places(lambda a: a).arguments(args)
        simulate(kernel, cluster=how["cluster"], arch="sm_90a", checks=False)[grid, block, 0, how["smem"]](*placed)


def simulated(program: Program) -> Simulated:
    """The program's results in the simulator, and the rows that it issued there. It runs once."""
    found = _RESULTS.get(program.name)
    if found is None:
        with recorded() as names:
            arrays = program.run(Unchecked())
        found = _RESULTS[program.name] = Simulated(arrays, frozenset(names))
    return found


def written(array: np.ndarray) -> bool:
    """Whether a run wrote any word of an output: neither poison nor zero."""
    return bool(((array != POISON * 0x01010101) & (array != 0)).any())


def on_gpu(program: Program) -> Arrays:
    return program.run(Gpu())


def tensor(array: np.ndarray) -> Any:
    return lambda place: recast_tensor(from_dlpack(place(array)), Uint32)


# ------------------------------------------------------------------ words and operands

WORDS = {"u64": 2, "f64": 2, "gmem": 2, "tmap": 2}
"""32-bit words of an operand that takes more than one."""
REGISTERS = {"u32": dtypes.Uint32, "s32": dtypes.Int32, "f32": dtypes.Float32, "f64": dtypes.Float64}


def words_of(kind: Kind) -> int:
    return WORDS.get(kind.name, 1)


def from_words(kind: Kind, words: list[Any]) -> Any:
    """An operand of the kind from its words."""
    if kind.name == "u16":
        return Uint16(words[0])
    if kind.name == "pred":
        return seam.current().compare("!=", words[0], 0)
    if kind.name == "f32":
        return bitcast(words[0], Uint32, dtypes.Float32)
    if words_of(kind) == 2:
        wide = Uint64(words[0]) | Uint64(words[1]) << 32
        return bitcast(wide, Uint64, dtypes.Float64) if kind.name == "f64" else wide
    return words[0]


def to_words(kind: Kind, value: Any) -> list[Any]:
    """The words of a result of the kind."""
    if kind.name == "u16":
        return [Uint32(value) & 0xFFFF]
    if kind.name == "f32":
        return [bitcast(value, dtypes.Float32, Uint32)]
    if words_of(kind) == 2:
        wide = bitcast(value, dtypes.Float64, Uint64) if kind.name == "f64" else Uint64(value)
        return [Uint32(wide), Uint32(Uint64(wide) >> 32)]
    return [Uint32(value)]


def flat(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [leaf for part in x for leaf in flat(part)]
    return [] if x is None else [x]


@dataclass
class Issue:
    """One row in one case: the words that are its operands, by operand, and where its results go."""

    row: Instr
    case: dict[str, Any]
    inputs: dict[str, int]
    """The first column of each operand's words."""
    output: int
    """The first column of the results."""

    def operands(self, words: Callable[[int], Any]) -> tuple[dict[str, Any], dict[str, Regs]]:
        """The operands, and those that are read and written, in registers."""
        b, values, files = seam.current(), {}, {}
        for o in self.row.operands_in(self.case):
            if o.name not in self.inputs:
                continue
            at, step = self.inputs[o.name], words_of(o.kind)
            given = [
                from_words(o.kind, [words(at + i * step + j) for j in range(step)]) for i in range(o.size(self.case))
            ]
            if o.reads and o.writes:
                dtype = REGISTERS[o.kind.name]
                span = Regs(b.registers(dtype, len(given)), dtype, 0, len(given))
                for i, v in enumerate(given):
                    b.write(Regs(span.file, dtype, i, 1), v)
                files[o.name] = values[o.name] = span
            else:
                values[o.name] = given if o.count is not None else given[0]
        return values, files

    def issue(self, words: Callable[[int], Any], store: Callable[[int, Any], None], **more: Any) -> None:
        """Issue it and store its results."""
        values, files = self.operands(words)
        given = self.row(**values, **more, **self.case)
        self.keep(given, files, store)

    def keep(self, given: Any, files: dict[str, Regs], store: Callable[[int, Any], None]) -> None:
        b, at, leaves = seam.current(), self.output, iter(flat(given))
        for o in self.row.operands_in(self.case):
            if not o.writes:
                continue
            for i in range(o.size(self.case)):
                if o.name in files:
                    value = b.read(Regs(files[o.name].file, files[o.name].dtype, i, 1))
                else:
                    value = next(leaves)
                for word in to_words(o.kind, value):
                    store(at, word)
                    at += 1


def forms_for(row: Instr, arch: str) -> list[tuple[dict[str, Any], tuple[str, ...]]]:
    """The cases that a target has, each with each set of optional operands."""
    return [(c, given) for c, given in row.forms() if all(supports(arch, t) for t in row.needs(c, given))]


def result_kinds(row: Instr, case: dict[str, Any]) -> list[Kind]:
    """The kind of each result, in order."""
    return [o.kind for o in row.operands_in(case) if o.writes for _ in range(o.size(case))]


def agreement(columns: list[tuple[str, Kind, Any]]) -> Callable[[str, np.ndarray, np.ndarray], None]:
    """A comparison of results side by side. columns: for each the row's name, its kind, and None (bit for bit, one NaN
    being as good as another) or a function of (ours, theirs) that says where they disagree."""

    def compare(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
        at, wrong = 0, []
        for row, kind, close in columns:
            n = words_of(kind)
            x, y = (np.ascontiguousarray(a[:, at : at + n]) for a in (ours, theirs))
            at += n
            bad = disagree(kind, x, y) if close is None else close(x, y)
            if bad.any():
                i = int(np.flatnonzero(bad)[0])
                wrong.append(f"{row}: {int(bad.sum())} of {bad.size}, lane {i}: {x[i].tolist()} here, {y[i].tolist()}")
        assert not wrong, f"{name}: simulator and GPU differ (words)\n  " + "\n  ".join(wrong[:40])

    return compare


def disagree(kind: Kind, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bad = (x != y).any(1)
    if kind.name in ("f32", "f64"):
        floats = np.float32 if kind.name == "f32" else np.float64
        bad &= ~(np.isnan(x.view(floats)) & np.isnan(y.view(floats))).ravel()
    return bad
