# SPDX-License-Identifier: Apache-2.0
"""Register vectors, which `Tensor.load` returns and `Tensor.store` takes, and their arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes, layout, seam
from ..dtypes import Boolean, DType, Float32, Int32
from ..layout import IntTuple
from ..seam import CuteError, Number, StaticEnum, frozen, traced
from ..seam.ground.naming import described
from ..seam.guards.kinds import Vector
from ..seam.guards.messages import how_static
from .broadcast import broadcast_shape, broadcast_strides
from .followed import Followed, followed
from .move import fits_a_thread

__all__ = [
    "ReductionKind", "ReductionOp", "TensorSSA", "all_", "any_", "empty_like", "full", "full_like", "ones_like",
    "where", "zeros_like",
]  # fmt: skip


_TENSOR_OF: list[Callable[[Any], Any]] = []


def gives_tensors(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Decorate the function that gives a tensor of registers with a vector's elements: it is made of tensors, which are
    made of this file."""
    _TENSOR_OF.append(function)
    return function


class ReductionOp(StaticEnum):
    """The operation by which a reduction combines two values.

    >>> [member.name for member in cute.ReductionKind]
    ['ADD', 'MUL', 'MIN', 'MAX', 'INC', 'DEC', 'AND', 'OR', 'XOR']
    """

    ADD = "add"
    MUL = "mul"
    MIN = "min"
    MAX = "max"
    INC = "inc"
    DEC = "dec"
    AND = "and"
    OR = "or"
    XOR = "xor"


ReductionKind = ReductionOp
"""The CuTe DSL's name for what a reducing copy does."""


