# SPDX-License-Identifier: Apache-2.0
"""The interface by which traced code asks whoever runs it, and the backend that runs now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from numba_cute.seam.ground.error import CuteError, Signal
from numba_cute.seam.ground.places import at_line_of

from .records import dataclass


@dataclass(frozen=True)
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
"""Operations of Float32 and Float64, rounded towards zero, upwards or downwards."""
MATH = ("div", "pow", "rem", "fma", "atan2", "copysign", *UNARY_MATH, *DIRECTED)
"""Operations of floats. round: halves away from zero; roundeven: to even; rem: C's fmod."""
ELEMENTWISE = COMPARISONS + LOGICAL + ARITHMETIC + INTEGER + MATH
"""The operations of `Backend.elementwise`: of integers and floats alike, of integers (INTEGER) or of floats (MATH)."""


class Backend(Protocol):
    """The requests that traced code may make of whoever runs it. Addresses are integers: bytes, 32-bit in shared memory
    (the shared::cta window), 64-bit in global memory."""

    arch: str
    """The target, as in "sm_90a"."""

    def issue(self, instr: Any, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        """Issue one instruction of the table. Returns its `out` operands: none, one leaf, or a tuple of leaves (a
        vector `out` operand passed as a `Regs` span is written there instead and not returned)."""

    def either(self, compiled: Callable[[], Any], simulated: Callable[[], Any]) -> Any:
        """Return what the one gives where the code is compiled, and the other where it is simulated: for what the
        simulator knows no meaning of."""

    def load(self, dtype: Any, space: str, address: Any, count: int, align: int) -> tuple[Any, ...]:
        """Load `count` consecutive elements from "smem", "gmem" or "generic" memory, as leaves."""

    def store(self, dtype: Any, space: str, address: Any, values: Sequence[Any], align: int) -> None:
        """Store consecutive elements, as `load` loads them."""

    def swizzled(self, swizzle: Any, address: Any, width: int) -> Any:
        """Compute `swizzle(address)`, to access an element of `width` bits there. A compiler may leave out of it the
        terms of a sum that are multiples of its period."""

    def part_by_swizzle(self, swizzle: Any, addresses: Any, width: int) -> None:
        """Note that these `addresses` of shared memory, of elements of `width` bits, are by a swizzle that no pointer
        has: those of a part of a swizzled tensor."""

    def reinterprets(self, address: Any, width: int, other: int) -> None:
        """Note that memory from `address` on is viewed as elements of `other` bits, where it was seen as of `width`."""

    def copy_to_regs(self, space: str, address: Any, dst: Regs, align: int) -> None:
        """Load `dst.count` consecutive elements into registers with one access (at most 16 bytes)."""

    def copy_from_regs(self, src: Regs, space: str, address: Any, align: int) -> None:
        """Store `src.count` consecutive elements from registers with one access (at most 16 bytes)."""

    def registers(self, dtype: Any, count: int) -> Any:
        """Return a new register file of `count` elements of this thread; its contents are undefined."""

    def same_registers(self, a: Any, b: Any) -> bool | None:
        """Return whether two register files are one; None if that is not known."""

    def read(self, regs: Regs) -> Any:
        """Return the one element of a span of one, as a leaf."""

    def write(self, regs: Regs, value: Any) -> None:
        """Set the one element of a span of one."""

    def fill(self, regs: Regs, value: Any) -> None:
        """Set every element of a span to one value."""

    def vector(self, regs: Regs) -> Any:
        """Return the elements of a span as one immutable value: a leaf of `count` elements."""

    def unvector(self, vector: Any, regs: Regs) -> None:
        """Set a span from such a value."""

    def convert(self, vector: Any, src: Any, dst: Any, count: int) -> Any:
        """Convert each element of such a value: to nearest even, and floats to integers towards zero."""

    def pack(self, dtype: Any, values: Sequence[Any]) -> Any:
        """Make such a value of `dtype` elements from scalars."""

    def bitcast(self, vector: Any, dtype: Any) -> Any:
        """View such a value's bits as elements of another type: of the same width, or, to and from one of 4 bits, as
        many as they make."""

    def lane(self, vector: Any, index: int) -> Any:
        """Return one element of such a value, as a leaf."""

    def take(self, vector: Any, indices: Sequence[int]) -> Any:
        """Return such a value of the elements at these indices, which are static."""

    def elementwise(self, op: Any, dtype: Any, *operands: Any) -> Any:
        """Apply one operation to each element; the result is such a value, or a leaf if all operands are scalars.

        Vectors have elements of type `dtype` and one count; scalars are converted to it and meet each element. The
        result has that type too, or Boolean for a comparison. op: a name of `ELEMENTWISE`, or a row of the instruction
        table whose scalar operands and result are f32. 16-bit and 8-bit floats are computed in Float32 and rounded.
        """

    def type_of(self, scalar: Any) -> Any:
        """Return the element type of a scalar; in the simulator, where Python's numbers have none, the widest of its
        kind."""

    def cast(self, value: Any, dtype: Any) -> Any:
        """Convert a scalar to another type; a static value becomes a run-time one."""

    def select(self, cond: Any, a: Any, b: Any) -> Any:
        """Return `a` if `cond` else `b`, both evaluated."""

    def compare(self, op: str, a: Any, b: Any) -> Any:
        """Compare two scalars, giving a run-time bool. op: "<", "<=", "==", "!=", ">", ">="."""

    def when(self, cond: Any, then: Callable[[], None], *, of_python: bool = False) -> None:
        """Run `then` if `cond`, which may be a run-time bool. of_python: `then` may change what Python holds, as the
        user's functions do, and not memory and registers alone."""

    def guarded(self, cond: Any) -> AbstractContextManager[None]:
        """Make the context manager whose block runs if `cond`, a run-time bool of compiled code."""

    def loop(self, start: Any, stop: Any, body: Callable[[Any], None]) -> None:
        """Run `body(i)` for each `i` in [start, stop), either of which may be known only at run time."""

    def flag(self) -> Regs:
        """Return one Uint32 register for each run of the calling kernel or device function, 0 at first: the carry."""

    def static_smem(self, nbytes: int, align: int) -> Any:
        """Return the address of `nbytes` of static shared memory for the calling line of the kernel."""

    def known_launch(self) -> tuple[tuple[int, int, int] | None, int | None]:
        """Return (the cluster's shape, the most threads of a block), as far as they are known: None if not."""

    def loses(self, why: Callable[[], str | None]) -> None:
        """Note of the user's line what `why` says costs it speed, if anything, where code is compiled. `why` is not
        asked elsewhere."""

    def smem_base(self) -> Any:
        """Return the address of the first byte of dynamic shared memory: a multiple of 1024."""

    def smem_needs(self, total_bytes: Any) -> None:
        """Record that the kernel uses the first `total_bytes` of dynamic shared memory."""

    def allocate_smem(self, nbytes: int, align: int) -> int:
        """Give out `nbytes` of dynamic shared memory for the calling line of the kernel: their place from `smem_base`,
        a multiple of `align`."""

    def allocates_smem(self) -> bool:
        """Return whether `allocate_smem` has given out memory in this kernel, in which the calling line stands."""

    def at_exit(self, what: Callable[[], None]) -> None:
        """Have all threads do `what`, which uses nothing known at run time, at the end of the kernel."""

    def tensor_map(self, maps: Any, form: Any, tensor: Any) -> Any:
        """Return the address of the tensor map that `form` makes of `tensor` (`form.record(tensor)`): one of those that
        the kernel's argument brought, `maps`."""

    def made_tensor(self, tensor: Any) -> Any:
        """Return a tensor in global memory, which the kernel made of a pointer, as kernels of its kind know tensors."""

    def map_room(self, count: int) -> tuple[Any, Any]:
        """Give memory for `count` tensor maps that the calling line of the kernel makes, for each block: the address of
        the first block's in global memory, and by how many bytes the next block's is further on."""

    def gave(self, fn: Any, result: Any) -> None:
        """Note that a method that is called `for_result` gave it to who called: the simulator looks whether that drops
        it."""

    def lanes_meet(self) -> None:
        """Say that the lanes of a warp, which all come here, go on by one of them, which tells of what all have done. A
        simulator that does not tell them apart (without the check `converged`) has them meet."""

    def told(self, kind: int, name: str, payload: Any) -> bool:
        """Note an event of a timeline, if who runs the code can: the simulator. False: the code must write it down."""

    def timeline(self) -> Any:
        """Return the address, in global memory, of what says where to: the buffer's address (64 bits), the most events
        of a warp and the number of blocks that are recorded (32 bits each)."""

    def tells(self) -> bool:
        """Say whether what the code prints while it is compiled is to be seen now: once."""

    def printf(self, fmt: str, args: Sequence[Any]) -> None:
        """Print at most 32 values of the types that the format names, as C does: integers of 32 and (ll) 64 bits,
        doubles, and for each %s a Boolean, which prints "True" or "False"."""


class _Stack(threading.local):
    def __init__(self) -> None:
        self.backends: list[Any] = []
        self.host_calls = 0
        self.computes: Any = None


RUNNING = _Stack()
"""The backends that run code of this thread: none, on the host. host_calls: the number of calls of host functions
(`cute.jit`) under way. computes: the function that computes for these at once; None if it was not asked for yet."""
_computing: list[Callable[[bool], Any]] = []


def computed_by(make: Callable[[bool], Any]) -> None:
    """Have host functions compute with the backend that `make(trial)` makes. trial: what is stored and printed is to be
    for nobody, as while `cute.compile` runs the function."""
    _computing[:] = [make]


def current() -> Backend:
    """Return the backend that runs the code now; in a host function what computes there. An error on the host outside
    of one, where there are no registers, threads or instructions."""
    if RUNNING.backends:
        return RUNNING.backends[-1]  # type: ignore[no-any-return]
    if RUNNING.host_calls and _computing:
        if RUNNING.computes is None:
            RUNNING.computes = _computing[0](False)
        return RUNNING.computes  # type: ignore[no-any-return]
    raise CuteError(
        "this works only inside a kernel or a @cute.jit function: call it from one, on a GPU or in cute.simulate "
        "(Numba's own simulator, NUMBA_ENABLE_CUDASIM=1, does not know it)"
    )


def current_or(default: Any) -> Any:
    """Return `current()`, or `default` on the host, in a host function too."""
    return RUNNING.backends[-1] if RUNNING.backends else default


def computes_on_host() -> bool:
    """Say whether the code that runs is a host function's, which computes at once."""
    return RUNNING.host_calls > 0 and not RUNNING.backends


def tries() -> bool:
    """Say whether host functions run for what they launch alone, with numbers that may stand for others."""
    return RUNNING.computes is not None and RUNNING.computes.trial


@contextmanager
def trying() -> Any:
    """Have host functions run for what they launch alone: nothing that they store or print is seen."""
    before = RUNNING.computes
    RUNNING.computes = _computing[0](True) if _computing else None
    try:
        yield
    finally:
        RUNNING.computes = before


def loses(why: Callable[[], str | None]) -> None:
    """Have it noted what costs the user's line speed, as `Backend.loses`; on the host nothing is."""
    backend = current_or(None)
    if backend is not None:
        backend.loses(why)


@contextmanager
def following(backend: Any):  # type: ignore[no-untyped-def]
    """Make `backend` the current one. Signal: what runs raised it; also where a user's `except` caught it there."""
    RUNNING.backends.append(backend)
    try:
        yield backend
    except Exception:
        if not getattr(backend, "signals", ()):
            raise
    finally:
        RUNNING.backends.pop()
    for signal in getattr(backend, "signals", ()):
        raise signal


@contextmanager
def running(backend: Any):  # type: ignore[no-untyped-def]
    """Make `backend` the current one. CuteError: also where what runs asks for what is known at run time alone."""
    try:
        with following(backend):
            yield backend
    except Signal as e:
        raise refused(e) from e


def refused(signal: Signal) -> CuteError:
    """Return the error that a signal is where nothing but tracing is possible."""
    return at_line_of(CuteError(str(signal)), signal)


def signalled(signal: Signal) -> Signal:
    """Note a signal with whoever runs the code, and return it, to be raised."""
    noted = getattr(current_or(None), "signals", None)
    if noted is not None:
        noted.append(signal)
    return signal


def settled(e: BaseException) -> None:
    """Note that this library's own code, which caught a signal, goes another way."""
    noted = getattr(current_or(None), "signals", [])
    if e in noted:
        noted.remove(e)
