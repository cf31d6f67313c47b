# SPDX-License-Identifier: Apache-2.0
"""Run a text of PTX in the simulator, one instruction after the other.

`meaning(text)` gives a function of the numbers that the text reads; each instruction in `_OPERATIONS` is a function of
this library. PTX ISA, "Instruction Set".
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import arch, isa, math
from ..dtypes import (
    BFloat16,
    DType,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
)  # fmt: skip
from ..seam import CuteError, current
from ..tensor.pointer import AddressSpace, make_ptr
from ..tensor.ssa import bitcast

_TYPES = {
    "s16": Int16, "u16": Uint16, "b16": Uint16, "f16": Float16, "bf16": BFloat16, "s32": Int32, "u32": Uint32,
    "b32": Uint32, "f32": Float32, "s64": Int64, "u64": Uint64, "b64": Uint64, "f64": Float64,
}  # fmt: skip
_NARROW = {"e4m3x2": Float8E4M3FN, "e5m2x2": Float8E5M2, "f16x2": Float16, "bf16x2": BFloat16}
_UNSIGNED: dict[int, Any] = {8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}
_TOKEN = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|[^,\s][^,]*")


class Step(NamedTuple):
    """An instruction. words: its name, taken apart at the dots. operands: as they stand in the text. guard: the
    predicate before it, as "p" or "!p"; None for none."""

    words: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str | None = None


class Program(NamedTuple):
    """A text taken apart. steps: its instructions. labels: the instruction that each stands before. own: the registers
    that end with the text; those that it declares outside of braces stay."""

    steps: tuple[Step, ...]
    labels: dict[str, int]
    own: frozenset[str]


_LABEL = re.compile(r"\s*([A-Za-z_$%][\w$]*)\s*:(?!:)")
_DECLARED = re.compile(r"\.reg\s+\.\w+\s+(.*)", re.S)


@functools.lru_cache(maxsize=256)
def program(text: str) -> Program:
    """Take a text apart."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S).strip()
    braces = plain.startswith("{") and plain.endswith("}")
    plain = plain[1:-1] if braces else plain
    found: list[Step] = []
    labels: dict[str, int] = {}
    own: set[str] = set()
    for statement in plain.split(";"):
        while (label := _LABEL.match(statement)) is not None:
            labels[label[1]] = len(found)
            statement = statement[label.end() :]
        statement = " ".join(statement.split())
        declared = _DECLARED.match(statement)
        if declared is not None:
            own |= _names(declared[1]) if braces else set()
        elif statement:
            found.append(_step(statement))
    return Program(tuple(found), labels, frozenset(own))


def _step(statement: str) -> Step:
    guard = None
    if statement.startswith("@"):
        guard, _, statement = statement[1:].partition(" ")
    name, _, rest = statement.partition(" ")
    return Step(tuple(name.split(".")), tuple(t.strip() for t in _TOKEN.findall(rest)), guard)


def _names(declared: str) -> set[str]:
    """Return the registers that a declaration names: `x<3>` is x0, x1 and x2."""
    found: set[str] = set()
    for name in map(str.strip, declared.split(",")):
        several = re.fullmatch(r"(.*)<(\d+)>", name)
        found |= {f"{several[1]}{i}" for i in range(int(several[2]))} if several else {name}
    return found


def _unknown(what: str, text: str) -> CuteError:
    return CuteError(
        f"inline_asm: the simulator knows no {what!r} of {text!r}: call the function of cute.arch or cute.math that "
        "does it, or cute.arch.inline_ptx with a meaning="
    )


def meaning(text: str, writes: Sequence[DType]) -> Callable[..., Any]:
    """Return what a text does: a function of the numbers that it reads, which gives those that it writes.

    text: PTX, whose `$0`, `$1`, … are what it writes and then what it reads. writes: the types of what it writes.
    CuteError, when it is called: an instruction that is not known here.
    """

    def run(*read: Any) -> Any:
        plan = program(text)
        registers = _Registers({f"${len(writes) + i}": x for i, x in enumerate(read)}, plan.own)
        at = 0
        while at < len(plan.steps):
            step = plan.steps[at]
            at += 1
            holds = step.guard is None or registers.predicate(step.guard)
            if step.words[0] != "bra":
                current().when(holds, functools.partial(_do, registers, step, text))
            elif holds:
                at = plan.labels[step.operands[0]]
        made = tuple(as_type(registers.held[f"${i}"], t) for i, t in enumerate(writes))
        return made[0] if len(made) == 1 else made or None

    return run


