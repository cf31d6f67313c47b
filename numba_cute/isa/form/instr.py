# SPDX-License-Identifier: Apache-2.0
"""The form of the instruction table: one decorated function is one PTX instruction.

The signature gives the operands, the docstring the reference, the body the meaning (for the simulator, on a
`machine.Machine`), and the decorator the rest. Keyword-only parameters of the body are static parameters that it
needs. `TABLE` holds every row; the emitter, the simulator, the assembler tests and the reference docs all read it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ... import seam
from ...seam import CuteError


@dataclass(frozen=True)
class Kind:
    """What one operand is: its LLVM inline-assembly constraint, its PTX register type and its LLVM type."""

    name: str
    constraint: str
    ptx: str
    llvm: str

    def __getitem__(self, count: int | str) -> Vec:
        """A vector of `count` of these: a number, or the name of a static parameter."""
        return Vec(self, count)


@dataclass(frozen=True)
class Vec:
    """`{a, b, …}`: a vector operand. Its value is a `seam.Regs` span or a sequence of leaves."""

    kind: Kind
    count: int | str


u16 = Kind("u16", "h", ".b16", "i16")
u32 = Kind("u32", "r", ".b32", "i32")
s32 = Kind("s32", "r", ".b32", "i32")
u64 = Kind("u64", "l", ".b64", "i64")
f32 = Kind("f32", "f", ".f32", "float")
f64 = Kind("f64", "d", ".f64", "double")
pred = Kind("pred", "r", ".b32", "i32")
"""A predicate: passed as 0 or 1, tested into a `.pred` register around the instruction (or set from one)."""
smem = Kind("smem", "r", ".b32", "i32")
"""An address in the shared::cta window of the issuing CTA."""
cluster_smem = Kind("cluster_smem", "r", ".b32", "i32")
"""An address in the shared::cluster window: a shared::cta address is one too; `mapa` makes those of peers."""
gmem = Kind("gmem", "l", ".b64", "i64")
"""A global (or generic) address."""
tmap = Kind("tmap", "l", ".b64", "i64")
"""The generic address of a 128-byte tensor map."""
tmem = Kind("tmem", "r", ".b32", "i32")
"""A tensor-memory address."""


@dataclass(frozen=True)
class Out:
    """An operand that the instruction writes; with `tied`, one that it reads and writes."""

    of: Kind | Vec
    tied: bool = False


def out(of: Kind | Vec) -> Out:
    return Out(of)


def inout(of: Kind | Vec) -> Out:
    return Out(of, tied=True)


THREAD, WARP, WARPGROUP, CTA, CLUSTER = "thread", "warp", "warpgroup", "cta", "cluster"
ISSUERS = (THREAD, WARP, WARPGROUP, CTA, CLUSTER)
GENERIC, ASYNC = "generic", "async"
MBARRIER, BULK_GROUP, WGMMA_GROUP, CP_ASYNC_GROUP = "mbarrier", "bulk_group", "wgmma_group", "cp_async_group"
TCGEN05_GROUP = "tcgen05_group"
"""What a thread's tcgen05.commit collects for an mbarrier."""
EACH, SAME, ARRAY = "each", "same", "array"
LANES = (EACH, SAME, ARRAY)
COMPLETIONS = (None, MBARRIER, BULK_GROUP, WGMMA_GROUP, CP_ASYNC_GROUP, TCGEN05_GROUP)


@dataclass(frozen=True)
class Operand:
    name: str
    kind: Kind
    count: int | str | None  # None: a scalar
    writes: bool
    reads: bool

    def size(self, statics: dict[str, Any]) -> int:
        if self.count is None:
            return 1
        return int(statics[self.count] if isinstance(self.count, str) else self.count)


@dataclass(frozen=True)
class Assembly:
    """One case as LLVM inline assembly: the text with `$0`-style slots, the constraints, and in slot order the
    outputs and inputs as (operand, index within it)."""

    text: str
    constraints: str
    outputs: tuple[tuple[Operand, int], ...]
    inputs: tuple[tuple[Operand, int], ...]


_NAME = re.compile(r"\$([a-z_]\w*)(?:\[(\d+)\])?")
_STATIC = re.compile(r"\{([a-z_]\w*)\}")


