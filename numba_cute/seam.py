# SPDX-License-Identifier: Apache-2.0
"""The seam between library code and what runs it.

Library code is written once. It meets what runs it only here:

* `traced` functions are plain Python over static structure. They run at compile time, once on symbolic leaves
  (typing) and once on leaves that emit code (lowering); in the simulator and on the host they simply run.
* `static` classes are immutable values: their static part lies in the Numba type, their run-time leaves in
  registers. Methods and properties are traced.
* `struct` classes are mutable and held by reference. Their methods hold run-time control flow and are jitted by
  Numba as they stand; the simulator runs the same source. `traced` methods may stand beside them.

A `Backend` is what a traced function asks for anything that is not arithmetic on leaves. There are three: the
compiler's typing and lowering, and the simulator. `current()` is the one that runs now.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import math
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing import dataclass_transform
else:  # Python 3.10 has no typing.dataclass_transform, and at run time it does nothing

    def dataclass_transform(**_: Any) -> Callable[[T], T]:
        return lambda fn: fn


class CuteError(Exception):
    """The one exception of this library: what was asked, the value, the rule, and the mend."""


class Leaf:
    """A value known only at run time. Subclasses (the compiler's and the simulator's) give it operators; a plain int is
    static.

    divisor: an integer that is known to divide it (1: nothing is known). kept: whether equal leaves are one object, so
    that what is computed of it may be remembered. exact: whether it is computed with as an int of any size.
    """

    __slots__ = ()
    divisor: int = 1
    kept: bool = False
    exact: bool = False

    def known(self) -> Any:
        """The value as an int or the like, if whoever runs the code knows it (the simulator); else itself."""
        return self


def known(x: Any) -> Any:
    """`x`, which may be a tuple, with what its leaves are worth where that is known: for addresses, which need no
    types."""
    if not isinstance(x, tuple):
        return x.known() if isinstance(x, Leaf) else x
    out: list[Any] | None = None
    for i, y in enumerate(x):
        if type(y) is int or y is None:
            continue
        found = known(y)
        if found is not y:
            out = list(x) if out is None else out
            out[i] = found
    return x if out is None else tuple(out)


def is_exact(x: Any) -> bool:
    """Whether `x` is computed with as an int of any size: a static one, or one that the simulator knows."""
    return not isinstance(x, Leaf) or x.exact


def divisor(x: Any) -> int:
    """What is known to divide `x`: a static integer's magnitude (0 for 0, which everything divides), a leaf's
    `divisor`, 1 for anything else."""
    if type(x) is int:
        return abs(x)
    return x.divisor if isinstance(x, Leaf) else 1


_MOST = 1 << 30  # larger divisors prove nothing more, and a product of them may not fit the value's type


def divisor_of(op: str, a: Any, b: Any) -> int:
    """What divides the result of an integer operation: op is add, sub, mul, udiv, urem, shl, and_, or_ or xor."""
    x, y = divisor(a), divisor(b)
    if op in ("add", "sub"):
        found = math.gcd(x, y)
    elif op == "mul":
        found = x * y
    elif op == "udiv":
        found = x // b if type(b) is int and b > 0 and x % b == 0 else 1
    elif op == "urem":
        found = math.gcd(x, y)
    elif op == "shl":
        found = x << b if type(b) is int and 0 <= b < 32 else x
    elif op == "and_":
        found = max(x & -x, y & -y)
    elif op in ("or_", "xor"):
        found = math.gcd(x & -x, y & -y)
    else:
        found = 1
    return (found if found <= _MOST else math.gcd(found, _MOST)) or 1


@dataclasses.dataclass(frozen=True)
class Regs:
    """`count` elements of one thread's registers, from element `start` of `file`.

    file: what `Backend.registers` gave. dtype: the elements' type. An instruction's vector operands are such spans:
    an inout operand is read and written in place.
    """

    file: Any
    dtype: Any
    start: Any
    count: int


COMPARISONS = ("<", "<=", "==", "!=", ">", ">=", "isnan", "isinf", "isfinite")
LOGICAL = ("and", "or", "xor", "not", "where")
"""On bits; "where" takes a Boolean vector or scalar first, then what is to be where it is true, and elsewhere."""
ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "neg", "abs", "min", "max")
"""floordiv and mod round towards minus infinity, as Python does; min and max prefer a number to a NaN."""
INTEGER = ("shl", "shr")
UNARY_MATH = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2",
    "expm1", "floor", "log", "log10", "log1p", "log2", "round", "roundeven", "rsqrt", "sin", "sinh", "sqrt", "tan",
    "tanh", "trunc",
)  # fmt: skip
DIRECTED = tuple(f"{op}.{mode}" for op in ("add", "sub", "mul", "div", "fma", "sqrt") for mode in ("rz", "rp", "rm"))
"""Of Float32 and Float64, rounded towards zero, upwards or downwards."""
MATH = ("div", "pow", "rem", "fma", "atan2", "copysign", *UNARY_MATH, *DIRECTED)
"""Of floats. round: halves away from zero; roundeven: to even; rem: C's fmod."""
ELEMENTWISE = COMPARISONS + LOGICAL + ARITHMETIC + INTEGER + MATH
"""What `Backend.elementwise` does to integers and floats alike, to integers (INTEGER) or to floats (MATH)."""


