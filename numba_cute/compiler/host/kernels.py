# SPDX-License-Identifier: Apache-2.0
"""`cute.kernel` and `cute.jit`: the decorators of the CuTe DSL, as what they mean here."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from ... import seam
from ...isa.form.limits import BlockBounds
from ...seam import CuteError, current_or
from ...seam.ground.backend import RUNNING
from ...seam.ground.folding import FOLDED
from ...seam.ground.naming import described, shown
from ...seam.guards.kinds import UserFunction
from ...seam.marks.constexpr import LAUNCHER, call_as_annotated, in_order, static_arguments
from ...seam.marks.plain import is_users_frame, users_operation, with_ordinary_parameters
from ...seam.marks.prints import printing
from ...seam.source.class_statements import without_classes
from ...seam.source.with_statements import reaches_with
from ..ground.numba import cuda
from .cluster import checked_extents, cluster_shape
from .options import DEFAULTS, options_of

_MOST_LAUNCHES = 256
"""That a kernel remembers."""


class Kernel:
    """A kernel that `cute.kernel` made: `k(*args).launch(grid=…, block=…)`, or as any kernel of Numba
    `k[grid, block](*args)`. All that takes a kernel here takes it. As a method of an object it takes that as its first
    argument, as it is when the kernel is launched.

    dispatcher: what `cuda.jit` made of the function. this: the object whose method it is. py_func, targetoptions: the
    dispatcher's.
    """

    __cute_kernel__ = True

    def __init__(self, dispatcher: Any, this: Any = None, bounded: dict[Any, Any] | None = None) -> None:
        self.dispatcher, self.__self__ = dispatcher, this
        self._bounded: dict[Any, Any] = {} if bounded is None else bounded
        self._launches: dict[Any, Any] = {}
        if hasattr(dispatcher, "recompile") and not hasattr(dispatcher, "_cute_unbounded"):  # CUDASIM's have none
            dispatcher._cute_bounded = self._bounded
        self.py_func = getattr(dispatcher, "py_func", None) or dispatcher.fn
        functools.update_wrapper(self, self.py_func)

    def set_name_prefix(self, prefix: str) -> None:
        """Begin the kernel's name, in PTX and in what profilers show, with `prefix`: before it is compiled."""
        _rename(self.py_func, prefix)

    @property
    def targetoptions(self) -> Any:
        """The options that `cuda.jit` was given."""
        return getattr(self.dispatcher, "targetoptions", {})

    def __get__(self, obj: Any, owner: Any = None) -> Kernel:
        return self if obj is None else Kernel(self.dispatcher, obj, self._bounded)

    def __call__(self, *args: Any, **named: Any) -> Call:
        """Bind the kernel's arguments, `args` in order and `named` by name; `.launch(…)` of the result runs it."""
        own = () if self.__self__ is None else (self.__self__,)
        return Call(self, in_order(self.py_func, (*own, *args), named)[len(own) :])

    def _bounded_to(self, bounds: tuple[int, ...]) -> Kernel:
        """Return the kernel as it is compiled for these `launch_bounds`; itself, where its own options say others. Of
        one that was made so for blocks of a known shape it is what that was made of, for these."""
        own = self.targetoptions.get("launch_bounds")
        if own == bounds or not hasattr(self.dispatcher, "targetoptions"):
            return self
        if isinstance(own, BlockBounds):
            return Kernel(self.dispatcher._cute_unbounded, self.__self__, self._bounded)._bounded_to(bounds)
        if own is not None:
            return self
        if bounds not in self._bounded:
            from .disk_cache import KernelCache  # Numba's own simulator has none

            options = {**self.targetoptions, "launch_bounds": bounds}
            self._bounded[bounds] = made = type(self.dispatcher)(self.py_func, targetoptions=options)
            made._cute_unbounded = self.dispatcher
            cache = self.dispatcher._cache
            if cache.cache_path is not None and not isinstance(cache, KernelCache):
                made.enable_caching()
        return Kernel(self._bounded[bounds], self.__self__, self._bounded)

    def __getitem__(self, configuration: Any) -> Any:
        """`k[grid, block, stream, smem]`, as for a kernel of Numba."""
        try:
            return self._launches[configuration]
        except (KeyError, TypeError):
            return self._remembered(configuration, self._configured(configuration))

    def _launch_of(self, bounds: tuple[int, ...], settings: dict[str, Any]) -> Callable[..., None]:
        """Return what launches the kernel, as `bounded` by `bounds`, with the settings of `cute.launch`: the same each
        time, but for a method, which is its object's."""
        key = (bounds, *settings.values())
        try:
            return self._launches[key]  # type: ignore[no-any-return]
        except (KeyError, TypeError):
            from .launching import launch  # Numba's own simulator has no launches

            return self._remembered(key, launch(self._bounded_to(bounds), **settings))  # type: ignore[no-any-return]

    def _known_launch(self, given: tuple[Any, ...]) -> Any:
        """Return what launched the kernel before, when `Call.launch` was given the same; None if nothing did."""
        try:
            return self._launches.get(("launch", *given))
        except TypeError:  # a list
            return None

    def _remembered(self, key: Any, made: Any) -> Any:
        try:
            if len(self._launches) < _MOST_LAUNCHES:
                self._launches[key] = made
        except TypeError:  # a list, or a stream that has no hash
            pass
        return made

    def _configured(self, configuration: Any) -> Any:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise CuteError(f"kernel[{shown(configuration)}]: give grid, block, and optionally stream and smem")
        if not hasattr(self.dispatcher, "targetoptions"):  # Numba's own simulator
            run = self.dispatcher[configuration]
            return lambda *args, **named: run(*static_arguments(self, args, named))
        from .launching import Launch

        grid, block, stream, smem = (*configuration, 0, 0)[:4] if len(configuration) < 4 else configuration
        return Launch(self, grid, block, None, smem, stream)


