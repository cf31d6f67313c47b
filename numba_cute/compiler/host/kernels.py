# SPDX-License-Identifier: Apache-2.0
"""`cute.kernel` and `cute.jit`: the decorators of the CuTe DSL, as what they mean here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba import cuda

from ...seam import CuteError
from ...seam.constexpr import LAUNCHER, static_arguments
from .cluster import cluster_shape


class Kernel:
    """A kernel that `cute.kernel` made: `k(*args).launch(grid=…, block=…)`, or as any kernel of Numba
    `k[grid, block](*args)`. All that takes a kernel here takes it.

    dispatcher: what `cuda.jit` made of the function. py_func, targetoptions: its.
    """

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher
        self.py_func = getattr(dispatcher, "py_func", None) or dispatcher.fn
        functools.update_wrapper(self, self.py_func)

    @property
    def targetoptions(self) -> Any:
        """The options that `cuda.jit` was given."""
        return getattr(self.dispatcher, "targetoptions", {})

    def __call__(self, *args: Any, **named: Any) -> Call:
        """Bind the kernel's arguments, `args` in order and `named` by name; `.launch(…)` of the result runs it."""
        return Call(self, _in_order(self.py_func, args, named))

    def __getitem__(self, configuration: Any) -> Callable[..., None]:
        """`k[grid, block, stream, smem]`, as for a kernel of Numba."""
        launch = self.dispatcher[configuration]
        return lambda *args: launch(*static_arguments(self.py_func, args))


def _in_order(fn: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    given = dict(zip(names, args))
    if len(args) > len(names) or set(named) - set(names) or set(named) & set(given):
        raise CuteError(
            f"kernel {fn.__name__}({', '.join(names)}) was called with {len(args)} values and {list(named)}"
        )
    given |= named
    missing = [n for n in names[: len(names) - len(fn.__defaults__ or ())] if n not in given]
    if missing:
        raise CuteError(f"kernel {fn.__name__}({', '.join(names)}): there is no value for {', '.join(missing)}")
    defaults = dict(zip(reversed(names), reversed(fn.__defaults__ or ())))
    return tuple(given.get(n, defaults.get(n)) for n in names)


class Call:
    """A kernel with its arguments, to be launched. kernel: a `Kernel`. args: all of its arguments, in order."""

    def __init__(self, kernel: Kernel, args: tuple[Any, ...]) -> None:
        self.kernel, self.args = kernel, args

    def launch(
        self, *, grid: Any, block: Any, cluster: Any = None, smem: int = 0, stream: Any = 0, use_pdl: bool = False
    ) -> None:
        """Launch the kernel on its arguments: on the GPU, or in the simulator where `cute.simulate` runs the host
        function that calls this.

        grid: CTAs, an int or up to three. block: threads of a CTA, likewise. cluster: CTAs of a cluster, likewise; None
        for the kernel's own shape. smem: bytes of dynamic shared memory; 0 takes what the kernel's SmemAllocator needs.
        stream: as for `cute.launch`. use_pdl: programmatic dependent launch (sm_90). CuteError: as `cute.launch`.
        """
        grid, block = (d if isinstance(d, int) else tuple(d) for d in (grid, block))
        options = {"grid": grid, "block": block, "cluster": cluster, "smem": smem or 0}
        launcher = LAUNCHER.get()
        if launcher is not None:
            launcher(self.kernel, self.args, options)
            return
        from .launching import launch  # Numba's own simulator has no launches

        launch(self.kernel, **options, stream=stream or 0, pdl=use_pdl)(*self.args)


def kernel(function: Any = None, **options: Any) -> Any:
    """Make a kernel of a function: what `cuda.jit` makes, called as in the CuTe DSL too.

        @cute.kernel
        def scale(x: cute.Tensor, n: cute.Constexpr): ...

        scale(x, 4).launch(grid=8, block=128)

    function: the kernel's Python; its annotations are not read, but for `cute.Constexpr`, which makes a parameter
    static. options: those of `cuda.jit`, as in `@cute.kernel(lineinfo=True)`. A method is none: a kernel takes all
    that it uses as arguments, globals or closure variables (CuteError).
    """
    if function is None:
        return functools.partial(kernel, **options)
    if "." in function.__qualname__.rpartition("<locals>.")[2] and function.__code__.co_varnames[:1] == ("self",):
        raise CuteError(
            f"@cute.kernel: {function.__qualname__} is a method, and Numba has no kernels with a `self`: make it a "
            "function in __init__ or __call__, which closes over what it needs"
        )
    return Kernel(cuda.jit(**options)(function))


def jit(function: Any = None, **options: Any) -> Any:
    """Mark a function as one of the host, which launches kernels, or of a kernel, which calls it: on the host it runs
    as the Python that it is, and a kernel compiles it as a device function of Numba's.

    function: the Python. options: those of `cuda.jit(device=True)`. `cute.simulate(f)(*args)` runs a host function
    with the kernels that it launches in the simulator.
    """
    if function is None:
        return functools.partial(jit, **options)
    made = cuda.jit(**{"device": True, **options})(function)
    return _both(type(made))._taking(made)  # type: ignore[arg-type]


@functools.cache
def _both(kind: Any) -> Any:
    """The class of functions of host and device, of a class of Numba's device functions."""

    class Function(kind):
        """A function that the host calls as Python, and a kernel as a device function."""

        __cute_host__ = True

        @classmethod
        def _taking(cls, made: Any) -> Any:
            made.__class__ = cls
            return made

        def __call__(self, *args: Any, **named: Any) -> Any:
            """Run the function's Python on `args` and `named`."""
            return (getattr(self, "py_func", None) or self.fn)(*args, **named)

    Function.__name__ = Function.__qualname__ = kind.__name__
    return Function


NUMBA_CUDA = cuda
"""The `numba.cuda` whose names kernels say."""


MADE = "__cute_made__"
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
