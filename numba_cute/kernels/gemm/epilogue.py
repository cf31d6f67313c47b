# SPDX-License-Identifier: Apache-2.0
"""Epilogues to choose from, and what makes one: a function of the sums with tensors of its own.

y = gemm(a, b, epilogue=bias(v) | gelu() | residual(r))
y = gemm(a, b, epilogue=Epilogue(lambda x, v: cute.where(x > 0, x, v * x), columns(slopes)))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute import CuteError

from .. import entry
from ..carried import Known, keep, known
from .hook import Hook, HostNumber, Matrix, Result, Step, Vector
from .operands import view

TURNED = {"rows": "columns", "columns": "rows", "all": "all", "both": "both"}


class Given(NamedTuple):
    """A tensor that an epilogue reads or writes. tensor: of any element type (a result: float32). along: "rows" or
    "columns", of which it has a value each (or, of each matrix of a batch, in two modes, the batch first); "all": one
    value; "both": a matrix like C. fold: of a result, "sum", or "max" of magnitudes."""

    tensor: Any
    along: str
    fold: str = ""

    def check(self, c: Any, shape: Any) -> None:
        """Refuse a tensor that does not fit the result `c`, with CuteError. shape: of the product that becomes it."""
        said = f"matmul: the epilogue's {entry.described(self.tensor)} along {self.along!r}"
        if getattr(self.tensor, "device", None) != c.device:
            raise CuteError(f"{said} must be a tensor on {c.device}, where the result is")
        if self.along == "both":
            if tuple(self.tensor.shape) != tuple(shape) or self.tensor.dtype != c.dtype:
                raise CuteError(
                    f"{said} must have the shape of the product, {tuple(shape)}, and elements of the result's type, "
                    f"{c.dtype}"
                )
        elif self.along == "all" and self.tensor.numel() != 1:
            raise CuteError(f"{said} must have one element")
        if self.fold and (entry.type_name(self.tensor) != "float32" or not self.tensor.is_contiguous()):
            raise CuteError(f"{said} must be contiguous float32 for its sums or maxima: torch.zeros(…)")

    def check_as_it_lies(self, c: Any) -> None:
        """Refuse it for an entry that makes no copies: a matrix must be contiguous along the same mode as `c`, and in
        rows of multiples of 16 bytes."""
        self.check(c, c.shape)
        t = self.tensor
        if self.along != "both":
            return
        unit, inner = 16 // t.element_size(), -1 if c.stride(-1) == 1 else -2
        steps = [s for i, (n, s) in enumerate(zip(t.shape, t.stride()), -t.ndim) if n > 1 and i != inner]
        if t.stride(inner) != 1 or t.data_ptr() % 16 or any(s % unit for s in steps):
            raise CuteError(
                f"matmul: the epilogue's {entry.described(t)} along 'both' must have the order of the result, "
                f"{entry.described(c)}, and begin each row at a multiple of 16 bytes: give a copy that does"
            )


def _one_of(tensor: Any) -> Any:
    """View a tensor of one element: one without a mode has one then."""
    return tensor.reshape(1) if getattr(tensor, "ndim", 1) == 0 else tensor


def rows(tensor: Any) -> Given:
    """Read a value for each row of C. tensor: (M,), or (batch, M)."""
    return Given(tensor, "rows")


def columns(tensor: Any) -> Given:
    """Read a value for each column of C. tensor: (N,), or (batch, N)."""
    return Given(tensor, "columns")


def one(tensor: Any) -> Given:
    """Read one value, that lies on the device. tensor: of one element."""
    return Given(_one_of(tensor), "all")


def matrix(tensor: Any) -> Given:
    """Read a value for each element of C. tensor: of C's shape and element type."""
    return Given(tensor, "both")


def sums(tensor: Any, along: str = "rows") -> Given:
    """Add up a result. tensor: float32; what is added to. along: "rows" for a sum of each row, "columns", or "all"."""
    return Given(_one_of(tensor), along, "sum")