def _rename(function: Any, prefix: str) -> None:
    if not isinstance(prefix, str) or not prefix.isidentifier():
        raise CuteError(
            f"set_name_prefix({prefix!r}): a name has letters, digits and _ alone, and begins with no digit"
        )
    own = getattr(function, "__cute_name__", function.__name__)
    function.__cute_name__ = own
    function.__name__ = function.__qualname__ = f"{prefix}_{own}"


class Call:
    """A kernel with its arguments, to be launched. kernel: a `Kernel`. args: all of its arguments, in order, but for a
    method's object."""

    def __init__(self, kernel: Kernel, args: tuple[Any, ...]) -> None:
        self.kernel, self.args = kernel, args

    def launch(
        self, *, grid: Any, block: Any, cluster: Any = None, smem: int | None = None, stream: Any = 0,
        min_blocks_per_mp: int | None = None, max_number_threads: Any = None, use_pdl: bool = False,
        cooperative: bool = False, fallback_cluster: Any = None, preferred_smem_carveout: int | None = None,
        launch_completion_event: Any = None, launch_completion_event_flags: int = 0, programmatic_event: Any = None,
        programmatic_event_flags: int = 0, programmatic_event_trigger_at_block_start: int = 0,
        smem_merge_branch_allocs: bool = False, hint_smem_base_uniform: bool = False,
    ) -> None:  # fmt: skip
        """Launch the kernel on its arguments: on the GPU, or in the simulator where `cute.simulate` runs the host
        function that calls this.

        grid: CTAs, an int or up to three. block: threads of a CTA, likewise. cluster: CTAs of a cluster, likewise; None
        for the kernel's own shape. smem: bytes of dynamic shared memory; 0 takes what the kernel's SmemAllocator needs.
        stream: as for `cute.launch`. min_blocks_per_mp: blocks that are to be on an SM at once. max_number_threads: the
        largest block that the compiled kernel takes, as `block`, by default this one. use_pdl: programmatic dependent
        launch (sm_90). cooperative, fallback_cluster, preferred_smem_carveout, launch_completion_event,
        launch_completion_event_flags, programmatic_event, programmatic_event_flags,
        programmatic_event_trigger_at_block_start: as for `cute.launch`; the simulator records no event. The kernel is
        compiled for these bounds (PTX .reqntid of `block`, or .maxntid of `max_number_threads`; .minnctapersm), unless
        it was made with `launch_bounds=`. CuteError: as `cute.launch`, and bounds that the launch itself does not keep.
        """
        launcher = LAUNCHER.get()
        more = (
            use_pdl, cooperative, fallback_cluster, preferred_smem_carveout, launch_completion_event,
            launch_completion_event_flags, programmatic_event, programmatic_event_flags,
            programmatic_event_trigger_at_block_start,
        )  # fmt: skip
        given = grid, block, cluster, smem, stream, min_blocks_per_mp, max_number_threads, *more
        known = None if launcher is not None else self.kernel._known_launch(given)
        if known is not None:
            known(*self.args)
            return
        grid, block = checked_extents("grid", grid), checked_extents("block", block)
        if min_blocks_per_mp is not None and (type(min_blocks_per_mp) is not int or min_blocks_per_mp < 1):
            raise CuteError(f"launch: min_blocks_per_mp {min_blocks_per_mp!r} must be an int from 1 on, or None")
        options = dict(zip(DEFAULTS, more))
        options_of(cluster, options)
        where = {"grid": grid, "block": block, "cluster": cluster, "smem": smem or 0}
        simulated = {**where, "cooperative": cooperative, "fallback_cluster": fallback_cluster, "pdl": use_pdl}
        bounds = _bounds(block, max_number_threads, min_blocks_per_mp)
        if launcher is not None:
            with FOLDED:
                launcher(self.kernel._bounded_to(bounds), self.args, simulated)
            return
        settings = {**where, **options, "stream": stream or 0}
        launch = self.kernel._launch_of(bounds, settings)
        if type(stream) is int and self.kernel.__self__ is None:
            self.kernel._remembered(("launch", *given), launch)
        with FOLDED:
            launch(*self.args)