def _do(registers: _Registers, step: Step, text: str) -> None:
    operation = _OPERATIONS.get(step.words[0])
    if operation is None or not operation(registers, step):
        raise _unknown(".".join(step.words), text)


def as_type(x: Any, dtype: DType) -> Any:
    """Return the bits of a number as one of a type of the same width; a predicate as 0 or 1."""
    if isinstance(x, int):
        return dtype(x)
    kind = current().type_of(x)
    if kind == dtype:
        return x
    return bitcast(x, kind, dtype) if kind.width == dtype.width else dtype(x)


class _Held(dict[str, Any]):
    """The numbers of registers, by name. own: those of the text alone; others stay with the thread."""

    def __init__(self, given: dict[str, Any], own: frozenset[str]) -> None:
        super().__init__(given)
        self._own = own

    def stays(self, name: str) -> bool:
        """Say whether a name is of a register that stays."""
        return name not in self._own and not name.startswith("$") and _IS_NAME.match(name) is not None

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and self.stays(name))

    def __missing__(self, name: str) -> Any:
        return current().read(current().text_register(name))  # type: ignore[attr-defined]

    def __setitem__(self, name: str, value: Any) -> None:
        if self.stays(name):
            wide = (
                value if isinstance(value, int) else as_type(value, _UNSIGNED[max(8, current().type_of(value).width)])
            )
            current().write(current().text_register(name), Uint64(wide))  # type: ignore[attr-defined]
        else:
            super().__setitem__(name, value)


_IS_NAME = re.compile(r"[A-Za-z_][\w$]*$")


class _Registers:
    """The registers of a text. held: their numbers, by name."""

    def __init__(self, held: dict[str, Any], own: frozenset[str] = frozenset()) -> None:
        self.held = _Held(held, own)

    def read(self, name: str, kind: str) -> Any:
        """Return an operand as a number of a type, as "s32"."""
        if name.startswith("%"):
            return as_type(isa.sreg(register=name[1:]), _TYPES[kind])
        x = self.held[name] if name in self.held else _literal(name)
        return as_type(x, _TYPES[kind])

    def predicate(self, name: str) -> Any:
        """Return a predicate, as "p", "!p", "0" or "1"."""
        x = self.held[name.lstrip("!")] if name.lstrip("!") in self.held else int(name, 0) != 0
        return current().compare("==", x, 0) if name.startswith("!") else x

    def address(self, operand: str, kind: str = "u32") -> Any:
        """Return the address that an operand in brackets is, as `[a + 0x20]`."""
        first, *rest = (self.read(part.strip(), kind) for part in operand.strip("[] ").split("+"))
        return functools.reduce(lambda a, b: a + b, rest, first)

    def pointer(self, operand: str, dtype: DType, space: AddressSpace) -> Any:
        """Return the pointer that an operand in brackets is."""
        wide = "u32" if space is AddressSpace.smem else "u64"
        return make_ptr(dtype, self.address(operand, wide), space)


def _literal(name: str) -> Any:
    if name.startswith("0f"):
        return bitcast(Uint32(int(name[2:], 16)), Uint32, Float32)
    return int(name, 0)


_COMPARED = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def _of_type(function: Callable[..., Any], *others: str) -> Callable[[_Registers, Step], bool]:
    """An instruction that computes with numbers of its last word's type. others: the words that may stand between."""

    def apply(r: _Registers, step: Step) -> bool:
        kind = step.words[-1]
        if kind not in _TYPES or not set(step.words[1:-1]) <= set(others):
            return False
        target, *sources = step.operands
        r.held[target] = function(*(r.read(s, kind) for s in sources))
        return True

    return apply


