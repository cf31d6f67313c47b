# SPDX-License-Identifier: Apache-2.0
"""PTX that a user wrote: a row of its own for each text, which no table holds and no simulator knows the meaning of."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

from ...seam import CuteError
from .assembly import Assembly, assemble
from .instr import EACH, GENERIC, WARP, Instr
from .kinds import Kind, annotation, out

_PLACE = re.compile(r"\{\$([wr])(\d+)\}|\$(\d+)|\$")


class Text(Instr):
    """A row of one text. text: as the user wrote it: `{$w0}` is the first number that it writes, `{$r0}` the first that
    it reads; or `$0`, `$1`, … are those that it writes and then those that it reads. writes, reads: their registers."""

    def __init__(self, text: str, writes: Sequence[Kind], reads: Sequence[Kind]) -> None:
        names = [f"w{i}" for i in range(len(writes))] + [f"r{i}" for i in range(len(reads))]
        kinds = [*map(out, writes), *map(annotation, reads)]
        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in ("m", *names)]

        def inline_ptx(*_: Any) -> None:
            """PTX that stands in the kernel."""

        signature = [p.replace(annotation=k) for p, k in zip(parameters, (None, *kinds))]
        inline_ptx.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
        super().__init__(
            inline_ptx, " ".join(f"${n}" for n in names), ({},), {}, {}, target="sm_70", ref="", issuer=WARP,
            proxy=GENERIC, sem=None, scope=None, done_by=None, pure=False, lanes=EACH,
        )  # fmt: skip
        self.text = _escaped(_numbered(text, names))

    def assembly(self, case: dict[str, Any], given: Container[str] = ()) -> Assembly:
        """The text as inline assembly."""
        return replace(assemble(self.ptx, self.operands, case), text=self.text)


def _numbered(text: str, names: list[str]) -> str:
    """Return a text whose places are the numbers of inline assembly. CuteError: there is no such operand, or one is
    not in the text."""
    used, numbered = set(), {str(i): name for i, name in enumerate(names)}

    def place(match: re.Match[str]) -> str:
        if match[0] == "$":  # of a label or another name of PTX's
            return "$$"
        name = match[1] + match[2] if match[1] else numbered.get(match[3].lstrip("0") or "0", "")
        if name not in names:
            raise CuteError(
                f"inline_ptx: {match[0]} in {text!r}: it has {', '.join(names) or 'no operands'}; give more types in "
                "write_only_types, or numbers in read_only_args"
            )
        used.add(name)
        return f"${{{names.index(name)}}}"  # in braces: a digit may follow

    made = _PLACE.sub(place, text)
    unused = [n for n in names if n not in used]
    if unused:
        raise CuteError(f"inline_ptx: {unused[0]} is not in {text!r}: write {{${unused[0]}}} there, or leave it out")
    return made


def _escaped(text: str) -> str:
    """Write a text as LLVM reads it between quotation marks."""
    return "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}" for b in text.encode())


@functools.lru_cache(maxsize=1024)
def text_row(text: str, writes: tuple[Kind, ...], reads: tuple[Kind, ...]) -> Text:
    """Return the row of a text with these registers."""
    return Text(text, writes, reads)
