# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.cutlass_dsl` and `cutlass.base_dsl`: targets as numbers, and what the compiler of the CuTe DSL asks
of objects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...compiler.host.result import CompiledHost
from ...dtypes import BFloat16, Boolean, DType, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from ...isa.form.targets import TARGETS, supports
from ...seam import CuteError, StaticEnum, current, current_or, frozen, traced
from ...utils.tile_scheduler import PersistentTileSchedulerParams
from ..launch_errors import DSLCudaRuntimeError
from .dialects import Operation
from .options import target_here
from .vectors import VectorType

__all__ = [
    "Arch", "BaseDSL", "CuTeDSL", "DSLCudaRuntimeError", "DSLPreprocessor", "FloatMeta", "JitArgument",
    "JitCompiledFunction", "NumericMeta", "T", "dynamic_expr", "extract_mlir_attributes",
    "extract_mlir_values", "for_generate",
    "get_c_pointers", "get_mlir_types", "if_generate", "new_from_mlir_values", "not_", "while_generate", "yield_out",
]  # fmt: skip


_PLAIN = "write it in plain Python: `if`, `for` and `while` of a kernel are compiled"


class _Ordered(StaticEnum):
    """Targets, ordered by chip and then by suffix: none, "a", "f"."""

    @property
    def major(self) -> int:
        """The chip's number before the last digit: 9 of sm_90a."""
        return int(self.value[0])

    @property
    def minor(self) -> int:
        """The last digit of the chip's number."""
        return int(self.value[1])

    @property
    def suffix(self) -> str:
        """The letter behind the chip's number, or nothing."""
        return str(self.value[2])

    @traced
    def is_family_of(self, arch: Any) -> bool:
        """Say whether this target runs what is written for the family of another: of one with "a" it is that one, of
        one with "f" one of its family, with a suffix, and no earlier chip, and of others one of the same major number.

        arch: the other.
        """
        if arch.suffix:
            return supports(self.name, arch.name)
        return bool(self.major == arch.major and self.minor >= arch.minor)

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


@frozen
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


class JitArgument:
    """The base of classes whose objects are arguments: here any `dataclass` is one."""


CuTeDSL = BaseDSL
JitCompiledFunction = CompiledHost
NumericMeta = DType


def _giving(dtype: DType) -> Any:
    return lambda self: dtype


@frozen
class _Types:
    """The types of MLIR that texts of PTX are given: here element types."""

    bool, i1 = _giving(Boolean), _giving(Boolean)
    i8, i16, i32, i64 = map(_giving, (Int8, Int16, Int32, Int64))
    f16, bf16, f32, f64 = map(_giving, (Float16, BFloat16, Float32, Float64))

    def vector(self, length: int, element_type: DType) -> VectorType:
        """Return the type of vectors of a length, static, and an element type."""
        return VectorType((length,), element_type)


T = _Types()


class _Patched(type):
    """The class of `DSLPreprocessor`: it refuses a patch that would have no effect here, and should have one."""

    def __setattr__(cls, name: str, value: Any) -> None:
        if name.startswith("visit_") and name != "visit_If":
            raise CuteError(
                f"DSLPreprocessor.{name} is set: kernels are read as bytecode here, and no source is visited"
            )
        super().__setattr__(name, value)


class DSLPreprocessor(metaclass=_Patched):
    """Stand for the CuTe DSL's preprocessor of a function's source, which nothing here calls. Kernels are read as
    bytecode, in which a condition is taken apart as Python does: `if const_expr(S) and D` leaves nothing of what S
    excludes, which is what files patch `visit_If` for."""

    def visit_If(self, node: Any) -> Any:  # noqa: N802 - Python's name
        """Return the statement, for what a file puts in this method's place."""
        return node


class FloatMeta(DType):
    """The class of element types of floats, by which files define their own: these refuse to be used."""

    def __new__(cls, name: str, bases: Any, namespace: Any, **named: Any) -> Any:
        """Make what stands for an element type of a file's."""
        return Operation(name)


@traced
def dynamic_expr(value: Any) -> Any:
    """Return `value`: the CuTe DSL has it to mark a condition of run time, which here each is that is not static."""
    return value


@traced
def if_generate(
    cond: Any, then_body: Callable[..., Any], else_body: Callable[..., Any] | None = None,
    input_args: Any = None, return_types: Any = None, *, loc: Any = None, ip: Any = None,
) -> None:  # fmt: skip
    """Call one function or another, as a condition of run time is.

    cond: the condition. then_body, else_body: the functions; None: nothing. input_args: what both are given.
    CuteError: return_types, since what a branch gives is a variable's of a kernel's own `if`.
    """
    if return_types:
        raise CuteError(f"if_generate: return_types: {_PLAIN}")
    given = tuple(input_args or ())
    when = functools.partial(current().when, of_python=True)
    when(cond, lambda: then_body(*given))
    if else_body is not None:
        other = else_body
        when(current().compare("==", cond, 0), lambda: other(*given))


def _refusing(name: str, instead: str) -> Callable[..., Any]:
    def refuse(*args: Any, **named: Any) -> Any:
        raise CuteError(f"{name}: Numba has no MLIR: {instead}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refuse: {instead}."
    return refuse


_HELD = "objects of kernels are held as they are, and are not taken apart by methods of theirs"
get_mlir_types = _refusing("get_mlir_types", _HELD)
get_c_pointers = _refusing("get_c_pointers", _HELD)
extract_mlir_attributes = _refusing("extract_mlir_attributes", _HELD)
extract_mlir_values = _refusing("extract_mlir_values", _HELD)
PersistentTileSchedulerParams.__extract_mlir_values__ = extract_mlir_values  # type: ignore[attr-defined]
"""A method of the CuTe DSL's compiler, which files put another in place of; nothing here calls either."""
new_from_mlir_values = _refusing("new_from_mlir_values", _HELD)
for_generate = _refusing("for_generate", _PLAIN)
while_generate = _refusing("while_generate", _PLAIN)
yield_out = _refusing("yield_out", _PLAIN)
not_ = _refusing("not_", _PLAIN)