@dataclass(frozen=True)
class Instr:
    """One row of the table.

    ptx: the text; `$name` is an operand, `$name[0]` one of a vector's, `{name}` a static parameter. statics: the
    static parameters that the body takes. target: the least target, with its suffix ("sm_90a" runs on that target
    alone, "sm_90" on any later one; "sm_90a|sm_100f": on those of either).
    issuer: who executes it together. proxy: through which the memory it names is accessed. done_by: what completes
    it, or None if it is complete when it is issued. pure: no side effect and no memory, so that the compiler may
    merge or drop it. lanes: how a machine may run the body of what a thread issues for several threads at once:
    EACH one by one, SAME once for all of them where their operands are equal (what waits, or does the same twice as
    once), ARRAY once, with an array for a scalar operand and for the result. cases: the legal static parameters, each
    a dict; of those that agree in what a caller names, the first is meant. ref: the section's anchor in the PTX ISA.
    """

    name: str
    ptx: str
    operands: tuple[Operand, ...]
    statics: tuple[str, ...]
    target: str
    issuer: str
    proxy: str
    done_by: str | None
    pure: bool
    lanes: str
    ref: str
    run: Callable[..., Any] = field(compare=False)
    doc: str = field(compare=False)
    cases: tuple[dict[str, Any], ...] = field(compare=False, repr=False)
    names: tuple[str, ...] = field(init=False, compare=False, repr=False)  # of the operands
    least: int = field(init=False, compare=False, repr=False)  # how many come up to the last one that must be given

    def __post_init__(self) -> None:
        def need(ok: bool, why: str) -> None:
            if not ok:
                raise TypeError(f"instruction {self.name}: {why}")

        need(self.issuer in ISSUERS, f"issuer {self.issuer!r} is none of {ISSUERS}")
        need(self.proxy in (GENERIC, ASYNC), f"proxy {self.proxy!r} is neither generic nor async")
        need(self.done_by in COMPLETIONS, f"done_by {self.done_by!r} is none of {COMPLETIONS}")
        targets = self.target.split("|")
        need(all(re.fullmatch(r"sm_\d+[af]?", t) for t in targets), f"target {self.target!r} is not like sm_90a")
        need(self.lanes in LANES, f"lanes {self.lanes!r} is none of {LANES}")
        need(self.issuer == THREAD or self.lanes == EACH, "lanes is for what a thread issues")
        need(bool(self.doc), "it has no docstring")
        need(bool(self.cases), "it has no case")
        named, used = {o.name for o in self.operands}, {name for name, _ in _NAME.findall(self.ptx)}
        need(named == used, f"operands {sorted(named)} and the text's {sorted(used)} differ")
        statics = set(_STATIC.findall(self.ptx)) | set(self.statics)
        statics |= {o.count for o in self.operands if isinstance(o.count, str)}
        for case in self.cases:
            need(statics <= set(case), f"case {case} lacks {sorted(statics - set(case))}")
            need(all(o.size(case) > 0 for o in self.operands), f"case {case} has an empty vector operand")
            need(not named & set(case), f"{sorted(named & set(case))} is an operand and a static parameter")
        unwritten = [o.name for o in self.operands if o.kind is pred and o.writes and o.reads]
        need(not unwritten, f"predicate {unwritten} cannot be both read and written")
        object.__setattr__(self, "names", tuple(o.name for o in self.operands))
        object.__setattr__(self, "least", max((i + 1 for i, o in enumerate(self.operands) if o.reads), default=0))
        if self.pure:
            memory = {"smem", "cluster_smem", "gmem", "tmap", "tmem"}
            need(self.issuer == THREAD, "only what a thread issues alone can be pure")
            need(not any(o.kind.name in memory for o in self.operands), "what takes an address is not pure")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Issue it: operands by position or name, static parameters by name."""
        names = self.names
        values = dict(zip(names, args))
        if not self.least <= len(args) <= len(names) or not kwargs.keys().isdisjoint(names):
            self._bind(values, args, kwargs)
        return seam.current().issue(self, self.case(kwargs), values)

    def _bind(self, values: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Move the operands in `kwargs` to `values`; an error if they are not what the row takes."""
        names = self.names
        if len(args) > len(names):
            raise CuteError(f"{self.name} takes {len(names)} operands ({', '.join(names)}), got {len(args)}")
        twice = sorted(values.keys() & kwargs.keys())
        values.update((k, kwargs.pop(k)) for k in names if k in kwargs)
        missing = [o.name for o in self.operands if o.reads and o.name not in values]
        if missing or twice:
            which = f"{missing} is missing" if missing else f"{twice} is given twice"
            raise CuteError(f"{self.name}({', '.join(names)}): operand {which}")

    def perform(self, m: Any, case: dict[str, Any], values: dict[str, Any]) -> Any:
        """Run the body on machine `m`; a pure `out` operand is None there. Gives what the body returns."""
        statics = {k: case[k] for k in self.statics}
        return self.run(m, *[values[o.name] if o.reads else None for o in self.operands], **statics)

    def case(self, statics: dict[str, Any]) -> dict[str, Any]:
        """The row that has these static parameters (a row may hold more, derived from them)."""
        key = (self.name, *statics.items()) if statics else self.name
        found = _FOUND.get(key)
        if found is None:
            found = _FOUND[key] = self._find(statics)
        return found

    def _find(self, statics: dict[str, Any]) -> dict[str, Any]:
        for case in _cases_by(self, tuple(sorted(statics))).get(tuple(statics[k] for k in sorted(statics)), ()):
            return case
        legal = {k: sorted({c[k] for c in self.cases if k in c}, key=repr) for k in self.cases[0]}
        raise CuteError(f"{self.name}: no form with {statics}; the PTX ISA has {legal}")

    def assembly(self, case: dict[str, Any]) -> Assembly:
        """The case as inline assembly. Outputs come first, then the inputs tied to them, then the others."""
        outs = [(o, i) for o in self.operands if o.writes for i in range(o.size(case))]
        tied = [(o, i) for o, i in outs if o.reads]
        ins = [(o, i) for o in self.operands if not o.writes for i in range(o.size(case))]
        first = {o.name: at for at, (o, i) in reversed(list(enumerate(outs))) if i == 0}
        base = len(outs) + len(tied)
        first.update({o.name: base + at for at, (o, i) in enumerate(ins) if i == 0})
        by_name = {o.name: o for o in self.operands}

        def slot(match: re.Match[str]) -> str:
            o = by_name[match.group(1)]
            if o.kind is pred:
                return f"p_{o.name}"
            if o.count is None:
                return f"${first[o.name]}"
            if match.group(2):
                return f"${first[o.name] + int(match.group(2))}"
            return "{" + ", ".join(f"${first[o.name] + i}" for i in range(o.size(case))) + "}"

        text = _STATIC.sub(lambda m: str(case[m.group(1)]) if m.group(1) in case else m.group(0), self.ptx)
        text = _NAME.sub(slot, text)
        preds = [o for o in self.operands if o.kind is pred]
        if preds:
            before = "".join(
                f".reg .pred p_{o.name}; " + (f"setp.ne.b32 p_{o.name}, ${first[o.name]}, 0; " if o.reads else "")
                for o in preds
            )
            after = "".join(f" selp.b32 ${first[o.name]}, 1, 0, p_{o.name};" for o in preds if o.writes)
            text = "{ " + before + text + after + " }"
        constraints = ["=" + o.kind.constraint for o, _ in outs]
        constraints += [str(outs.index(t)) for t in tied] + [o.kind.constraint for o, _ in ins]
        return Assembly(text, ",".join(constraints), tuple(outs), tuple(tied + ins))


