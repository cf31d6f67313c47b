# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.cutlass_dsl` and `cutlass.base_dsl`: targets as numbers, and what the compiler of the CuTe DSL asks
of objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...dtypes import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from ...isa.form.targets import TARGETS
from ...seam import CuteError, StaticEnum, current_or, static, traced
from ..launch_errors import DSLCudaRuntimeError
from .options import target_here

__all__ = [
    "Arch", "BaseDSL", "CuTeDSL", "DSLCudaRuntimeError", "T", "dynamic_expr", "extract_mlir_values",
    "for_generate", "if_generate", "new_from_mlir_values", "not_", "while_generate", "yield_out",
]  # fmt: skip


class _Ordered(StaticEnum):
    """Targets, ordered by chip and then by suffix: none, "a", "f"."""

    @traced
    def __lt__(self, other: Any) -> bool:
        return bool(self.value < other.value)

    @traced
    def __le__(self, other: Any) -> bool:
        return bool(self.value <= other.value)

    @traced
    def __gt__(self, other: Any) -> bool:
        return bool(self.value > other.value)

    @traced
    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= other.value)


def _value(name: str) -> tuple[int, int, str]:
    digits = name.removeprefix("sm_").rstrip("af")
    return int(digits[:-1]), int(digits[-1]), name.removeprefix("sm_" + digits)


_named: Any = _Ordered
Arch = _named("Arch", {name: _value(name) for name in TARGETS})
Arch.__doc__ = "The targets that there are, as `sm_90a`."


@static
@dataclass(frozen=True)
class BaseDSL:
    """The compiler of the CuTe DSL, of which files ask the target."""

    @staticmethod
    @traced
    def _get_dsl() -> BaseDSL:
        return BaseDSL()

    def get_arch_enum(self) -> Any:
        """Return the target that is compiled for."""
        running = current_or(None)
        return Arch[target_here() if running is None else running.arch]


CuTeDSL = BaseDSL


class T:
    """The types of MLIR that texts of PTX are given: here element types."""

    bool, i1 = (staticmethod(lambda: Boolean),) * 2
    i8, i16, i32, i64 = (staticmethod(lambda t=t: t) for t in (Int8, Int16, Int32, Int64))
    f16, bf16, f32, f64 = (staticmethod(lambda t=t: t) for t in (Float16, BFloat16, Float32, Float64))


@traced
def dynamic_expr(value: Any) -> Any:
    """Return `value`: the CuTe DSL has it to mark a condition of run time, which here each is that is not static."""
    return value


def _refusing(name: str, instead: str) -> Callable[..., Any]:
    def refuse(*args: Any, **named: Any) -> Any:
        raise CuteError(f"{name}: Numba has no MLIR: {instead}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refuse: {instead}."
    return refuse


_HELD = "objects of kernels are held as they are, and are not taken apart by methods of theirs"
_PLAIN = "write it in plain Python: `if`, `for` and `while` of a kernel are compiled"
extract_mlir_values = _refusing("extract_mlir_values", _HELD)
new_from_mlir_values = _refusing("new_from_mlir_values", _HELD)
if_generate = _refusing("if_generate", _PLAIN)
for_generate = _refusing("for_generate", _PLAIN)
while_generate = _refusing("while_generate", _PLAIN)
yield_out = _refusing("yield_out", _PLAIN)
not_ = _refusing("not_", _PLAIN)
