# SPDX-License-Identifier: Apache-2.0
"""A kernel's PTX made into that of its debugged twin: every wait is watched, and every access to memory checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..compiler.ground.asserting import MARK
from . import pieces
from .sites import BLOCK, CLUSTER, Access, Lines, Site, Statement, access_of, parsed, statements

CHECKS = ("waits", "bounds", "alignment", "numbers", "unwritten", "asserts")


@dataclass
class Instrumented:
    """The PTX of a debugged twin. sites: the places that records name by their number. gates: whether named barriers
    need room among the control words. symbols: the names of the module's variables in global memory."""

    ptx: str = ""
    sites: list[Site] = field(default_factory=list)
    gates: bool = False
    symbols: list[str] = field(default_factory=list)


_ENTRY = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+|\.extern\s+)*\.(entry|func)\b")
_GLOBAL = re.compile(r"^\s*\.global\s+\.align\s+\d+\s+\.\w+\s+([\w$]+)")
_STATIC = re.compile(
    r"^(?:\.visible |\.weak )?\.shared\s+\.align\s+(?:4|8|16|32|64|128|256|512|1024)\s+\.b8\s+([\w$]+)\[(\d+)\];"
)
_DYNAMIC = re.compile(r"^\s*\.extern\s+\.shared\s+\.align\s+\d+\s+\.b8\s+([\w$]+)\[\];")
_BEGIN, _END = "// begin inline asm", "// end inline asm"


def instrument(ptx: str, checks: Iterable[str] = CHECKS) -> Instrumented:
    """Return the PTX of a debugged twin. ptx: of a kernel that was compiled with `lineinfo=True`. checks: those of
    CHECKS that are wanted."""
    return _Instrumenter(ptx, frozenset(checks)).run()


class _Piece(str):
    """Marks text that is written as it is."""


