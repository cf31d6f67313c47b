# SPDX-License-Identifier: Apache-2.0
"""What traced code asks while only the types of its results are wanted: nothing happens, and all numbers are 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....dtypes import DType, Uint32
from ....isa.form.instr import Instr
from ....seam import Regs
from ...hardware.address_spaces import SMEM_BASE
from ...hardware.collective import result_type
from ..arithmetic.number import CLASSES, leaf_type, typed
from ..backend import SimBackend


class TypingBackend(SimBackend):
    """`SimBackend` of no thread."""

    def issue(self, instr: Instr, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        outs: list[Any] = []
        for o in instr.operands:
            if o.writes and not isinstance(operands.get(o.name), Regs):
                outs += [CLASSES[result_type(o.kind.name)].make(0)] * o.size(statics)
        return None if not outs else outs[0] if len(outs) == 1 else tuple(outs)

    def load(self, dtype: DType, space: str, address: Any, count: int, align: int) -> tuple[Any, ...]:
        return (CLASSES[leaf_type(dtype)].make(0),) * count

    def store(self, dtype: DType, space: str, address: Any, values: Sequence[Any], align: int) -> None:
        pass

    def copy_to_regs(self, space: str, address: Any, dst: Regs, align: int) -> None:
        pass

    def copy_from_regs(self, src: Regs, space: str, address: Any, align: int) -> None:
        pass

    def registers(self, dtype: DType, count: int) -> Any:
        return np.zeros(count, dtype.numpy)

    def read(self, regs: Regs) -> Any:
        return typed(regs.dtype, 0)

    def write(self, regs: Regs, value: Any) -> None:
        pass

    def fill(self, regs: Regs, value: Any) -> None:
        pass

    def vector(self, regs: Regs) -> Any:
        return np.zeros(regs.count, regs.dtype.numpy)

    def unvector(self, vector: Any, regs: Regs) -> None:
        pass

    def elementwise(self, op: Any, dtype: DType, *operands: Any) -> Any:
        if not isinstance(op, Instr):
            return super().elementwise(op, dtype, *operands)
        vectors = [x for x in operands if isinstance(x, np.ndarray)]
        return np.zeros(len(vectors[0]), dtype.numpy) if vectors else typed(dtype, 0)

    def when(self, cond: Any, then: Callable[[], None]) -> None:
        pass

    def loop(self, start: Any, stop: Any, body: Callable[[Any], None]) -> None:
        pass

    def flag(self) -> Regs:
        return Regs(np.zeros(1, np.uint32), Uint32, 0, 1)

    def gave(self, fn: Any, result: Any) -> None:
        pass

    def told(self, kind: int, name: str, payload: Any) -> bool:
        return True

    def static_smem(self, nbytes: int, align: int) -> int:
        return SMEM_BASE

    def allocate_smem(self, nbytes: int, align: int) -> int:
        return 0

    def at_exit(self, what: Callable[[], None]) -> None:
        pass

    def tensor_map(self, maps: Any, form: Any, tensor: Any) -> int:
        return 0

    def smem_needs(self, total_bytes: int) -> None:
        pass

    def note(self, address: int, nbytes: int, name: str) -> None:
        pass

    def tells(self) -> bool:
        return False

    def printf(self, fmt: str, args: Sequence[Any]) -> None:
        pass
