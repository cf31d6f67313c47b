# SPDX-License-Identifier: Apache-2.0
"""Effects of operations besides their results, as xDSL's passes ask for them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from xdsl.ir import Operation
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind

from ...compiler.inspection.effects import READS, WRITES

_KINDS = {READS: MemoryEffectKind.READ, WRITES: MemoryEffectKind.WRITE}


class CallEffects(MemoryEffect):
    """The effects of an operation that knows its own: its method `effects` gives them."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance] | None:
        of: Any = op
        found = of.effects() if of.lacking() is None else None
        return None if found is None else {EffectInstance(_KINDS[kind]) for kind in found}