class _Instrumenter:
    def __init__(self, ptx: str, checks: frozenset[str]) -> None:
        self.lines = ptx.split("\n")
        self.checks, self.where = checks, Lines(ptx)
        self.made = Instrumented()
        self.out: list[str] = []
        self.shared = [(m[1], m[2]) for m in map(_STATIC.match, self.lines) if m]
        dynamic = [m[1] for m in map(_DYNAMIC.match, self.lines) if m]
        self.dynamic = dynamic[0] if dynamic else pieces.LAST
        self.shared += [(name, "%dynamic_smem_size") for name in dynamic]
        self.polls = "waits" in checks and re.search(r"mbarrier\.(try|test)_wait[^;]*;\s*selp", ptx) is not None

    def run(self) -> Instrumented:
        """Go over all lines."""
        head, function = True, ""
        asm: list[str] | None = None
        for line in self.lines:
            self.where.see(line)
            stripped = line.strip()
            found = _ENTRY.match(line)
            if found:
                function = found[1]
            if head and (found or _GLOBAL.match(line) or stripped.startswith((".extern", ".visible", ".common"))):
                self.out.append(pieces.SYMBOLS + (pieces.DYNAMIC if self.dynamic == pieces.LAST else ""))
                head = False
            if stripped == _BEGIN:
                asm = []
            elif stripped == _END and asm is not None:
                self.out += [_BEGIN, self._asm(asm), _END]
                asm = None
            elif asm is not None:
                asm += [line] if stripped and not stripped.startswith(".loc") else []
            elif (variable := _GLOBAL.match(line)) is not None:
                self.made.symbols.append(variable[1])
                self.out.append(".visible " + stripped)
            elif line.startswith("{") and function:
                self.out += [line, *self._opening(function)]
            else:
                self.out.append(self._line(line))
        self.made.ptx = "\n".join(self.out)
        return self.made

    def _opening(self, function: str) -> Iterator[str]:
        """Write the beginning of a function: shared memory is filled, and the thread polls nothing."""
        if self.polls:
            yield f"\t.local .align 4 .b8 {pieces.POLLS}[4];"
        if function == "entry" and self.shared and {"numbers", "unwritten"} <= self.checks:
            yield from (pieces.fill(symbol, size) for symbol, size in self.shared)
            yield pieces.MEET
        if self.polls:
            yield self._reset()

    def _line(self, line: str) -> str:
        stripped = line.strip()
        if not stripped.endswith(";") or stripped.startswith((".", "//", "$", "call", "(", "}")):
            return line
        return self._statement(stripped[:-1], [stripped[:-1]])

    def _asm(self, lines: list[str]) -> str:
        """An inline assembly."""
        if len(lines) == 1 and lines[0].strip().startswith(MARK):
            return self._assertion(lines[0].strip())
        text = "\n".join(lines)
        if "//" in text or "/*" in text:
            return text
        parts = list(statements(text))
        return " ".join(self._parts(self._loops(parts)))

    def _parts(self, parts: list[str]) -> Iterator[str]:
        for p in parts:
            if isinstance(p, _Piece):
                yield p
                continue
            plain = p in ("{", "}") or p.endswith(":") or p.startswith(".")
            yield (
                p + (";" if p.startswith(".") else "") if plain and not p.startswith("@") else self._statement(p, parts)
            )

    def _site(self, text: str) -> int:
        self.made.sites.append(Site(" ".join(text.split()), *self.where.here))
        return len(self.made.sites) - 1

    # ------------------------------------------------------------------ waits
    def _reset(self) -> str:
        """Note that the thread goes on: it polls anew."""
        n = pieces.fresh()
        return f"{{ .reg .b32 pz{n}; mov.b32 pz{n}, 0; st.local.b32 [{pieces.POLLS}], pz{n}; }}" if self.polls else ""

    def _loops(self, parts: list[str]) -> list[str]:
        """Watch each round of the loops of an inline assembly: they wait."""
        if "waits" not in self.checks:
            return parts
        out = list(parts)
        for at in range(len(parts) - 1, -1, -1):
            s = parsed(parts[at])
            if s is None or not s.guard or s.name.partition(".")[0] != "bra":
                continue
            label = f"{s.operands[0]}:"
            if label not in parts[:at]:
                continue
            begin = parts.index(label)
            told = self._told(parts[begin:at])
            if told is None:
                continue
            n = pieces.fresh()
            rounds = f"@{s.unguarded} bra $Lcute_done{n}; {pieces.patience(f'since{n}', told)} bra {s.operands[0]}; "
            out[at] = _Piece(f"{rounds}$Lcute_done{n}: {self._reset()}")
            out.insert(begin, _Piece(f".reg .b32 since{n}; mov.b32 since{n}, 0;"))
        return out

    def _told(self, loop: list[str]) -> str | None:
        """Return the PTX that records what a loop waits for; None if it waits for nothing known."""
        for text in loop:
            s = parsed(text)
            if s is None:
                continue
            if s.name.startswith(("mbarrier.try_wait.parity", "mbarrier.test_wait.parity")):
                return pieces.at_mbarrier(self._site(text), s.operands[1][1:-1], s.operands[2])
            access = access_of(s)
            if access is not None and access.space == "global":
                return pieces.at_flag(self._site(text), access.base)
        return None

    def _polled(self, s: Statement, text: str) -> str:
        """A single look at an mbarrier, in a loop of the user's."""
        n = pieces.fresh()
        told = pieces.at_mbarrier(self._site(text), s.operands[1][1:-1], s.operands[2])
        watched = pieces.patience(f"since{n}", told)
        return (
            f"{text}; {{ .reg .b32 since{n}; mov.b32 since{n}, 0; @{s.operands[0]} bra $Lcute_seen{n}; "
            f"ld.local.b32 since{n}, [{pieces.POLLS}]; {watched} $Lcute_seen{n}: "
            f"st.local.b32 [{pieces.POLLS}], since{n}; }}"
        )

    def _barrier(self, s: Statement, text: str) -> str:
        """A barrier of the block: one that names its threads is counted first."""
        name, waits = s.name, "arrive" not in s.name
        if ".red." in name or s.guard:
            return f"{text};"
        if len(s.operands) == 2:
            self.made.gates = True
            return f"{pieces.gate(self._site(text), s.operands[0], s.operands[1], waits)} {text}; {self._reset()}"
        return f"{pieces.around_barrier(text, BLOCK, self._site(text))} {self._reset()}" if waits else f"{text};"

    # ------------------------------------------------------------------ statements
    def _statement(self, text: str, beside: list[str]) -> str:
        s = parsed(text)
        if s is None:
            return f"{text};"
        if "waits" in self.checks:
            if s.name.startswith(("bar.sync", "bar.arrive", "barrier.sync", "barrier.arrive", "barrier.cta.")):
                return self._barrier(s, text)
            if s.name.startswith("barrier.cluster.wait") and not s.guard:
                return f"{pieces.around_barrier(text, CLUSTER, self._site(text))} {self._reset()}"
            polls = s.name.startswith(("mbarrier.try_wait.parity", "mbarrier.test_wait.parity"))
            if self.polls and polls and not s.guard and any(b.startswith("selp") for b in beside):
                return self._polled(s, text)
        access = access_of(s)
        if access is not None and access.space in ("", "global", "shared"):
            return f"{self._checked(s, access, text)}\t{text};"
        return f"{text};"

    def _checked(self, s: Statement, access: Access, text: str) -> str:
        """Return the PTX that checks an access before it is made."""
        n = pieces.fresh()
        address = f"ca{n}"
        site, skip = self._site(text), f"$Lcute_unchecked{n}"
        wide = "mov.b64" if access.base.startswith("%rd") else "cvt.u64.u32"
        out = f"{{ .reg .b64 {address}; .reg .pred cp{n}; " + (f"@{s.unguarded} bra {skip}; " if s.guard else "")
        out += f"{wide} {address}, {access.base}; add.s64 {address}, {address}, {access.offset}; "
        if "alignment" in self.checks and access.size > 1:
            out += pieces.aligned(address, access.size, site) + " "
        if access.space == "shared":
            out += pieces.within_shared(address, access.size, site, self.dynamic) if "bounds" in self.checks else ""
        elif {"bounds", "numbers"} & self.checks:  # what a number may be is the found argument's to say
            if access.space == "":
                out += f"isspacep.global cp{n}, {address}; @!cp{n} bra {skip}; "
            suffix = s.suffixes[-1]
            stored = [(suffix, v, 8 * access.width) for v in access.values if access.width in (2, 4, 8)]
            found = pieces.numbers(address, stored, site) if stored and "numbers" in self.checks else ""
            out += pieces.within(address, access.size, site, found)
        return f"{out} {skip}: }}\n"

    def _assertion(self, line: str) -> str:
        """The end of a thread whose `assert` is false."""
        text = bytes.fromhex(line.removeprefix(MARK)).decode()
        return pieces.report(15, self._site(f"assert {text}")) if "asserts" in self.checks else ""