def _move(r: _Registers, step: Step) -> bool:
    """mov: a number, or two halves to a whole and back."""
    target, source = step.operands
    kind = step.words[-1]
    if kind not in _TYPES:
        return False
    if source.startswith("{"):
        parts = [s.strip() for s in source.strip("{}").split(",")]
        half = int(kind[1:]) // len(parts)
        low = [as_type(r.read(p, f"b{half}"), _TYPES[kind]) for p in parts]
        r.held[target] = functools.reduce(lambda a, b: a | b, (x << (half * i) for i, x in enumerate(low)))
    elif target.startswith("{"):
        parts = [s.strip() for s in target.strip("{}").split(",")]
        half, whole = int(kind[1:]) // len(parts), r.read(source, kind)
        for i, name in enumerate(parts):
            r.held[name] = _UNSIGNED[half]((whole >> (half * i)) & ((1 << half) - 1))
    else:
        r.held[target] = r.read(source, kind)
    return True


def _compare(r: _Registers, step: Step) -> bool:
    """setp: a predicate of two numbers."""
    if len(step.words) != 3 or step.words[1] not in _COMPARED:
        return False
    target, a, b = step.operands
    r.held[target] = _COMPARED[step.words[1]](r.read(a, step.words[2]), r.read(b, step.words[2]))
    return True


def _select(r: _Registers, step: Step) -> bool:
    """selp: one of two numbers, by a predicate."""
    target, a, b, p = step.operands
    r.held[target] = current().select(r.held[p], r.read(a, step.words[1]), r.read(b, step.words[1]))
    return True


def _vote(r: _Registers, step: Step) -> bool:
    """vote.sync: what the lanes of a warp have of a predicate."""
    target, p, mask = step.operands
    functions = {
        "any": arch.vote_any_sync, "all": arch.vote_all_sync, "uni": arch.vote_uni_sync,
        "ballot": arch.vote_ballot_sync,
    }  # fmt: skip
    if len(step.words) != 4 or step.words[1] != "sync" or step.words[2] not in functions:
        return False
    r.held[target] = functions[step.words[2]](r.held[p], r.read(mask, "u32"))
    return True


def _convert(r: _Registers, step: Step) -> bool:
    """cvt to a pair of narrow floats: the first source is the upper one."""
    narrow = _NARROW.get(step.words[-2])
    if narrow is None or step.words[-1] != "f32" or not set(step.words[1:-2]) <= {"rn", "satfinite"}:
        return False
    target, high, low = step.operands
    halves = [bitcast(narrow(r.read(s, "f32")), narrow, _UNSIGNED[narrow.width]) for s in (low, high)]
    whole = _UNSIGNED[2 * narrow.width]
    r.held[target] = whole(halves[0]) | (whole(halves[1]) << narrow.width)
    return True


def _load(r: _Registers, step: Step) -> bool:
    """ld: of global memory, with an order."""
    words = set(step.words[1:-1])
    scope, sem = words & {"cta", "cluster", "gpu", "sys"}, words & {"relaxed", "acquire"}
    dtype = _TYPES.get(step.words[-1])
    if dtype is None or words - scope - sem != {"global"}:
        return False
    target, source = step.operands
    pointer = r.pointer(source, dtype, AddressSpace.gmem)
    r.held[target] = arch.load(pointer, dtype, sem=next(iter(sem), None), scope=next(iter(scope), None))
    return True


def _atom(r: _Registers, step: Step) -> bool:
    """atom.add: of global memory, with an order."""
    words = set(step.words[1:-1]) - {"global"}
    scope, sem = words & {"cta", "cluster", "gpu", "sys"}, words & {"relaxed", "acquire", "release", "acq_rel"}
    dtype = _TYPES.get(step.words[-1])
    if dtype is None or words - scope - sem != {"add"}:
        return False
    target, place, value = step.operands
    pointer = r.pointer(place, dtype, AddressSpace.gmem)
    r.held[target] = arch.atomic_add(
        pointer, r.read(value, step.words[-1]), sem=next(iter(sem), None), scope=next(iter(scope), None)
    )
    return True