def _comparing(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: elementwise(op, self, other)


@frozen
class TensorSSA:
    """An immutable vector in registers: `vector` holds the elements of a tensor of `shape` in colexicographic
    order, each of type `dtype`.

    `+ - * / // % **`, comparisons, and `& | ^ << >> ~` work element by element, with another vector (the shapes are
    broadcast, the types promoted) or a scalar, which takes the vector's type (but a Float32 is promoted with narrower
    floats as a vector is, and a float meeting integers makes them Float32). `//` and `%` round towards minus infinity,
    as Python does. `v[i, j]` is one element, `v[None, j]` the vector of the modes marked None; coordinates are static.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32))
    >>> def kernel(x):
    ...     v = x.load() * 2 + 1
    ...     print(v.shape, v[3])
    >>> cute.simulate(kernel)[1, 1](x)
    4 7.0
    """

    vector: Vector
    shape: Any
    dtype: DType

    def __post_init__(self) -> None:
        if seam.is_frozen_class(type(self.vector)):
            object.__setattr__(self, "vector", _elements_of(self.vector, self.shape, self.dtype))

    @property
    def element_type(self) -> DType:
        """The same as `dtype`."""
        return self.dtype

    def ir_value(self, *, loc: Any = None, ip: Any = None) -> TensorSSA:
        """Return the vector itself, as of a number. loc, ip: taken."""
        return self

    def to(self, dtype: DType) -> TensorSSA:
        """Convert each element to `dtype`: to nearest even where it must be rounded, from floats to integers towards
        zero, to 8-bit floats saturating, to Boolean False for zero and else True."""
        if not isinstance(dtype, DType):
            raise CuteError(f"to: dtype {dtype!r} is not an element type; use one like cute.BFloat16")
        if dtype not in dtypes.ALL:
            raise CuteError(f"to: {dtype} is an operand of matrix instructions alone, no element type")
        if dtype == self.dtype:
            return self
        count = int(layout.size(self.shape))
        return TensorSSA(seam.current().convert(self.vector, self.dtype, dtype, count), self.shape, dtype)

    def bitcast(self, dtype: DType) -> TensorSSA:
        """View the bits of the elements as `dtype`, a type of the same width."""
        if not isinstance(dtype, DType) or dtype.width != self.dtype.width:
            raise CuteError(f"bitcast: from {self.dtype} to {dtype!r}; the widths must be the same")
        return TensorSSA(seam.current().bitcast(self.vector, dtype), self.shape, dtype)

    def reshape(self, shape: IntTuple) -> TensorSSA:
        """Return the same elements in colexicographic order under `shape`, static and of the same size."""
        if not seam.is_static(shape) or layout.size(shape) != layout.size(self.shape):
            raise CuteError(
                f"reshape: shape {shape} does not have the {layout.size(self.shape)} elements of {self.shape}"
            )
        return TensorSSA(self.vector, shape, self.dtype)

    def broadcast_to(self, target_shape: IntTuple) -> TensorSSA:
        """Repeat modes of one element to those of `target_shape`; missing last modes count as of one element."""
        if layout.unwrap(target_shape) == layout.unwrap(self.shape):
            return TensorSSA(self.vector, target_shape, self.dtype)
        strides = broadcast_strides(self.shape, target_shape)
        fits_a_thread("broadcast_to", int(layout.size(target_shape)), self.dtype)
        return self._take(layout.Layout(target_shape, strides), 0, target_shape)

    def _take(self, lay: Any, offset: int, shape: Any) -> TensorSSA:
        indices = tuple(int(offset + layout.crd2idx(i, lay)) for i in range(int(layout.size(lay))))
        return TensorSSA(seam.current().take(self.vector, indices), shape, self.dtype)

    def __getitem__(self, coord: Any) -> Any:
        lay = layout.make_layout(self.shape)
        if not seam.is_static(coord):
            return _TENSOR_OF[0](self)[coord]
        if isinstance(coord, tuple) and len(coord) != layout.rank(lay):
            raise CuteError(f"TensorSSA[{coord}]: {len(coord)} modes, but {self.shape} has {layout.rank(lay)}")
        if coord is None or layout.has_underscore(coord):
            rest, offset = layout.slice_and_offset(coord, lay)
            return self._take(rest, int(offset), rest.shape)
        index = int(layout.crd2idx(coord, lay))
        if not 0 <= index < layout.size(lay):
            raise CuteError(f"TensorSSA[{coord}]: outside of the shape {self.shape}")
        return seam.current().lane(self.vector, index)

    def reduce(self, op: ReductionOp, init_val: Any, reduction_profile: Any = 0) -> Any:
        """Combine the elements and `init_val` by `op`, a ReductionOp but INC and DEC: in pairs, as a tree; 16-bit and
        8-bit floats in Float32, rounded once. reduction_profile: 0 for all elements, to a scalar; or a tuple like
        (None, 1), which reduces the modes not marked None, to a vector of the others' shape."""
        if not isinstance(op, ReductionOp) or op in (ReductionOp.INC, ReductionOp.DEC):
            raise CuteError(f"reduce: op {op!r} is none of ReductionOp.ADD, MUL, MIN, MAX, AND, OR, XOR")
        if self.dtype.is_float and op in (ReductionOp.AND, ReductionOp.OR, ReductionOp.XOR):
            raise CuteError(f"reduce: {self.dtype} elements have no bits for {op!r}; convert with .to(cute.Int32)")
        narrow = self.dtype.is_float and self.dtype.width < 32
        source = self.to(Float32) if narrow else self
        if not layout.has_underscore(reduction_profile):
            out = source._tree(op.value, 1, tuple(range(int(layout.size(self.shape)))))
            b = seam.current()
            total = b.elementwise(op.value, source.dtype, b.lane(out.vector, 0), init_val)
            return b.cast(total, self.dtype) if narrow else total
        lay = layout.make_layout(self.shape)
        kept = layout.slice_and_offset(_marked(reduction_profile, keep=True), lay)[0]
        gone = layout.slice_and_offset(_marked(reduction_profile, keep=False), lay)[0]
        offsets = [int(layout.crd2idx(i, kept)) for i in range(int(layout.size(kept)))]
        steps = [int(layout.crd2idx(i, gone)) for i in range(int(layout.size(gone)))]
        parts = source._tree(op.value, len(offsets), tuple(s + k for s in steps for k in offsets))
        result = elementwise(op.value, TensorSSA(parts.vector, kept.shape, source.dtype), init_val)
        return result.to(self.dtype)

    def _tree(self, op: str, width: int, indices: tuple[int, ...]) -> TensorSSA:
        """Groups of `width` elements, at `indices` one group after the other, combined into one group."""
        b, dtype = seam.current(), self.dtype
        count, vector = len(indices) // width, b.take(self.vector, indices)
        left_over = []
        while count > 1:
            half = count // 2
            if count % 2:
                left_over.append(b.take(vector, range(2 * half * width, count * width)))
            low, high = b.take(vector, range(half * width)), b.take(vector, range(half * width, 2 * half * width))
            vector, count = b.elementwise(op, dtype, low, high), half
        for rest in left_over:
            vector = b.elementwise(op, dtype, vector, rest)
        return TensorSSA(vector, width, dtype)

    def __add__(self, o: Any) -> Any:
        return elementwise("add", self, o)

    def __radd__(self, o: Any) -> Any:
        return elementwise("add", o, self)

    def __sub__(self, o: Any) -> Any:
        return elementwise("sub", self, o)

    def __rsub__(self, o: Any) -> Any:
        return elementwise("sub", o, self)

    def __mul__(self, o: Any) -> Any:
        return elementwise("mul", self, o)

    def __rmul__(self, o: Any) -> Any:
        return elementwise("mul", o, self)

    def __truediv__(self, o: Any) -> Any:
        return elementwise("div", self, o)

    def __rtruediv__(self, o: Any) -> Any:
        return elementwise("div", o, self)

    def __floordiv__(self, o: Any) -> Any:
        return elementwise("floordiv", self, o)

    def __rfloordiv__(self, o: Any) -> Any:
        return elementwise("floordiv", o, self)

    def __mod__(self, o: Any) -> Any:
        return elementwise("mod", self, o)

    def __rmod__(self, o: Any) -> Any:
        return elementwise("mod", o, self)

    def __pow__(self, o: Any) -> Any:
        if type(o) is int and 0 < o <= 64:
            return _power(self, o)
        if not self.dtype.is_float:
            raise CuteError(f"{self!r} ** {o!r}: integers take static exponents from 1 to 64; use .to(Float32)")
        return elementwise("pow", self, o)

    def __rpow__(self, o: Any) -> Any:
        return elementwise("pow", o, self if self.dtype.is_float else self.to(Float32))

    def __and__(self, o: Any) -> Any:
        return elementwise("and", self, o)

    __rand__ = __and__

    def __or__(self, o: Any) -> Any:
        return elementwise("or", self, o)

    __ror__ = __or__

    def __xor__(self, o: Any) -> Any:
        return elementwise("xor", self, o)

    __rxor__ = __xor__

    def __lshift__(self, o: Any) -> Any:
        return elementwise("shl", self, o)

    def __rshift__(self, o: Any) -> Any:
        return elementwise("shr", self, o)

    def __neg__(self) -> Any:
        return elementwise("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return elementwise("abs", self)

    def __invert__(self) -> Any:
        return elementwise("not", self)

    __lt__, __le__, __gt__, __ge__ = map(_comparing, ("<", "<=", ">", ">="))

    def __eq__(self, o: Any) -> Any:
        return elementwise("==", self, o)

    def __ne__(self, o: Any) -> Any:
        return elementwise("!=", self, o)

    __hash__ = None  # type: ignore[assignment]

    # what Python asks of one number, or of a sequence, and a vector in registers is not

    def __bool__(self) -> bool:
        raise CuteError(
            f"{self!r} has no truth value: it holds {layout.size(self.shape)}; choose by element with "
            "cute.where(v > 0, x, y), cute.max or cute.min, or ask of all with cute.any_(v), cute.all_(v) or v.reduce"
        )

    def __float__(self) -> float:
        raise CuteError(f"{self!r} is not a number: v[i] is one of its elements, and v.to(cute.Float32) converts each")

    __int__ = __index__ = __float__

    def __contains__(self, x: Any) -> bool:
        raise CuteError(f"{self!r}: `x in v` is cute.any_(v == x)")

    def __iter__(self) -> Any:
        raise CuteError(
            f"{self!r} cannot be iterated over: its elements are v[i], i in cute.range_constexpr"
            f"({layout.size(self.shape)}), and v.reduce combines them"
        )

    def __len__(self) -> int:
        raise CuteError(f"{self!r} has no len(): its size is cute.size(v.shape)")

    def __repr__(self) -> str:
        return f"TensorSSA({self.dtype}, {self.shape})"


def _marked(profile: Any, keep: bool) -> Any:
    """A coordinate that slices out the modes marked None in `profile`, or all the others."""
    if isinstance(profile, tuple):
        return tuple(_marked(p, keep) for p in profile)
    return None if (profile is None) is keep else 0


def promote(a: DType, b: DType) -> DType:
    """Return the type in which two meet: floats win over integers, the wider over the narrower, unsigned over signed of
    the same width; two floats of the same width make Float32; Boolean gives way."""
    if a == b:
        return a
    if Boolean in (a, b):
        return b if a == Boolean else a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.width == b.width:
        return Float32 if a.is_float else (b if a.signed else a)
    return a if a.width > b.width else b


def _common_type(op: str, operands: tuple[Any, ...]) -> DType:
    found: list[DType] = [x.dtype for x in operands if isinstance(x, TensorSSA)]
    dtype = found[0]
    for d in found[1:]:
        dtype = promote(dtype, d)
    for x in operands:
        if isinstance(x, TensorSSA):
            continue
        scalar = seam.current().type_of(x)
        kind = scalar.kind
        if kind == "float" and not dtype.is_float:
            dtype = Float32
        elif kind == "float" and scalar.width < 64:  # which Python's own floats have
            dtype = promote(dtype, scalar)
        elif kind in ("int", "uint") and dtype.kind == "bool":
            dtype = Int32
    return _computed(op, dtype)


def _computed(op: str, dtype: DType) -> DType:
    """Return the type in which an operation of values of a type is computed."""
    if op in seam.MATH and not dtype.is_float:
        return Float32
    if op in (*seam.ARITHMETIC, *seam.INTEGER) and dtype.kind == "bool":
        return Int32
    return dtype


def elementwise(op: Any, *operands: Any) -> Any:
    """Apply `op` (see `Backend.elementwise`) to vectors, their types promoted and shapes broadcast, and scalars; the
    result is a scalar if all are."""
    if any(isinstance(x, Followed) for x in operands):
        return followed(op, operands)
    name = op if isinstance(op, str) else "div"  # the rows of the table are functions of floats
    b = seam.current()
    vectors = [x for x in operands if isinstance(x, TensorSSA)]
    if not vectors:
        return b.elementwise(op, _scalar_type(name, operands), *operands)
    dtype = _common_type(name, operands)
    if dtype.is_integer and dtype.width < 8:
        raise CuteError(f"{getattr(op, 'name', op)}: {dtype} elements have no arithmetic; convert with .to(cute.Int8)")
    if dtype.is_float and name in ("and", "or", "xor", "not", "shl", "shr"):
        raise CuteError(f"{name}: {dtype} elements have no bits to compute with; convert with .to(cute.Int32)")
    shape: Any = 1
    for x in vectors:
        shape = broadcast_shape(shape, x.shape)
    ready = [x.to(dtype).broadcast_to(shape).vector if isinstance(x, TensorSSA) else x for x in operands]
    result = Boolean if op in seam.COMPARISONS else dtype
    return TensorSSA(b.elementwise(op, dtype, *ready), shape, result)


def _scalar_type(op: str, operands: tuple[Any, ...]) -> DType:
    found = [seam.current().type_of(x) for x in operands]
    dtype = found[0]
    for d in found[1:]:
        dtype = promote(dtype, d)
    return _computed(op, dtype)


def _elements_of(held: Any, shape: Any, dtype: DType) -> Any:
    """The vector of another TensorSSA, for another shape."""
    if not isinstance(held, TensorSSA):
        raise CuteError(f"`vector` of `TensorSSA` is {described(held)}: expected is a vector of registers")
    if held.dtype != dtype or layout.size(held.shape) != layout.size(shape):
        raise CuteError(f"TensorSSA: vector {held!r} does not make {shape} elements of {dtype}")
    return held.vector


def bitcast(value: Any, src: DType, dst: DType) -> Any:
    """View the bits of a scalar of type `src` as a scalar of type `dst`, of the same width."""
    b = seam.current()
    return b.lane(b.bitcast(b.pack(src, (value,)), dst), 0)


def _power(x: TensorSSA, n: int) -> TensorSSA:
    half = x if n < 2 else _power(x, n // 2)
    return x if n == 1 else half * half if n % 2 == 0 else half * half * x


@traced
def where(cond: Any, x: Any, y: Any) -> Any:
    """Select `x` where `cond` is true and `y` elsewhere, element by element; each may be a vector or a scalar.

    >>> cute.simulate(lambda: print(cute.where(cute.arch.lane_idx() > 0, 1, 2)))[1, 1]()
    2
    """
    if any(isinstance(v, Followed) for v in (cond, x, y)):
        return followed("where", (cond, x, y))
    if not isinstance(cond, TensorSSA):
        if hasattr(cond, "__len__"):
            raise CuteError(f"where: cond is {described(cond)}: give a truth value, or a vector of such")
        if not isinstance(x, TensorSSA) and not isinstance(y, TensorSSA):
            return seam.current().select(cond, x, y)
    elif cond.dtype != Boolean:
        raise CuteError(f"where: cond has {cond.dtype} elements, not Boolean; compare, as in cond != 0")
    b, chosen = seam.current(), (x, y)
    vectors = [v for v in (cond, x, y) if isinstance(v, TensorSSA)]
    shape: Any = 1
    for v in vectors:
        shape = broadcast_shape(shape, v.shape)
    if any(isinstance(v, TensorSSA) for v in chosen):
        dtype = _common_type("where", chosen)
    else:
        kinds = [b.type_of(v).kind for v in chosen]
        dtype = Float32 if "float" in kinds else Boolean if kinds == ["bool", "bool"] else Int32
    ready = [v.to(dtype).broadcast_to(shape).vector if isinstance(v, TensorSSA) else v for v in chosen]
    at = cond.broadcast_to(shape).vector if isinstance(cond, TensorSSA) else cond
    return TensorSSA(b.elementwise("where", dtype, at, *ready), shape, dtype)


@traced
def full(shape: IntTuple, fill_value: Number, dtype: DType) -> TensorSSA:
    """Make a vector of `shape`, which is static, with every element `fill_value`, converted to `dtype`.

    >>> def kernel():
    ...     print(cute.full((2, 2), 1.5, cute.Float32).reduce(cute.ReductionOp.ADD, 0.0))
    >>> cute.simulate(kernel)[1, 1]()
    6.0
    """
    if not isinstance(dtype, DType):
        raise CuteError(f"full: dtype {dtype!r} is not an element type; use one like cute.Float32")
    if not seam.is_static(shape):
        raise CuteError(f"full: shape {shape} must be static, for registers are{how_static(shape)}")
    value = seam.current().cast(fill_value, dtype)
    count = fits_a_thread("full", int(layout.size(shape)), dtype)
    return TensorSSA(seam.current().pack(dtype, (value,) * count), shape, dtype)


def _like(a: Any, dtype: DType | None) -> tuple[Any, DType]:
    if not hasattr(a, "shape") or not hasattr(a, "element_type"):
        raise CuteError(f"full_like: {a!r} is neither a vector nor a tensor")
    return a.shape, dtype or a.element_type


@traced
def full_like(a: Any, fill_value: Number, dtype: DType | None = None) -> TensorSSA:
    """Make a vector of the shape of `a` (a vector or tensor) with every element `fill_value`. dtype: by default that of
    `a`.

    >>> def kernel():
    ...     print(cute.full_like(cute.full(4, 2.0, cute.Float32), 5.0)[0])
    >>> cute.simulate(kernel)[1, 1]()
    5.0
    """
    shape, of = _like(a, dtype)
    return full(shape, fill_value, of)


@traced
def zeros_like(a: Any, dtype: DType | None = None) -> TensorSSA:
    """Make a vector of zeros of the shape of `a`. dtype: by default that of `a`.

    >>> def kernel():
    ...     print(cute.zeros_like(cute.full(4, 2.0, cute.Float32))[0])
    >>> cute.simulate(kernel)[1, 1]()
    0.0
    """
    return full_like(a, 0, dtype)


@traced
def ones_like(a: Any, dtype: DType | None = None) -> TensorSSA:
    """Make a vector of ones of the shape of `a`. dtype: by default that of `a`.

    >>> def kernel():
    ...     print(cute.ones_like(cute.full(4, 2.0, cute.Float32))[0])
    >>> cute.simulate(kernel)[1, 1]()
    1.0
    """
    return full_like(a, 1, dtype)


@traced
def empty_like(a: Any, dtype: DType | None = None) -> TensorSSA:
    """Make a vector of the shape of `a` to be overwritten: zeros, which cost nothing if nobody reads them. dtype: by
    default that of `a`.

    >>> def kernel():
    ...     print(cute.empty_like(cute.full(4, 2.0, cute.Float32)).shape)
    >>> cute.simulate(kernel)[1, 1]()
    4
    """
    return full_like(a, 0, dtype)


def _truths(x: Any, what: str) -> TensorSSA:
    if not isinstance(x, TensorSSA):
        raise CuteError(f"{what}: {x!r} is not a TensorSSA")
    return x.to(Boolean)


@traced
def any_(x: TensorSSA) -> Any:
    """Return whether at least one element of `x`, a TensorSSA, is true (not zero).

    >>> def kernel():
    ...     print(cute.any_(cute.full(4, 2.0, cute.Float32) > 3.0))
    >>> cute.simulate(kernel)[1, 1]()
    False
    """
    return _truths(x, "any_").reduce(ReductionOp.OR, False)


@traced
def all_(x: TensorSSA) -> Any:
    """Return whether all elements of `x`, a TensorSSA, are true (not zero).

    >>> def kernel():
    ...     print(cute.all_(cute.full(4, 2.0, cute.Float32) > 1.0))
    >>> cute.simulate(kernel)[1, 1]()
    True
    """
    return _truths(x, "all_").reduce(ReductionOp.AND, True)