def magnitude(tensor: Any, along: str = "all") -> Given:
    """Find a result's greatest magnitude. tensor: float32, which keeps what it has if that is more. along: as for
    `sums`."""
    return Given(_one_of(tensor), along, "max")


class Epilogue:
    """A change to a GEMM's sums before they are rounded and stored.

    function: function(x, *inputs) gives C's values. x: a vector (a TensorSSA) of Float32, some of the sums; the inputs
    are vectors that broadcast to it. Python that may be traced: no branch on values (`cute.where` chooses). It is known
    by its code, so define it once, and not at each call. inputs: numbers, and what `rows`, `columns`, `one` and
    `matrix` give (one `matrix` in all). results: what `sums` and `magnitude` give; the function then returns a tuple,
    C's values and a vector for each of them. pairs: x is (left, right), the sums of column j of both halves of B's
    rows, of which one of C is made: C has half as many columns.

    `first | second` does one after the other. Raises CuteError for anything else.
    """

    def __init__(self, function: Callable[..., Any], *inputs: Any, results: Any = (), pairs: bool = False) -> None:
        results = results if isinstance(results, tuple) and not isinstance(results, Given) else (results,)
        if not callable(function):
            raise CuteError(f"Epilogue: function {function!r} is not a function of the sums")
        for x in inputs:
            if not isinstance(x, (int, float)) and not (isinstance(x, Given) and not x.fold):
                raise CuteError(
                    f"Epilogue: input {x!r} is neither a number nor a tensor with "
                    "a role: give rows(v), columns(v), one(v) or matrix(r)"
                )
        for x in results:
            if not isinstance(x, Given) or not x.fold:
                raise CuteError(f"Epilogue: result {x!r} is not what sums(out) or magnitude(out) gives")
        self.tensors = [x.tensor for x in (*inputs, *results) if isinstance(x, Given)]
        self.form: Form = ((function, tuple(map(_bare, inputs)), tuple(map(_bare, results)), pairs),)
        self._known: Known | None = None
        check(self.form)

    def __or__(self, other: Epilogue) -> Epilogue:
        """Do `other` after this one."""
        if not isinstance(other, Epilogue):
            return NotImplemented
        tensors = self.tensors + other.tensors
        if entry.compiling():
            return Epilogue.of(self.form + other.form, tensors)
        joined = _joined.get((self.known, other.known))
        if joined is None:
            joined = Epilogue.of(self.form + other.form, ())
            joined.known  # noqa: B018  # so that all made of it have it
            keep(_joined, (self.known, other.known), joined)
        return joined.on(tensors)

    @staticmethod
    def of(form: Form, tensors: Sequence[Any]) -> Epilogue:
        """Make an epilogue. form: that of another, or of several in a row. tensors: in their order."""
        check(form)
        out = object.__new__(Epilogue)
        out.form, out._known, out.tensors = form, None, list(tensors)
        return out

    def on(self, tensors: Sequence[Any]) -> Epilogue:
        """Make one that does the same with other tensors."""
        out = object.__new__(Epilogue)
        out.form, out._known, out.tensors = self.form, self._known, list(tensors)
        return out

    @property
    def known(self) -> Known:
        """Return what stands for its form where launches are remembered."""
        if self._known is None:
            self._known = known(self.form)
        return self._known

    @property
    def steps(self) -> list[tuple[Any, tuple[Any, ...], tuple[Given, ...], bool]]:
        """List what it does: functions, each with its inputs, results, and whether it takes pairs."""
        left = iter(self.tensors)
        put = lambda x: x._replace(tensor=next(left)) if isinstance(x, Given) else x  # noqa: E731
        return [(f, tuple(map(put, i)), tuple(map(put, r)), p) for f, i, r, p in self.form]

    @property
    def given(self) -> list[Given]:
        """List the tensors that it takes."""
        return [x for _, inputs, results, _ in self.steps for x in (*inputs, *results) if isinstance(x, Given)]

    @property
    def spread(self) -> int:
        """Return how many columns of sums make one of C: 1, or 2 with `pairs`."""
        return 2 if any(pairs for *_, pairs in self.form) else 1

    @property
    def vectors(self) -> int:
        """Return how many vectors it reads: those of columns before a step of pairs twice, of either half."""
        paired, count = self.spread == 2, 0
        for _, inputs, _, pairs in self.steps:
            read = [x.along for x in inputs if isinstance(x, Given) and x.along != "both"]
            count += len(read) + (read.count("columns") if paired and not pairs else 0)
            paired = paired and not pairs
        return count

    @property
    def matrix(self) -> Any:
        """Return its matrix like C, or None."""
        return next((x.tensor for x in self.given if x.along == "both"), None)