def _map(r: _Registers, step: Step) -> bool:
    """mapa: the same place of another block of the cluster."""
    if step.words[1:] != ("shared::cluster", "u32"):
        return False
    target, source, rank = step.operands
    r.held[target] = isa.mapa(r.read(source, "u32"), r.read(rank, "u32"))
    return True


def _store(r: _Registers, step: Step) -> bool:
    """st.async: to the shared memory of another block, whose barrier is told."""
    *words, kind = step.words[1:]
    if words != ["async", "shared::cluster", "mbarrier::complete_tx::bytes"] or kind not in (
        "f32",
        "b32",
        "u32",
        "s32",
    ):
        return False
    place, value, bar = (s.strip("[] ") for s in step.operands)
    isa.st_async(r.read(place, "u32"), [as_type(r.read(value, kind), Uint32)], r.read(bar, "u32"), count=1)
    return True


def _elect(r: _Registers, step: Step) -> bool:
    """elect.sync: a predicate that holds in one lane of the warp."""
    if step.words[1:] != ("sync",):
        return False
    r.held[step.operands[0].rpartition("|")[2]] = arch.elect_one()
    return True


def _try_wait(r: _Registers, step: Step) -> bool:
    """mbarrier.try_wait.parity: whether a phase has completed."""
    if step.words[1:3] != ("try_wait", "parity") or step.words[-1] != "b64":
        return False
    target, bar, parity = step.operands[:3]
    r.held[target] = isa.mbarrier_try_wait_parity(r.address(bar), r.read(parity, "u32"))
    return True


def _multiply(r: _Registers, step: Step) -> bool:
    """tcgen05.mma, without scale factors."""
    words = dict(w.split("::") for w in step.words[2:] if w.count("::") == 1)
    if step.words[1] != "mma" or len(words) != len(step.words) - 2 or set(words) != {"cta_group", "kind"}:
        return False
    d, a, b, form, adds = step.operands
    in_tmem = a.startswith("[")
    row: Any = isa.tcgen05_mma_ts if in_tmem else isa.tcgen05_mma_ss
    first = r.address(a) if in_tmem else r.read(a, "u64")
    row(
        r.address(d), first, r.read(b, "u64"), r.read(form, "u32"), use_acc=r.predicate(adds),
        cta_group=int(words["cta_group"]), kind=words["kind"],
    )  # fmt: skip
    return True


_APPROX = ("approx", "ftz", "rn", "sat")
_OPERATIONS: dict[str, Callable[[_Registers, Step], bool]] = {
    "mov": _move, "setp": _compare, "selp": _select, "vote": _vote, "cvt": _convert, "ld": _load, "atom": _atom,
    "mapa": _map, "st": _store, "elect": _elect, "mbarrier": _try_wait, "tcgen05": _multiply,
    "add": _of_type(lambda a, b: a + b, "rn", "ftz"), "sub": _of_type(lambda a, b: a - b, "rn", "ftz"),
    "mul": _of_type(lambda a, b: a * b, "rn", "ftz", "lo"), "fma": _of_type(math.fma, "rn", "ftz"),
    "mad": _of_type(lambda a, b, c: a * b + c, "lo"), "neg": _of_type(lambda a: -a, "ftz"),
    "and": _of_type(lambda a, b: a & b), "or": _of_type(lambda a, b: a | b), "xor": _of_type(lambda a, b: a ^ b),
    "not": _of_type(lambda a: ~a), "shl": _of_type(lambda a, n: a << n), "shr": _of_type(lambda a, n: a >> n),
    "tanh": _of_type(lambda x: math.tanh(x, fastmath=True), *_APPROX),
    "ex2": _of_type(lambda x: math.exp2(x, fastmath=True), *_APPROX),
    "lg2": _of_type(lambda x: math.log2(x, fastmath=True), *_APPROX),
    "rsqrt": _of_type(lambda x: math.rsqrt(x, fastmath=True), *_APPROX),
    "rcp": _of_type(lambda x: arch.rcp_approx(x), *_APPROX),
}  # fmt: skip
"""By the first word of an instruction: it is done, or False is given of a form that is not known."""
