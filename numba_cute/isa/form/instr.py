# SPDX-License-Identifier: Apache-2.0
"""The form of the instruction table: one decorated function is one PTX instruction.

The signature gives the operands (`kinds`), the docstring the reference, the body the meaning (for the simulator, on a
`machine.Machine`), and the decorator the rest. Keyword-only parameters of the body are static parameters that it
needs. `TABLE` holds every row; the emitter, the simulator, the assembler tests and the reference docs all read it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from threading import RLock
from typing import Any, NamedTuple

from ... import seam
from ...seam import CuteError
from .assembly import Assembly, assemble, conditions_in, operands_in, statics_in
from .cases import Cases
from .choosing import check_defaults, chosen
from .kinds import MEMORY, Operand, Role, annotation, pred
from .targets import supports as supports

THREAD, WARP, WARPGROUP, CTA, CLUSTER = "thread", "warp", "warpgroup", "cta", "cluster"
ISSUERS = (THREAD, WARP, WARPGROUP, CTA, CLUSTER)
GENERIC, ASYNC = "generic", "async"
MBARRIER, BULK_GROUP, WGMMA_GROUP, CP_ASYNC_GROUP = "mbarrier", "bulk_group", "wgmma_group", "cp_async_group"
TCGEN05_GROUP = "tcgen05_group"
"""The work of a thread that its tcgen05.commit collects for an mbarrier."""
TCGEN05_LOADS, TCGEN05_STORES = "tcgen05_loads", "tcgen05_stores"
"""The work of a warp that tcgen05.wait::ld and ::st wait for."""
EACH, SAME, ALONE, ARRAY, WARPS = "each", "same", "alone", "array", "warps"
LANES = (EACH, SAME, ALONE, ARRAY, WARPS)
COMPLETIONS = (
    None, MBARRIER, BULK_GROUP, WGMMA_GROUP, CP_ASYNC_GROUP, TCGEN05_GROUP, TCGEN05_LOADS, TCGEN05_STORES
)  # fmt: skip
RELAXED, ACQUIRE, RELEASE, ACQ_REL = "relaxed", "acquire", "release", "acq_rel"
SEMS = (None, RELAXED, ACQUIRE, RELEASE, ACQ_REL)
SCOPES = (None, "cta", "cluster", "gpu", "sys")


class Order(NamedTuple):
    """The order of an instruction's memory accesses (PTX ISA, "Memory Consistency Model"): `sem` for the threads of
    `scope`; None, None if it is weak or accesses nothing."""

    sem: str | None
    scope: str | None


class Instr:
    """One row of the table.

    name: of the decorated function, `run`, whose docstring is `doc`. ptx: the text (see `assembly`). operands: its
    parameters. statics: the static parameters that it takes. target: the least target, with
    its suffix ("sm_90a" runs on that target alone, "sm_90" on any later one; "sm_90a|sm_100f": on those of either); a
    case that needs another one says so under "target", and an optional operand too: see `needs`.
    issuer: who executes it together. proxy: through which the memory it names is accessed. sem, scope: how it orders
    memory, unless the case says so: see `order`. done_by: what completes it, or None if it is complete when it is
    issued. pure: no side effect and no memory, so that the compiler may merge or drop it. lanes: how a machine may run
    the body of what a thread (or, with SAME, a warp) issues for several threads at once: EACH one by one, SAME once for
    all of them where their operands are equal (what waits, or does the same twice as once), ALONE for one thread that
    waits, ARRAY once, with an array for a scalar operand and for the result; WARPS, of what a warp issues, once for
    several warps that name the same lanes, with those of one warp after those of the other. cases: the legal static
    parameters, each a dict of this row alone; of those that agree in what a caller names, the first is meant. ranges:
    static parameters that may be any of these numbers where a case has them; the cases hold some. ref: the section's
    anchor in the PTX ISA.

    A row is known by its identity. What its function and its cases say is read, and checked, when it is first asked
    for: an import of the package declares all rows, and a kernel issues a few.
    """

    doc: str
    operands: tuple[Operand, ...]
    statics: tuple[str, ...]
    cases: Cases
    names: tuple[str, ...]  # of the operands
    must: tuple[str, ...]  # those that are always given
    least: int  # how many come up to the last one that must be given
    sometimes: tuple[Operand, ...]  # those that may be absent
    raising: tuple[Operand, ...]  # those that need a target
    alike: tuple[int, ...]  # where those are that all give the same
    mask: str | None  # that names the lanes which take part
    roles: dict[Role, str]  # the first operand's name
    chooses: bool  # whether a case chooses an operand's kind

    def __init__(
        self, run: Callable[..., Any], ptx: str, over: Iterable[dict[str, Any]], ranges: Mapping[str, range],
        defaults: Mapping[str, Any], *, target: str, ref: str, issuer: str, proxy: str, sem: str | None,
        scope: str | None, done_by: str | None, pure: bool, lanes: str,
    ) -> None:  # fmt: skip
        self.name, self.run, self.ptx, self.ref, self.target = run.__name__, run, ptx, ref, target
        self.issuer, self.proxy, self.sem, self.scope = issuer, proxy, sem, scope
        self.done_by, self.pure, self.lanes = done_by, pure, lanes
        self.ranges, self.defaults = dict(ranges), dict(defaults)
        self._over = over

    @property
    def waits(self) -> bool:
        """Tell whether it is a loop of its own until something has come."""
        return " bra " in self.ptx

    @property
    def in_a_line(self) -> str:
        """Write its PTX in one line, for people."""
        return " ".join(self.ptx.split())

    @property
    def mnemonic(self) -> str:
        """Name the instruction with which its PTX begins, qualifiers and all."""
        return self.in_a_line.lstrip("{ ").partition(" ")[0].partition("[")[0]

    def __getattr__(self, name: str) -> Any:
        """Read the row when a field of it is first asked for."""
        if name not in Instr.__annotations__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with _READING:
            if name not in self.__dict__:
                self._read()
        return self.__dict__[name]

    def __repr__(self) -> str:
        return f"Instr({self.name})"

    def __reduce__(self) -> tuple[Any, ...]:
        return row_of, (self.name,)

    def _read(self) -> None:
        """Read the function and the cases, check them, and work out what follows."""
        operands, statics = [], []
        for name, p in list(inspect.signature(self.run, eval_str=True).parameters.items())[1:]:
            if p.kind is p.KEYWORD_ONLY:
                statics.append(name)
            else:
                operands.append(replace(annotation(p.annotation), name=name))
        if not isinstance(self._over, Cases):
            self._over = Cases(self._over)
        self._check(tuple(operands), tuple(statics), self._over)
        check_defaults(self._over, self.ranges, self.defaults, self._need)
        sometimes = tuple(o for o in operands if o.optional or not all(_allowing(o, self._over)))
        must = [i + 1 for i, o in enumerate(operands) if o.reads and o not in sometimes]
        self.__dict__.update(
            doc=inspect.getdoc(self.run) or "",
            operands=tuple(operands),
            statics=tuple(statics),
            cases=self._over,
            names=tuple(o.name for o in operands),
            must=tuple(operands[i - 1].name for i in must),
            least=max(must, default=0),
            sometimes=sometimes,
            raising=tuple(o for o in sometimes if o.target is not None),
            alike=tuple(i for i, o in enumerate(operands) if o.same),
            mask=next((o.name for o in operands if o.role is Role.LANES), None),
            roles={o.role: o.name for o in reversed(operands)},
            chooses=any(o.by is not None for o in operands),
        )

    def _need(self, ok: bool, why: str) -> None:
        if not ok:
            raise TypeError(f"instruction {self.name}: {why}")

    def _check(self, operands: tuple[Operand, ...], given: tuple[str, ...], cases: Cases) -> None:
        need = self._need
        need(self.issuer in ISSUERS, f"issuer {self.issuer!r} is none of {ISSUERS}")
        need(self.proxy in (GENERIC, ASYNC), f"proxy {self.proxy!r} is neither generic nor async")
        need(self.done_by in COMPLETIONS, f"done_by {self.done_by!r} is none of {COMPLETIONS}")
        need(self.lanes in LANES, f"lanes {self.lanes!r} is none of {LANES}")
        need(
            self.lanes == EACH
            or (self.lanes == SAME or (self.lanes == WARPS) == (self.issuer == WARP))
            and self.issuer in (THREAD, WARP),
            "lanes is for what a thread issues, or several warps at once",
        )
        need(bool(inspect.getdoc(self.run)), "it has no docstring")
        need(bool(cases), "it has no case")
        named, used = {o.name for o in operands}, operands_in(self.ptx)
        need(named == used, f"operands {sorted(named)} and the text's {sorted(used)} differ")
        statics = (statics_in(self.ptx) | conditions_in(self.ptx) | set(given)) - named
        statics |= {o.count for o in operands if isinstance(o.count, str)}
        statics |= {o.by for o in operands if o.by is not None}
        for case in cases.given:
            if not statics <= case.keys():  # (what is wrong with a case is written only then: there are many)
                need(False, f"case {case} lacks {sorted(statics - set(case))}")
            if not named.isdisjoint(case):
                need(False, f"{sorted(named & set(case))} is an operand and a static parameter")
            sem, scope = self.order(case)
            if sem not in SEMS or scope not in SCOPES:
                need(False, f"order {sem!r} or scope {scope!r} is none of {SEMS}, {SCOPES}")
            if not self.ranges.keys() <= case.keys():
                need(False, f"case {case} lacks one of the ranges {sorted(self.ranges)}")
        empty = [o.name for o in operands if not any(_allowing(o, cases))]
        need(not empty, f"{empty} is an empty vector in every case, or never allowed")
        targets = {t for c in cases.given for t in c.get("target", self.target).split("|")}
        wrong = sorted(t for t in targets if not re.fullmatch(r"sm_\d+[af]?", t))
        need(not wrong, f"target {wrong} is not like sm_90a")
        unwritten = [o.name for o in operands if o.kind is pred and o.writes and o.reads]
        need(not unwritten, f"predicate {unwritten} cannot be both read and written")
        need(not self.pure or self.issuer == THREAD, "only what a thread issues alone can be pure")
        need(not self.pure or not any(o.role in MEMORY for o in operands), "what takes an address is not pure")

    @cached_property
    def spelled(self) -> Sequence[dict[str, Any]]:
        """The cases that differ in what the assembler sees: text, operands and target."""
        names = statics_in(self.ptx) | conditions_in(self.ptx) | self.ranges.keys() | {"target"}
        for o in self.operands:
            names |= {n for n in (o.count, o.by, *(o.where or ())[:1]) if isinstance(n, str)}
        return self.cases.differing(sorted(names - {o.name for o in self.operands}))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Issue it: operands by position or name, static parameters by name. None stands for an operand left out."""
        names = self.names
        values = dict(zip(names, args))
        if not self.least <= len(args) <= len(names) or not kwargs.keys().isdisjoint(names):
            self._bind(values, args, kwargs)
        case = self.case(kwargs)
        if self.sometimes:
            self._check_given(case, values)
        return seam.current().issue(self, case, values)

    def _bind(self, values: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Move the operands in `kwargs` to `values`; an error if they are not what the row takes."""
        names = self.names
        if len(args) > len(names):
            raise CuteError(f"{self.name} takes {len(names)} operands ({', '.join(names)}), got {len(args)}")
        twice = sorted(values.keys() & kwargs.keys())
        values.update((k, kwargs.pop(k)) for k in names if k in kwargs)
        missing = [name for name in self.must if name not in values]
        if missing or twice:
            which = f"{missing} is missing" if missing else f"{twice} is given twice"
            raise CuteError(f"{self.name}({', '.join(names)}): operand {which}")

    def _check_given(self, case: dict[str, Any], values: dict[str, Any]) -> None:
        """Drop the operands that are left out; an error if the case does not have one that is given, or must have one
        that is not."""
        for o in self.sometimes:
            if o.name in values and values[o.name] is None:
                del values[o.name]
            if o.name not in values:
                if not o.optional and o.allowed(case):
                    raise CuteError(f"{self.name}({', '.join(self.names)}): operand ['{o.name}'] is missing")
                continue
            if not o.allowed(case):
                says = {k: v for k, v in case.items() if k in (o.count, *(o.where or ())[:1])}
                raise CuteError(
                    f"{self.name}: operand {o.name} is given, but the form with {says} has none; leave it out"
                )
            both = [n for n in o.unless if values.get(n) is not None]
            if both:
                raise CuteError(f"{self.name}: operands {o.name} and {both[0]} exclude each other; leave one out")

    def given(self, values: Container[str]) -> tuple[str, ...]:
        """Those of the operands that may be absent that are among `values`."""
        return tuple([o.name for o in self.sometimes if o.name in values]) if self.sometimes else ()

    def operands_in(self, case: dict[str, Any]) -> tuple[Operand, ...]:
        """All operands, with the kinds that the case chooses."""
        if not self.chooses:
            return self.operands
        found = _RESOLVED.get(id(case))
        if found is None or found[0] is not case:
            found = _RESOLVED[id(case)] = case, tuple(o.in_case(case) for o in self.operands)
        return found[1]

    def order(self, case: dict[str, Any]) -> Order:
        """Return its effect on the order of memory in this case."""
        return Order(case.get("sem", self.sem), case.get("scope", self.scope))

    def needs(self, case: dict[str, Any], given: Container[str] = ()) -> tuple[str, ...]:
        """The targets that the case with these operands needs: code must be for one that supports each of them."""
        needed = case.get("target", self.target)
        return (needed, *(o.target for o in self.raising if o.target is not None and o.name in given))

    def lacking(self, arch: str, case: dict[str, Any], given: Container[str] = ()) -> tuple[str, str] | None:
        """If code for `arch` cannot have this form: what it is, in words, and the target that it needs."""
        for target in self.needs(case, given):
            if not supports(arch, target):
                plain = [c for c in self.spelled if c.get("target", self.target) == self.target]
                more = case.get("target", self.target) == target != self.target
                said = {k: v for k, v in case.items() if k != "target" and all(c.get(k) != v for c in plain)}
                why = [f"{k}={v!r}" for k, v in said.items()] if more else []
                why += [o.name for o in self.raising if o.target == target and o.name in given]
                return f"{self.name} with {', '.join(why)}" if why else self.name, target
        return None

    def forms(self) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
        """Each case that differs in what the assembler sees, with each set of operands that it may be given besides
        those that it must have."""
        for case in self.spelled:
            allowed = [o for o in self.sometimes if o.allowed(case)]
            must = tuple(o.name for o in allowed if not o.optional)
            may = [o for o in allowed if o.optional]
            for n in range(len(may) + 1):
                for some in combinations(may, n):
                    names = tuple(o.name for o in some)
                    if not any(set(o.unless) & set(names) for o in some):
                        yield case, (*must, *names)

    def perform(self, m: Any, case: dict[str, Any], values: dict[str, Any]) -> Any:
        """Run the body on machine `m`; an `out` operand, and one that is left out, is None there, and one that all
        give alike comes once. Gives what the body returns."""
        given = [values.get(name) for name in self.names]
        for at in self.alike:
            if given[at] is not None:
                given[at] = m.uniform(given[at])
        return self.run(m, *given, **{k: case[k] for k in self.statics})

    def case(self, statics: dict[str, Any]) -> dict[str, Any]:
        """The row that has these static parameters (a row may hold more, derived from them)."""
        key = (self.name, *statics.items()) if statics else self.name
        found = _FOUND.get(key)
        if found is None:
            made = chosen(self, statics)
            found = _FOUND[key] = _MADE.setdefault((self.name, *made.items()), made)
        return found

    def assembly(self, case: dict[str, Any], given: Container[str] = ()) -> Assembly:
        """The case as inline assembly, with those of the operands that may be absent that are in `given`."""
        there = [o for o in self.operands_in(case) if o.allowed(case) and (not o.optional or o.name in given)]
        return assemble(self.ptx, there, case)


def _allowing(o: Operand, cases: Cases) -> Iterator[bool]:
    """Say whether a case can have the operand, for each of the cases that differ in that."""
    if o.where is None and not isinstance(o.count, str):
        yield o.allowed({})
        return
    if cases.plain:
        yield from map(o.allowed, cases.given)
        return
    names = (*(o.where or ())[:1], *((o.count,) if isinstance(o.count, str) else ()))
    for block in cases.blocks:
        yield from map(o.allowed, block.over(names))


TABLE: dict[str, Instr] = {}
_FOUND: dict[Any, dict[str, Any]] = {}
_MADE: dict[Any, dict[str, Any]] = {}
"""The cases that callers have named: a case is known by its identity."""
_RESOLVED: dict[int, tuple[dict[str, Any], tuple[Operand, ...]]] = {}
_READING = RLock()


def row_of(name: Any) -> Instr:
    """Return the row that the text of the IR names. Raises CuteError if there is none."""
    if name not in TABLE:
        raise CuteError(f"ptx: {name!r} is not a row of the instruction table")
    return TABLE[name]


def instr(
    ptx: str,
    *,
    target: str,
    ref: str,
    issuer: str = THREAD,
    proxy: str = GENERIC,
    sem: str | None = None,
    scope: str | None = None,
    done_by: str | None = None,
    pure: bool = False,
    lanes: str = EACH,
    over: Iterable[dict[str, Any]] = ({},),
    ranges: Mapping[str, range] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Instr]:
    """Declare one instruction; the decorated function's parameters after `m` are its operands, in the order in which
    they are passed, and its keyword-only parameters are static parameters that the body needs."""

    def declare(fn: Callable[..., Any]) -> Instr:
        row = Instr(
            fn, ptx, over, ranges or {}, defaults or {}, target=target, ref=ref, issuer=issuer, proxy=proxy, sem=sem,
            scope=scope, done_by=done_by, pure=pure, lanes=lanes,
        )  # fmt: skip
        if row.name in TABLE:
            raise TypeError(f"instruction {row.name} is declared twice")
        TABLE[row.name] = row
        return row

    return declare
