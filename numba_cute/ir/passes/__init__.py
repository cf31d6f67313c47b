# SPDX-License-Identifier: Apache-2.0
"""Passes over modules of the IR, as xDSL has them: each keeps its meaning, and it verifies before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...seam import CuteError
from ..module import Module, context
from .coalesce import Coalesce
from .dce import DeadCode
from .fold import Fold
from .lower_to_nvgpu import LowerToNvgpu
from .lower_to_ptx import LowerToPtx
from .publish import Publish
from .rewriting import Refused
from .vectorise import Vectorise

PASSES: dict[str, type[ModulePass]] = {
    p.name: p for p in (Fold, Coalesce, Vectorise, DeadCode, LowerToNvgpu, LowerToPtx, Publish)
}
"""All passes, by the names that the command line has for them."""


def run(module: Module, names: Sequence[str]) -> Module:
    """Run passes over a module, one after the other; gives the new module, and leaves the old one as it is.

    names: of `PASSES`. Raises CuteError for a pass that there is not, and for a module that a pass cannot take, with
    the operation and its line.
    """
    unknown = [n for n in names if n not in PASSES]
    if unknown:
        raise CuteError(f"pass {unknown[0]!r} is none of those that there are: {', '.join(PASSES)}")
    module = module.calls()
    op = module.op.clone()
    text = module.text
    if text is not None:
        pairs = zip(module.op.walk(), op.walk())
        text = replace(text, at={new: text.at[old] for old, new in pairs if old in text.at}, names={})
    made = Module(op, text)
    for name in names:
        made = made.calls()
        try:
            PASSES[name]().apply(context(), made.op)
        except Refused as e:
            raise CuteError(f"{_place(made, e.op)}{name}: {e}\n    {str(e.op).splitlines()[0]}") from e
        made.verify()
    return made


def _place(module: Module, op: Operation) -> str:
    text = module.text
    return "" if text is None or op not in text.at else f"{text.file}:{text.at[op][0]}: "