Form = tuple[tuple[Any, tuple[Any, ...], tuple[Given, ...], bool], ...]
"""An epilogue without its tensors: it hashes."""

_joined: dict[tuple[Known, Known], Epilogue] = {}
"""Two epilogues in a row, without their tensors."""


def _bare(x: Any) -> Any:
    return x._replace(tensor=None) if isinstance(x, Given) else x


def check(form: Form) -> None:
    """Refuse steps that do not fit each other, with CuteError. form: of an epilogue."""
    matrices = [
        [x for x in inputs if isinstance(x, Given) and x.along == "both"] for _, inputs, _, _ in form
    ]  # of each step  # fmt: skip
    if sum(map(len, matrices)) > 1:
        raise CuteError("Epilogue: it reads more than one matrix like C; there is room for one matrix: add them first")
    paired = [i for i, (*_, pairs) in enumerate(form) if pairs]
    if len(paired) > 1:
        raise CuteError("Epilogue: two of its steps take pairs; one column of C is made of two, not of four")
    for i in range(paired[0] if paired else 0):
        if form[i][2] or matrices[i]:
            raise CuteError(
                "Epilogue: results, and a matrix like C, come behind the step of pairs, not before a pair is one"
            )


def hook(epilogue: Epilogue | None, m: int, n: int, turned: bool, run: int | None, batches: int) -> Hook:
    """Make the epilogue as the kernel takes it. m, n: extents of the kernel's C. turned: its rows are C's columns. run:
    of pairs, as of `Hook`. batches: matrices of C. CuteError for a tensor of other extents."""
    if epilogue is None:
        return Hook()
    steps, of_pairs = [], epilogue.spread == 2
    for function, inputs, results, pairs in epilogue.steps:
        of_pairs = of_pairs and not pairs
        extents = {"rows": n if turned else m, "columns": (m if turned else n) * (1 + of_pairs), "all": 1}
        for x in (x for x in (*inputs, *results) if isinstance(x, Given) and x.along != "both"):
            check_extent(x, extents[x.along], batches)
        taken = tuple(_input(x, turned) for x in inputs)
        steps.append(Step(function, taken, tuple(_result(x, turned) for x in results), pairs))
    return Hook(tuple(steps), cute.Int32(m), cute.Int32(n), run)


def check_extent(x: Given, extent: int, batches: int) -> None:
    """Refuse what has not a value for each of `extent` rows or columns, of each of so many matrices, with CuteError."""
    shape = tuple(map(int, x.tensor.shape))
    if shape not in ((extent,), (batches, extent)) and not (x.along == "all" and math.prod(shape) == 1):
        raise CuteError(
            f"Epilogue: {entry.described(x.tensor)} along {x.along!r}: its shape must be ({extent},), or ({batches}, "
            f"{extent}) for matrices of a batch: give a value for each"
        )


def _input(x: Any, turned: bool) -> Any:
    if not isinstance(x, Given):
        return HostNumber(cute.Float32(x))
    return Matrix() if x.along == "both" else Vector(_values(x), TURNED[x.along] if turned else x.along)


def _result(x: Given, turned: bool) -> Result:
    return Result(_values(x), TURNED[x.along] if turned else x.along, x.fold)


def _values(x: Given) -> Any:
    """The tensor with run-time extents, the batch last."""
    t = view(x.tensor)
    if x.along == "all" or not cute.rank(t):
        return cute.make_tensor(t.iterator, cute.make_layout(1))
    t = cute.make_tensor(t.iterator, cute.select(t.layout, mode=list(range(cute.rank(t)))[::-1]))
    return t.mark_layout_dynamic(leading_dim=0) if t.stride[0] == 1 else t.mark_layout_dynamic()


