# SPDX-License-Identifier: Apache-2.0
"""What the PyTorch entry of any kernel needs: checks of its tensors, launches remembered by what they were planned for,
results, and the kernel as an operator that autograd and torch.compile know.

A kernel's file has a *plan*, a function of tensors that gives the `Work` to do: the kernel, its launch, and its static
arguments. It reads of tensors only what `Planned` remembers launches by, so it checks and decides once, and a second
call launches at once. A plan takes NumPy's arrays as well: `Work.simulate` runs the same launch in the simulator. torch
is imported when an entry is first called, and not by plans.

    def plan(x, y, factor):
        return entry.Work(kernel, grid, block, static=(factor,))

    def result(x: "torch.Tensor", factor: float):
        entry.check("scale", "x", x, dtypes=entry.FLOATS)
        return x.new_empty(x.shape)

    SCALE = entry.Operator("numba_cute::scale", plan, result)

    def scale(x, factor, *, out=None):
        return SCALE(x, factor, into=(out,))
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn

import numba_cute as cute
from numba_cute.isa.form.targets import asked
from numba_cute.seam import CuteError
from numba_cute.seam.marks.constexpr import LAUNCHER

__all__ = [
    "FLOATS",
    "Operator",
    "Planned",
    "Work",
    "capturing",
    "check",
    "check_place",
    "check_target",
    "described",
    "element_type",
    "kinds",
    "multiprocessors",
    "on_device_of",
    "pytorch",
    "refuse_gradients",
    "refuse_tangents",
    "simulated",
    "stream_of",
    "target_of",
]

FLOATS = ("bfloat16", "float16", "float32")
"""The element types that most kernels take, by the names that NumPy and torch share."""
MOST = 4096
"""Launches that one `Planned` remembers."""

_TYPES = {
    "bfloat16": cute.BFloat16, "float16": cute.Float16, "float32": cute.Float32, "float64": cute.Float64,
    "float8_e4m3fn": cute.Float8E4M3FN, "float8_e5m2": cute.Float8E5M2, "bool": cute.Boolean,
    "int8": cute.Int8, "int16": cute.Int16, "int32": cute.Int32, "int64": cute.Int64,
    "uint8": cute.Uint8, "uint16": cute.Uint16, "uint32": cute.Uint32, "uint64": cute.Uint64,
}  # fmt: skip


def pytorch() -> Any:
    """Import torch and give the module. CuteError if it is not installed."""
    try:
        import torch
    except ImportError as e:
        raise CuteError(
            "kernels: their entries take PyTorch's tensors, and it is not installed: pip install torch"
        ) from e
    return torch


def type_name(x: Any) -> str:
    """Name the element type of `x`, an array of torch's or NumPy's, as "bfloat16"."""
    return str(x.dtype).removeprefix("torch.")


def element_type(x: Any) -> Any:
    """Give this library's element type of `x`, an array of torch's or NumPy's. CuteError for one that it has not."""
    found = _TYPES.get(type_name(x))
    if found is None:
        raise CuteError(f"kernels: elements of {x.dtype} are none of {', '.join(_TYPES)}")
    return found