TABLE: dict[str, Instr] = {}
_FOUND: dict[Any, dict[str, Any]] = {}
_INDEX: dict[tuple[str, tuple[str, ...]], dict[tuple[Any, ...], list[dict[str, Any]]]] = {}


def _cases_by(instr: Instr, names: tuple[str, ...]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    index = _INDEX.get((instr.name, names))
    if index is None:
        index = {}
        for case in instr.cases:
            if all(n in case for n in names):
                index.setdefault(tuple(case[n] for n in names), []).append(case)
        _INDEX[instr.name, names] = index
    return index


def instr(
    ptx: str,
    *,
    target: str,
    ref: str,
    issuer: str = THREAD,
    proxy: str = GENERIC,
    done_by: str | None = None,
    pure: bool = False,
    lanes: str = EACH,
    over: Iterable[dict[str, Any]] = ({},),
) -> Callable[[Callable[..., Any]], Instr]:
    """Declare one instruction; the decorated function's parameters after `m` are its operands, in the order in which
    they are passed, and its keyword-only parameters are static parameters that the body needs."""

    def declare(fn: Callable[..., Any]) -> Instr:
        operands, statics = [], []
        for name, p in list(inspect.signature(fn, eval_str=True).parameters.items())[1:]:
            if p.kind is p.KEYWORD_ONLY:
                statics.append(name)
                continue
            a = p.annotation
            writes, tied = isinstance(a, Out), isinstance(a, Out) and a.tied
            of = a.of if isinstance(a, Out) else a
            kind, count = (of.kind, of.count) if isinstance(of, Vec) else (of, None)
            operands.append(Operand(name, kind, count, writes, not writes or tied))
        row = Instr(
            fn.__name__, ptx, tuple(operands), tuple(statics), target, issuer, proxy, done_by, pure, lanes, ref, fn,
            inspect.getdoc(fn) or "", tuple(over),
        )  # fmt: skip
        if row.name in TABLE:
            raise TypeError(f"instruction {row.name} is declared twice")
        TABLE[row.name] = row
        return row

    return declare


def supports(arch: str, target: str) -> bool:
    """Whether code for `arch` ("sm_90a") may use an instruction whose least target is `target`.

    A plain target runs there and on all later ones; an "a" target on itself alone; an "f" target on its family;
    "sm_90a|sm_100f" where either does.
    """
    if "|" in target:
        return any(supports(arch, t) for t in target.split("|"))
    have, need = re.fullmatch(r"sm_(\d+)([af]?)", arch), re.fullmatch(r"sm_(\d+)([af]?)", target)
    if have is None or need is None:
        raise CuteError(f"arch {arch!r}: a target looks like sm_80, sm_90a or sm_100a")
    (cc, suffix), (least, kind) = (int(have[1]), have[2]), (int(need[1]), need[2])
    if kind == "a":
        return cc == least and suffix == "a"
    if kind == "f":
        return cc // 10 == least // 10 and cc >= least and suffix in ("a", "f")
    return cc >= least