class Backend(Protocol):
    """What traced code may ask of what runs it. Addresses are integers: bytes, 32-bit in shared memory (the
    shared::cta window), 64-bit in global memory."""

    arch: str
    """The target, as in "sm_90a"."""

    def issue(self, instr: Any, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        """Issue one instruction of the table. Gives its `out` operands: none, one leaf, or a tuple of leaves
        (a vector `out` operand passed as a `Regs` span is written there instead and not returned)."""

    def load(self, dtype: Any, space: str, address: Any, count: int, align: int) -> tuple[Any, ...]:
        """`count` consecutive elements from "smem", "gmem" or "generic" memory, as leaves."""

    def store(self, dtype: Any, space: str, address: Any, values: Sequence[Any], align: int) -> None:
        """The same, the other way."""

    def swizzled(self, swizzle: Any, address: Any) -> Any:
        """`swizzle(address)`. A compiler may leave out of it the terms of a sum that are multiples of its period."""

    def copy_to_regs(self, space: str, address: Any, dst: Regs, align: int) -> None:
        """Load `dst.count` consecutive elements into registers with one access (at most 16 bytes)."""

    def copy_from_regs(self, src: Regs, space: str, address: Any, align: int) -> None:
        """The same, the other way."""

    def registers(self, dtype: Any, count: int) -> Any:
        """A new register file of `count` elements of this thread; its contents are undefined."""

    def same_registers(self, a: Any, b: Any) -> bool | None:
        """Whether two register files are one; None if that is not known."""

    def read(self, regs: Regs) -> Any:
        """The one element of a span of one, as a leaf."""

    def write(self, regs: Regs, value: Any) -> None:
        """Set the one element of a span of one."""

    def fill(self, regs: Regs, value: Any) -> None:
        """Set every element of a span to one value."""

    def vector(self, regs: Regs) -> Any:
        """The elements of a span as one immutable value: a leaf of `count` elements."""

    def unvector(self, vector: Any, regs: Regs) -> None:
        """Set a span from such a value."""

    def convert(self, vector: Any, src: Any, dst: Any, count: int) -> Any:
        """Such a value with each element converted: to nearest even, and floats to integers towards zero."""

    def pack(self, dtype: Any, values: Sequence[Any]) -> Any:
        """Such a value of `dtype` elements from scalars."""

    def bitcast(self, vector: Any, dtype: Any) -> Any:
        """Such a value's bits as elements of another type: of the same width, or, to and from one of 4 bits, as many as
        they make."""

    def lane(self, vector: Any, index: int) -> Any:
        """One element of such a value, as a leaf."""

    def take(self, vector: Any, indices: Sequence[int]) -> Any:
        """Such a value of the elements at these indices, which are static."""

    def elementwise(self, op: Any, dtype: Any, *operands: Any) -> Any:
        """One operation on each element: such a value, or a leaf if all operands are scalars.

        Vectors have elements of type `dtype` and one count; scalars are converted to it and meet each element. The
        result has that type too, or Boolean for a comparison. op: a name of `ELEMENTWISE`, or a row of the instruction
        table whose scalar operands and result are f32. 16-bit and 8-bit floats are computed in Float32 and rounded.
        """

    def type_of(self, scalar: Any) -> Any:
        """The element type of a scalar; in the simulator, where Python's numbers have none, the widest of its kind."""

    def cast(self, value: Any, dtype: Any) -> Any:
        """A scalar as another type; a static value becomes a run-time one."""

    def select(self, cond: Any, a: Any, b: Any) -> Any:
        """`a` if `cond` else `b`, both evaluated."""

    def compare(self, op: str, a: Any, b: Any) -> Any:
        """A run-time bool. op: "<", "<=", "==", "!=", ">", ">="."""

    def when(self, cond: Any, then: Callable[[], None]) -> None:
        """Run `then` if `cond`, which may be a run-time bool."""

    def loop(self, start: Any, stop: Any, body: Callable[[Any], None]) -> None:
        """Run `body(i)` for each `i` in [start, stop), either of which may be known only at run time."""

    def flag(self) -> Regs:
        """One Uint32 register for each run of the calling kernel or device function, 0 at first: the carry."""

    def static_smem(self, nbytes: int, align: int) -> Any:
        """The address of `nbytes` of static shared memory for the calling line of the kernel."""

    def known_launch(self) -> tuple[tuple[int, int, int] | None, int | None]:
        """(the cluster's shape, the most threads of a block), as far as they are known: None if not."""

    def smem_base(self) -> Any:
        """The address of the first byte of dynamic shared memory: a multiple of 1024."""

    def smem_needs(self, total_bytes: Any) -> None:
        """Say that the kernel uses the first `total_bytes` of dynamic shared memory."""

    def gave(self, fn: Any, result: Any) -> None:
        """A method that is called `for_result` gave it to who called: the simulator looks whether that drops it."""

    def printf(self, fmt: str, args: Sequence[Any]) -> None:
        """C's printf of at most 32 values of the types that the format names: integers of 32 and (ll) 64 bits, doubles,
        and for each %s a Boolean, which prints "True" or "False"."""


class _Stack(threading.local):
    def __init__(self) -> None:
        self.backends: list[Any] = []


_stack = _Stack()


def current() -> Backend:
    """What runs the code now; an error on the host, where there are no registers, threads or instructions."""
    if not _stack.backends:
        raise CuteError(
            "this works only inside a kernel: call it from a @cuda.jit function, on a GPU or in cute.simulate (Numba's "
            "own simulator, NUMBA_ENABLE_CUDASIM=1, does not know it)"
        )
    return _stack.backends[-1]  # type: ignore[no-any-return]


def current_or(default: Any) -> Any:
    """`current()`, or `default` on the host."""
    return _stack.backends[-1] if _stack.backends else default


@contextmanager
def running(backend: Any):  # type: ignore[no-untyped-def]
    """Make `backend` the current one."""
    _stack.backends.append(backend)
    try:
        yield backend
    finally:
        _stack.backends.pop()


_MARKED: list[type] = []
_told: list[Callable[[type], None]] = []


def tell_marked(tell: Callable[[type], None]) -> None:
    """Call `tell` with each `static` and `struct` class, those that there are and those to come."""
    _told.append(tell)
    for cls in _MARKED:
        tell(cls)


def _mark(cls: type) -> None:
    _MARKED.append(cls)
    for tell in _told:
        tell(cls)


def traced(fn: T) -> T:
    """Mark a function as compile-time Python: kernels call it, and it runs while they are compiled."""
    fn.__cute_traced__ = True  # type: ignore[attr-defined]
    return fn


def for_result(fn: T) -> T:
    """Mark a function or method that does nothing but give its result: a kernel that drops an object so made is
    wrong."""
    fn.__cute_for_result__ = True  # type: ignore[attr-defined]
    return fn


def is_for_result(fn: Any) -> bool:
    return getattr(fn, "__cute_for_result__", False) is True


@dataclass_transform(frozen_default=True)
def static(cls: type[T]) -> type[T]:
    """Make an immutable value class: a frozen dataclass whose fields hold ints, leaves, tuples, and static things.

    A kernel holds such an object with its static part in the type. Methods and properties are traced. Checks
    belong in ``__post_init__``; it does not run again when a kernel takes an object apart and rebuilds it. Unless the
    class says otherwise, kernels cannot ask for an object's truth value.
    """
    if "__dataclass_fields__" not in cls.__dict__:
        cls = dataclasses.dataclass(frozen=True, repr="__repr__" not in cls.__dict__)(cls)
    if not hasattr(cls, "__bool__"):
        cls.__bool__ = _truth  # type: ignore[attr-defined]
    for name, sign in (("__lt__", "<"), ("__le__", "<="), ("__gt__", ">"), ("__ge__", ">=")):
        if getattr(cls, name) is getattr(object, name):
            setattr(cls, name, _unordered(sign))
    cls.__cute_static__ = True  # type: ignore[attr-defined]
    _mark(cls)
    return cls


@traced
def _truth(self: Any) -> bool:
    """Whether an object of a `static` class is true: on the host as in Python; kernels must say what they mean."""
    if current_or(None) is None:
        return len(self) > 0 if hasattr(self, "__len__") else True
    raise CuteError(
        f"{type(self).__name__} {self!r} has no truth value: ask what is meant, as `x is None`, `x == y` or one of its "
        "attributes"
    )


def _unordered(sign: str) -> Callable[..., Any]:
    @traced
    def compare(self: Any, other: Any) -> Any:
        raise CuteError(
            f"{self!r} {sign} {other!r}: a {type(self).__name__} has no order; compare a size or an attribute"
        )

    return compare


@static
class ArrayView:
    """A Numba array that jitted code passed to traced code: element type, data address (generic), shape and strides
    in elements, and whether it is read-only. Core functions that take tensors take these."""

    dtype: Any
    address: Any
    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
    readonly: bool = False


def is_traced(fn: Any) -> bool:
    return getattr(fn, "__cute_traced__", False) is True


def is_static_class(cls: Any) -> bool:
    return isinstance(cls, type) and "__cute_static__" in cls.__dict__


def is_struct_class(cls: Any) -> bool:
    return isinstance(cls, type) and "__cute_struct__" in cls.__dict__


_VERDICT = "__cute_all_static__"


@traced
def is_static(x: Any) -> bool:
    """Whether nothing in `x` (a number, a tuple, a layout, any immutable object) is known only at run time."""
    if type(x) is int:
        return True
    if isinstance(x, (tuple, list)):
        return all([type(y) is int or is_static(y) for y in x])
    if isinstance(x, Leaf):
        return False
    held: dict[str, Any] = getattr(x, "__dict__", {})
    if _VERDICT in held:  # what is immutable is looked through once
        return bool(held[_VERDICT])
    if not is_static_class(type(x)):
        return not is_struct_class(type(x))
    verdict = held[_VERDICT] = is_static([held.get(name) for name in field_names(type(x))])  # type: ignore[arg-type]
    return verdict


@functools.cache
def field_names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


@dataclass_transform()
def struct(cls: type[T]) -> type[T]:
    """Make a mutable class that kernels hold by reference: annotated fields, and methods that Numba jits.

    A field annotated with a `DType` is a run-time value of that type. Any other field keeps what the constructor
    was given: static things stay static, structs are embedded. Class attributes that are not fields are constants.
    """
    types = {}
    for base in reversed(cls.__mro__):
        types.update(inspect.get_annotations(base, eval_str=True))
    fields = list(types)
    defaults = {f: getattr(cls, f) for f in fields if hasattr(cls, f)}
    required = [f for f in fields if f not in defaults]
    order = required + [f for f in fields if f in defaults]
    cls.__cute_fields__ = tuple(order)  # type: ignore[attr-defined]
    cls.__cute_defaults__ = defaults  # type: ignore[attr-defined]
    cls.__cute_types__ = types  # type: ignore[attr-defined]
    if "__init__" not in cls.__dict__:
        cls.__init__ = _struct_init  # type: ignore[method-assign]
        cls.__signature__ = _fields_signature(order, defaults)  # type: ignore[attr-defined]
    else:
        own = list(inspect.signature(cls.__init__).parameters.values())[1:]
        cls.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    cls.__setattr__ = _struct_setattr  # type: ignore[method-assign]
    cls.__new__ = _struct_new  # type: ignore[method-assign,assignment]
    cls.__cute_struct__ = True  # type: ignore[attr-defined]
    _mark(cls)
    return cls


@traced
def const_expr(value: T) -> T:
    """`value`, which must be known when the kernel is compiled: `if const_expr(FLAG):` compiles one branch alone.

    Of a tuple, a layout or any other object, all that it holds must be known.
    """
    if not is_static(value):
        raise CuteError(f"const_expr({value!r}): the value is known only at run time")
    return value


@traced
def range_constexpr(*args: int) -> range:
    """`range(*args)` unrolled while the kernel is compiled: each copy of the body sees its index as a literal, so
    that it can index registers and tuples. The bounds are ints known in the source: literals, globals, closure
    variables, and arithmetic on them."""
    return range(*args)


class StaticEnum(enum.Enum):
    """An enumeration whose members are compile-time values in kernels (Numba would keep only an integer)."""


def _fields_signature(fields: Sequence[str], defaults: dict[str, Any]) -> inspect.Signature:
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    return inspect.Signature([inspect.Parameter(f, kind, default=defaults.get(f, empty)) for f in fields])


def _struct_new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """The simulator has classes of its own, whose methods compute as a kernel does."""
    own = getattr(current_or(None), "struct_class", None)
    return object.__new__(cls if own is None else own(cls))


def _struct_init(self: Any, *args: Any, **kwargs: Any) -> None:
    values = bind_fields(type(self), args, kwargs)
    for name, value in values.items():
        setattr(self, name, value)


def _struct_setattr(self: Any, name: str, value: Any) -> None:
    """A struct kept in a field is embedded there: a copy, as in a kernel, not another name for the same one."""
    if name in type(self).__cute_fields__ and is_struct_class(type(value)):
        copied = object.__new__(type(value))
        for field in type(value).__cute_fields__:
            setattr(copied, field, getattr(value, field))
        value = copied
    hold = getattr(current_or(None), "hold", None)
    object.__setattr__(self, name, value if hold is None else hold(type(self).__cute_types__.get(name), value))


def bind_fields(cls: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """A struct's field values from a constructor call, in field order."""
    fields = cls.__cute_fields__
    if len(args) > len(fields):
        raise CuteError(f"{cls.__name__} has {len(fields)} fields ({', '.join(fields)}), got {len(args)} values")
    values = dict(zip(fields, args))
    for name, value in kwargs.items():
        if name not in fields:
            raise CuteError(f"{cls.__name__} has no field {name!r}; its fields are {', '.join(fields)}")
        if name in values:
            raise CuteError(f"{cls.__name__}: field {name!r} is given twice")
        values[name] = value
    for name in fields:
        if name not in values:
            if name not in cls.__cute_defaults__:
                raise CuteError(f"{cls.__name__}: field {name!r} has no value")
            values[name] = cls.__cute_defaults__[name]
    return {name: values[name] for name in fields}