def _bounds(block: Any, most: Any, blocks: int | None) -> tuple[int, ...]:
    """Return the `launch_bounds` of a launch. most: the largest block that the kernel is to take; None for `block`."""
    shape = _shape(block)
    if most is None:
        return BlockBounds(shape, blocks)
    threads = math.prod(_shape(checked_extents("max_number_threads", most)))
    if threads < math.prod(shape):
        raise CuteError(f"launch: block {block} has more threads than max_number_threads {most!r}")
    return (threads,) if blocks is None else (threads, blocks)


def _shape(extents: Any) -> tuple[int, int, int]:
    return (*((extents,) if isinstance(extents, int) else extents), 1, 1)[:3]


def kernel(function: Any = None, **options: Any) -> Any:
    """Make a kernel of a function: what `cuda.jit` makes, called as in the CuTe DSL too.

        @cute.kernel
        def scale(x: cute.Tensor, n: cute.Constexpr): ...

        scale(x, 4).launch(grid=8, block=128)

    function: the kernel's Python; of its annotations `cute.Constexpr` makes a parameter static, and an element type, as
    `cute.Float32`, makes such a number of a Python number that is given for it. Others are not read. options: those of
    `cuda.jit`, as in `@cute.kernel(lineinfo=True)`.

    In a class it is a method: `self.k(x).launch(…)`. Of its `self` a kernel reads the fields as they are at the launch
    (numbers, texts, tuples and lists, enumerations, element types, layouts, atoms, tensors, storage classes; what is
    static in them compiles anew), and calls the methods. What it sets by `self.f = …` in its own body is its own: the
    next launch, and the host, see what the field was.

    >>> @cute.kernel
    ... def kernel(x):
    ...     x[arch.thread_idx()[0]] = 7
    >>> x = np.zeros(2, np.int32)
    >>> cute.simulate(kernel)[1, 2](x)
    >>> x
    array([7, 7], dtype=int32)
    """
    if function is None:
        return functools.partial(kernel, **options)
    made = printing(without_classes(_function("kernel", function), is_kernel=True))
    return Kernel(cuda.jit(**options)(with_ordinary_parameters(_own(made))))


def dsl_user_op(function: UserFunction) -> Callable[..., Any]:
    """Mark a function as an operation of the user's: Python that runs while a kernel that calls it is compiled, on what
    is static, and on numbers, tensors and vectors whose values are known only at run time.

    function: the Python. It has no branch or loop over what is known only at run time (CuteError there), but for `with
    cute.arch.elect_one():`, also in a function that it calls and that stands before it: then it is as a function
    without a decorator. In a file that imports `cutlass` (the hook answers) it always is, where it has such a branch.

    >>> @cute.dsl_user_op
    ... def doubled(x):
    ...     return x + x
    >>> cute.simulate(lambda: print(doubled(cute.Float32(1.5))))[1, 1]()
    3.0
    """
    made: Callable[..., Any] = _function("dsl_user_op", function)
    return made if reaches_with(made) else users_operation(seam.traced(made))


def _function(what: str, given: Any) -> Any:
    """Return what a decorator marks. CuteError: it is not a function, as a kernel that is simulated."""
    if not (inspect.isroutine(given) or hasattr(given, "py_func")):
        raise CuteError(f"{what}: {described(given)} is not a function")
    return given