def known_of(epilogue: Any) -> Any:
    """Give what stands for an epilogue where launches are remembered; what is not an epilogue, None too, as it is."""
    return epilogue.known if isinstance(epilogue, Epilogue) else epilogue


# ---------------------------------------------------------------- ready ones


def _add(x: Any, y: Any) -> Any:
    return x + y


def _multiply(x: Any, y: Any) -> Any:
    return x * y


def _scaled_and_added(x: Any, y: Any, factor: Any) -> Any:
    return x + y * factor


def _relu(x: Any) -> Any:
    return cute.where(x < 0.0, 0.0, x)  # NaN stays


def _sigmoid(x: Any) -> Any:
    return 0.5 * cute.math.tanh(0.5 * x, fastmath=True) + 0.5


def _silu(x: Any) -> Any:
    return x * _sigmoid(x)


def _gelu(x: Any) -> Any:
    inner = x * (0.7978845608028654 + 0.035677408136300125 * x * x)
    half = 0.5 * x
    return half * cute.math.tanh(inner, fastmath=True) + half


def _exact_gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + cute.math.erf(0.7071067811865476 * x))


def _swiglu(x: Any) -> Any:
    return _silu(x[0]) * x[1]


def _geglu(x: Any) -> Any:
    return _gelu(x[0]) * x[1]


def _kept(x: Any) -> Any:
    return x, x


_BIAS, _RESIDUAL = Epilogue(_add, columns(None)), Epilogue(_add, matrix(None))
_RELU, _SILU, _GELU, _EXACT_GELU = map(Epilogue, (_relu, _silu, _gelu, _exact_gelu))
_SWIGLU, _GEGLU = Epilogue(_swiglu, pairs=True), Epilogue(_geglu, pairs=True)
for _ready in (_BIAS, _RESIDUAL, _RELU, _SILU, _GELU, _EXACT_GELU, _SWIGLU, _GEGLU):
    _ready.known  # noqa: B018


def bias(vector: Any) -> Epilogue:
    """Add a value to each column of C. vector: (N,)."""
    return _BIAS.on([vector])


def scale(factor: Any, along: str = "all") -> Epilogue:
    """Multiply C. factor: a number, or a tensor: of one value, or along "rows" or "columns", of one for each."""
    return Epilogue(_multiply, factor if isinstance(factor, (int, float)) else Given(_one_of(factor), along))


def residual(tensor: Any, factor: float = 1.0) -> Epilogue:
    """Add `factor` times a matrix. tensor: of C's shape and element type."""
    if factor == 1.0:
        return _RESIDUAL.on([tensor])
    return Epilogue(_scaled_and_added, matrix(tensor), factor)


def relu() -> Epilogue:
    """Make negative values zero."""
    return _RELU


def silu() -> Epilogue:
    """Give x sigmoid(x), by the fast tanh."""
    return _SILU


def gelu(approximate: str = "tanh") -> Epilogue:
    """Give x times the normal distribution's function. approximate: "tanh", by the fast one, or "none"."""
    if approximate not in ("tanh", "none"):
        raise CuteError(f'gelu: approximate {approximate!r} must be "tanh" or "none"')
    return _GELU if approximate == "tanh" else _EXACT_GELU


def swiglu() -> Epilogue:
    """Give silu(left) * right of the two halves of B's rows (the gate's weights, then the others)."""
    return _SWIGLU


def geglu() -> Epilogue:
    """Give gelu(left) * right of the two halves of B's rows."""
    return _GEGLU


def amax(out: Any, along: str = "all") -> Epilogue:
    """Find the greatest magnitude, before rounding. out, along: as for `magnitude`."""
    return Epilogue(_kept, results=magnitude(out, along))


def total(out: Any, along: str = "rows") -> Epilogue:
    """Add the values up, before rounding. out, along: as for `sums`."""
    return Epilogue(_kept, results=sums(out, along))