def strides(x: Any) -> tuple[int, ...]:
    """Give the strides of `x`, an array of torch's or NumPy's, in elements."""
    if hasattr(x, "stride"):
        return tuple(x.stride())
    return tuple(s // x.itemsize for s in x.strides)


def aligned(x: Any) -> bool:
    """Say whether `x`, an array of torch's or NumPy's, begins at a multiple of 16 bytes."""
    at = x.data_ptr() if hasattr(x, "data_ptr") else x.ctypes.data
    return bool(at % 16 == 0)


def described(x: Any) -> str:
    """Describe `x` for a message: of an array its type, shape, strides and place, of anything else its class."""
    if x is None:
        return "None"
    if (
        isinstance(x, type)
        or not hasattr(x, "dtype")
        or not (hasattr(x, "strides") or callable(getattr(x, "stride", None)))
    ):
        return f"{type(x).__name__} {x!r}"
    where = f" on {x.device}" if hasattr(x, "device") else ""
    return f"{type_name(x)} of shape {tuple(x.shape)} and strides {strides(x)}{where}"


def check(
    what: str, name: str, x: Any, *, dtypes: Sequence[str] = (), rank: int | None = None, least_rank: int = 0,
    shape: Sequence[int | None] | None = None, last: bool = True, like: Any = None, optional: bool = False,
) -> None:  # fmt: skip
    """Refuse `x` if it is not what an entry takes.

    what: the entry, and name: the argument, for the message. dtypes: names of the element types that it may have.
    rank, least_rank: how many modes it has, exactly or at least. shape: its extents, None for any. last: whether its
    last mode must be contiguous. like: an array on whose device it must lie. optional: whether None will do.
    CuteError says the argument, what it is, the rule, and what to do.
    """
    if x is None and optional:
        return

    def refuse(rule: str) -> NoReturn:
        raise CuteError(f"{what}: {name} is {described(x)}{rule}")

    if not hasattr(x, "dtype") or not hasattr(x, "shape"):
        refuse(f"; give a tensor of torch's on the GPU{' or None' if optional else ''}")
    if dtypes and type_name(x) not in dtypes:
        refuse(f"; its elements must be {_either(dtypes)}: convert it with {name}.to(…)")
    if rank is not None and len(x.shape) != rank or len(x.shape) < least_rank:
        modes = f"{rank} modes" if rank is not None else f"{least_rank} modes or more"
        refuse(f"; it must have {modes}: reshape it")
    if shape is not None and not _fits(tuple(x.shape), shape):
        extents = ", ".join("any" if n is None else str(n) for n in shape)
        refuse(f"; its shape must be ({extents}{',' if len(shape) == 1 else ''}): give one of that shape")
    if last and len(x.shape) and x.shape[-1] > 1 and 0 not in x.shape and strides(x)[-1] != 1:
        refuse(f"; its last mode must be contiguous: give {name}.contiguous()")
    if like is not None and getattr(x, "device", None) != getattr(like, "device", None):
        refuse(f", and the first argument is on {like.device}: give {name}.to({str(like.device)!r})")


def _fits(shape: tuple[int, ...], want: Sequence[int | None]) -> bool:
    return len(shape) == len(want) and all(w is None or n == w for n, w in zip(shape, want))


def _annotation(said: Any) -> Any:
    """The type that an annotation of an operator's argument says in torch's words."""
    return eval(said, {"torch": pytorch()}) if isinstance(said, str) else said


def simulated() -> Any:
    """Give the target whose GPU is simulated now (`cute.simulation`); None where launches go to a GPU."""
    return None if LAUNCHER.get() is None else asked()


def check_place(what: str, name: str, x: Any) -> None:
    """Refuse a tensor of the CPU outside of a simulation. what: the entry. name: the argument. x: it, or None."""
    if x is not None and not x.is_cuda and simulated() is None:
        raise CuteError(
            f"{what}: {name} is {described(x)}; give tensors on the GPU ({name}.cuda()), or call it in "
            "`with cute.simulation():`, which runs its kernels in the simulator"
        )


def check_target(what: str, x: Any) -> None:
    """Refuse tensors that lie on no Hopper GPU, for kernels that multiply by wgmma. what: the entry. x: a tensor, or an
    array of NumPy's, which may be compiled for."""
    if not hasattr(x, "is_cuda"):
        return
    target = simulated()
    name = target_of(x.device.index) if x.is_cuda else target.name if target is not None else ""
    if name not in ("", "sm_90a"):
        raise CuteError(
            f"{what}: its kernel is for Hopper GPUs (H100, H200: sm_90a), and this is {name}: use PyTorch's own there"
        )


@functools.cache
def target_of(index: int) -> str:
    """Name the target that a GPU is, by its compute capability; Hopper with its "a"."""
    major, minor = pytorch().cuda.get_device_capability(index)
    return f"sm_{major}{minor}{'a' if (major, minor) == (9, 0) else ''}"


def stream_of(x: Any) -> int:
    """Give the handle of torch's current stream where the tensor `x` lies; 0 in a simulation."""
    return int(pytorch().cuda.current_stream(x.device).cuda_stream) if x.is_cuda else 0


def on_device_of(x: Any) -> AbstractContextManager[Any]:
    """Make the GPU current on which the tensor `x` lies, as long as the context lasts."""
    found: AbstractContextManager[Any] = pytorch().cuda.device(x.device) if x.is_cuda else nullcontext()
    return found


def capturing(x: Any) -> bool:
    """Say whether a CUDA graph is captured where the tensor `x` lies."""
    return bool(x.is_cuda and pytorch().cuda.is_current_stream_capturing())


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def refuse_tangents(what: str, tensors: Sequence[Any]) -> None:
    """Refuse tensors, or None, that have tangents, or are of `torch.func`: no kernel is differentiated in forward mode,
    or mapped. what: the entry."""
    torch = pytorch()
    if torch.compiler.is_compiling():  # which cannot ask this: there vmap is right, if slow, and grad is an error
        return
    for t in tensors:
        if isinstance(t, torch.Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(t):
            raise CuteError(
                f"{what}: a tensor of shape {tuple(t.shape)} is one of torch.func's (vmap, grad, …), of which there is "
                "nothing here: call it with tensors, whole batches of them, and take gradients by backward()"
            )
    forward = torch.autograd.forward_ad
    if forward._current_level < 0:
        return
    for t in tensors:
        if isinstance(t, torch.Tensor) and forward.unpack_dual(t).tangent is not None:
            raise CuteError(
                f"{what}: {described(t)} has a tangent, and there is no forward-mode derivative: give "
                "torch.autograd.forward_ad.unpack_dual(x).primal, or use reverse mode"
            )


def refuse_gradients(what: str, tensors: Sequence[Any]) -> None:
    """Refuse tensors, or None, of which autograd wants gradients, or which have tangents. what: the entry, which has
    no derivative."""
    if "torch" in sys.modules:
        refuse_tangents(what, tensors)
    for t in tensors:
        if getattr(t, "requires_grad", False) and pytorch().is_grad_enabled():
            raise CuteError(
                f"{what}: {described(t)} requires a gradient, and there is none for it: give x.detach(), or call it "
                "under torch.no_grad()"
            )


@functools.cache
def _multiprocessors(index: int) -> int:
    return int(pytorch().cuda.get_device_properties(index).multi_processor_count)


def multiprocessors(x: Any) -> int:
    """Count the SMs of the GPU on which `x` lies, or that is simulated; for NumPy's arrays there are 2."""
    device: Any = getattr(x, "device", None)
    if getattr(device, "type", None) == "cuda":
        return _multiprocessors(device.index)
    return 2 if simulated() is None else cute.utils.HardwareInfo().get_device_multiprocessor_count()


@dataclass(frozen=True)
class Work:
    """A launch, whole but for its tensors.

    kernel: takes the tensors, then `static`. grid, block, cluster, smem: as of `cute.launch`. static: what is the same
    at each launch: layouts, configurations, numbers.
    """

    kernel: Any
    grid: Any
    block: Any
    cluster: Any = None
    smem: int = 0
    static: tuple[Any, ...] = ()

    def launcher(self) -> Callable[..., None]:
        """Give the function that launches on tensors, on torch's current stream."""
        bound, static = cute.launch(
            self.kernel, grid=self.grid, block=self.block, cluster=self.cluster, smem=self.smem
        ), self.static  # fmt: skip

        def launch(*tensors: Any) -> None:
            bound(*tensors, *static)

        return launch

    def simulate(self, *arrays: Any, **options: Any) -> None:
        """Run the launch in the simulator on NumPy's `arrays`, in place. options: those of `cute.simulate`."""
        run = cute.simulate(self.kernel, cluster=self.cluster, **options)
        run[self.grid, self.block, 0, self.smem](*arrays, *self.static)

    def compile(self, *arrays: Any, arch: str = "sm_90a") -> Any:
        """Compile the kernel for such `arrays` and for `arch`, without a GPU; gives what `cute.compile` does."""
        return cute.compile(self.kernel, (*arrays, *self.static), arch=arch)


def kinds(tensors: Sequence[Any]) -> list[Any]:
    """Give what plans may read of tensors, or None of none: types, shapes, strides, devices and alignment."""
    return [
        None if t is None else (t.dtype, t.shape, t.stride(), t.device, t.data_ptr() & 15 == 0) for t in tensors
    ]  # fmt: skip


class Planned:
    """A function of tensors that launches what was planned for their types, shapes, strides, devices and alignment.

    plan: `plan(*tensors, *static)` gives a Work, or a function that takes the tensors and launches several. It
    reads of tensors nothing but what was said. A tensor may be None. name: of the entry, for messages.
    """

    def __init__(self, plan: Callable[..., Any], name: str = "kernels") -> None:
        self.plan, self.name = plan, name
        self.known: dict[Any, Callable[..., None]] = {}

    def __call__(self, tensors: Sequence[Any], static: tuple[Any, ...] = ()) -> None:
        """Launch on `tensors`; `static` are the plan's other arguments, which hash."""
        key = (simulated(), static, *kinds(tensors))
        launch = self.known.get(key)
        if launch is None:
            for t in tensors:
                check_place(self.name, "a tensor", t)
            made = self.plan(*tensors, *static)
            launch = made.launcher() if isinstance(made, Work) else made
            if len(self.known) >= MOST:  # the oldest of many shapes
                self.known.pop(next(iter(self.known)), None)
            self.known[key] = launch
        launch(*[t.detach() if t is not None and t.requires_grad else t for t in tensors])


class Operator:
    """A kernel's entry: it makes results, launches what is planned, and is an operator of torch's where autograd,
    torch.compile or fake tensors ask for one.

    name: "numba_cute::…". plan: `plan(*inputs, *results, *static)` of the tensors that go in and come out, and of the
    other arguments, as of `Planned`. signature: a function whose parameters, annotated in torch's words as strings
    ("torch.Tensor", "torch.Tensor | None", "float", …), are the operator's arguments, tensors first. It is called with
    them, checks, and gives the results, new tensors, as a tensor or a tuple: it runs for fake tensors too.
    count: how many results there are. backward, setup_context: as of `cute.torch_op`. constant: names of the tensors of
    which `backward` gives no gradient, which are refused if one is asked for. Without `backward` torch refuses.
    """

    devices: str | None = "cuda"

    def __init__(
        self, name: str, plan: Callable[..., Any], signature: Callable[..., Any], *, count: int = 1,
        backward: Callable[..., Any] | None = None, setup_context: Callable[..., Any] | None = None,
        constant: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.name, self.signature, self.backward, self.setup_context = name, signature, backward, setup_context
        self.what = name.partition("::")[2]
        self.planned, self.count = Planned(plan, self.what), count
        parameters = inspect.signature(signature).parameters.values()
        self.tensors = sum("Tensor" in str(p.annotation) for p in parameters)
        names = [p.name for p in parameters][: self.tensors]
        self.constant = [names.index(name) for name in constant]
        self._made = self._registered() if "torch" in sys.modules else None  # torch.compile finds it there

    @property
    def made(self) -> Any:
        """The operator of torch's; where torch was not loaded before, it is registered when it is first asked for."""
        if self._made is None:
            self._made = self._registered()
        return self._made

    def _registered(self) -> Any:
        torch, out = pytorch(), self.signature
        own = [p.replace(annotation=_annotation(p.annotation)) for p in inspect.signature(out).parameters.values()]

        def run(*args: Any) -> None:
            inputs, results = args[: len(own)], args[len(own) :]
            static = (tuple(x) if isinstance(x, list) else x for x in inputs[self.tensors :])  # as torch has sequences
            self.planned((*inputs[: self.tensors], *results), tuple(static))

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        results = [inspect.Parameter(f"result_{i}", kind, annotation=torch.Tensor) for i in range(self.count)]
        whole = [p.replace(default=inspect.Parameter.empty) for p in own] + results
        run.__signature__ = inspect.Signature(whole)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in whole}
        made = cute.torch_op(
            self.name, out=out, backward=self.backward or self._no_backward, setup_context=self.setup_context,
            devices=self.devices,
        )  # fmt: skip
        return made(run)

    def _no_backward(self, ctx: Any, *gradients: Any) -> NoReturn:
        """Refuse to give gradients."""
        of = self.what.removesuffix("_backward")
        which = "no second derivative" if of != self.what else "no derivative"
        raise CuteError(f"{of}: there is {which} of it: give it x.detach(), or call it under torch.no_grad()")

    def __call__(self, *args: Any, into: Sequence[Any] | None = None) -> Any:
        """Call the entry with all of the operator's arguments; gives its results.

        into: tensors to write them to, in their order, None for those to be made; CuteError where a gradient is asked
        for, or torch.compile runs, neither of which knows of them.
        """
        torch = pytorch()
        if into is not None and not isinstance(into, (tuple, list)):
            raise CuteError(f"{self.what}: out={into!r:.60} must be the tensors to write to, in their order")
        if not torch.compiler.is_compiling():
            refuse_tangents(self.what, args[: self.tensors])
            refuse_gradients(self.what, [args[i] for i in self.constant] + list(into or ()))
        if torch.compiler.is_compiling() or self._watched(torch, args):
            if into is not None and any(t is not None for t in into):
                raise CuteError(
                    f"{self.what}: out is given, and a gradient is asked for or torch.compile runs: leave out=, or "
                    "call it under torch.no_grad()"
                )
            return self.made(*args)
        results = self.signature(*args)
        several = isinstance(results, tuple)
        written = results if several else (results,)
        if into is not None:
            if len(into) != len(written):
                raise CuteError(f"{self.what}: out has {len(into)} tensors, and there are {len(written)} results")
            written = tuple(self._given(i, made, given) for i, (made, given) in enumerate(zip(written, into)))
        self.planned((*args[: self.tensors], *written), tuple(args[self.tensors :]))
        return written if several else written[0]

    def _watched(self, torch: Any, args: tuple[Any, ...]) -> bool:
        """Whether somebody wants to know what is called: autograd, or what stands for tensors."""
        grad = torch.is_grad_enabled()
        for t in args[: self.tensors]:
            if t is None:
                continue
            if type(t) is not torch.Tensor and type(t) is not torch.nn.Parameter and isinstance(t, torch.Tensor):
                return True
            if grad and getattr(t, "requires_grad", False):
                return True
        return False

    def _given(self, place: int, made: Any, given: Any) -> Any:
        """What is written to in place of `made`: `given`, if it is as large."""
        if given is None:
            return made
        check(self.what, f"out[{place}]", given, dtypes=(type_name(made),), shape=tuple(made.shape), like=made)
        return given