def jit(function: UserFunction = None, **options: Any) -> Any:
    """Mark a function as one of the host, which launches kernels, or of a kernel, which calls it: on the host it runs
    as the Python that it is, and a kernel compiles it as a device function of Numba's.

    function: the Python, also of a method, such as `__call__`; a number that the host gives for a parameter annotated
    with an element type becomes one. options: those of `cuda.jit(device=True)`.
    `cute.simulate(f)(*args)` runs a host function with the kernels that it launches in the simulator, and
    `cute.compile(f, *args)` compiles these.

    >>> @cute.kernel
    ... def filled(x, value):
    ...     x[arch.thread_idx()[0]] = value
    >>> @cute.jit
    ... def fill(x, value: cute.Constexpr):
    ...     filled(x, value).launch(grid=(1, 1, 1), block=(cute.size(x), 1, 1))
    >>> x = np.zeros(3, np.int32)
    >>> with cute.simulation():
    ...     fill(cute.runtime.from_dlpack(x), 7)
    >>> x
    array([7, 7, 7], dtype=int32)
    """
    if function is None:
        return functools.partial(jit, **options)
    function = _function("jit", function)
    made = cuda.jit(**{"device": True, "forceinline": "inline" not in options, **options})(
        with_ordinary_parameters(_own(printing(function)))
    )
    return _both(type(made))._taking(made)  # type: ignore[arg-type]


def _own(function: Any) -> Any:
    """Mark a function as one that this library compiles, whatever it names."""
    function.__cute_compiled__ = True
    return function


@functools.cache
def _both(kind: Any) -> Any:
    """The class of functions of host and device, of a class of Numba's device functions."""

    class Function(kind):
        """A function that the host calls as Python, which computes at once, and a kernel as a device function."""

        __cute_host__ = True

        @property  # type: ignore[misc]
        def __class__(self) -> type:
            """Return for `isinstance` in the user's Python the class that Python has for functions: it is one there."""
            return FunctionType if is_users_frame(sys._getframe(1)) else type(self)

        @classmethod
        def _taking(cls, made: Any) -> Any:
            made.__class__ = cls
            return made

        def set_name_prefix(self, prefix: str) -> None:
            """Begin the function's name with `prefix`: before it is compiled."""
            _rename(getattr(self, "py_func", None) or self.fn, prefix)

        def __get__(self, obj: Any, owner: Any = None) -> Any:
            return self if obj is None else MethodType(self, obj)

        def __call__(self, *args: Any, **named: Any) -> Any:
            """Run the function's Python on `args` and `named`; in traced code, call what Numba makes of it."""
            call = getattr(current_or(None), "call_function", None)
            if call is not None:
                return call(self, args, named)
            function = getattr(self, "py_func", None) or self.fn
            converts = getattr(function, CONVERTS, None)
            if converts is not None:
                args, named = converts(args, named)
            args, named = call_as_annotated(function, args, named)
            RUNNING.host_calls += 1
            try:
                with FOLDED:
                    return function(*args, **named)
            finally:
                RUNNING.host_calls -= 1

    Function.__name__ = Function.__qualname__ = kind.__name__
    return Function


CONVERTS = "__cute_converts__"
"""On a function of `jit`, what makes the arguments of a call of the host: `compat` has it make tensors of arrays."""

NUMBA_CUDA = cuda
"""The `numba.cuda` whose names kernels say."""


MADE = "__cute_from_text__"
"""Set on a function that was made from another text than Python."""


def jitted(function: Any, cluster: tuple[int, ...] | None = None, *, jit: Any = None, **options: Any) -> Any:
    """Return what `cuda.jit` makes of a function that was made from another text than Python. cluster: its cluster
    shape; None for none. jit: what makes a kernel of it and options; None for `cuda.jit`. options: those of
    `cuda.jit`."""
    setattr(function, MADE, True)
    made = cuda.jit(**options)(function) if jit is None else jit(function, **options)
    return made if cluster is None else cluster_shape(*cluster)(made)


@functools.cache
def usual_options() -> dict[str, Any]:
    """Return the options of a kernel that was given none."""
    return dict(getattr(cuda.jit(lambda: None), "targetoptions", {}))


def numbering_lines(find: Callable[[Any], int | None]) -> Callable[[Any], int | None]:
    """Make of what finds the line of a function's `def` in its source one that reads no source that is no Python."""

    def line(function: Any) -> int | None:
        return int(function.__code__.co_firstlineno) if hasattr(function, MADE) else find(function)

    return line
