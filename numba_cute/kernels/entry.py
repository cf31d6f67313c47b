# SPDX-License-Identifier: Apache-2.0
"""The parts of any kernel's PyTorch entry: checks of its tensors, launches remembered by what they were planned for,
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
import types
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numba_cute as cute
from numba_cute.isa.form.targets import asked
from numba_cute.seam import CuteError
from numba_cute.seam.ground.records import dataclass
from numba_cute.seam.marks.constexpr import LAUNCHER

from .arrays import FLOATS, aligned, check, described, element_type, strides, type_name
from .carried import carried, exact, keep, name_of

__all__ = [
    "FLOATS",
    "Operator",
    "Planned",
    "Work",
    "aligned",
    "capturing",
    "check",
    "check_place",
    "check_target",
    "compiling",
    "described",
    "element_type",
    "family_of",
    "kinds",
    "multiprocessors",
    "on_device_of",
    "ordinary",
    "pytorch",
    "refuse_gradients",
    "refuse_tangents",
    "simulated",
    "stream_of",
    "strides",
    "target_of",
    "type_name",
    "under_autocast",
]


def pytorch() -> Any:
    """Import torch and give the module. CuteError if it is not installed."""
    try:
        import torch
    except ImportError as e:
        raise CuteError(
            "kernels: their entries take PyTorch's tensors, and it is not installed: pip install torch"
        ) from e
    return torch


def _annotation(said: Any) -> Any:
    """The type that an annotation of an operator's argument says in torch's words; an object of Python's goes by its
    name (carried.py)."""
    return (str if said == "object" else eval(said, {"torch": pytorch()})) if isinstance(said, str) else said


def _flat(tensors: Sequence[Any]) -> list[Any]:
    """The tensors, or None, among which are lists of such."""
    return [t for x in tensors for t in (x if isinstance(x, (list, tuple)) else (x,))]


def _apart(x: Any) -> Any:
    """A tensor, or a list of such, without autograd."""
    if isinstance(x, (list, tuple)):
        return [_apart(t) for t in x]
    return x.detach() if x is not None and x.requires_grad else x


def under_autocast(*tensors: Any, like: Any = None) -> Any:
    """Give the factors of a product, or None, as torch.autocast has them where it is on: of its type, as torch's own
    products do. tensors: of floats; others, and those of another device, stay as they are. like: a factor that is
    written too, and so stays as it is: the others get its type, if that is one of these."""
    torch, out = pytorch(), list(tensors)
    if not (torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu")):
        return out
    if like is not None and not (isinstance(like, torch.Tensor) and type_name(like) in FLOATS):
        return out
    for i, t in enumerate(tensors):
        kind = t.device.type if isinstance(t, torch.Tensor) else ""
        if kind and torch.is_autocast_enabled(kind) and type_name(t) in FLOATS:
            out[i] = t.to(torch.get_autocast_dtype(kind) if like is None else like.dtype)
    return out


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


WARPS, WARPGROUPS, TENSOR_MEMORY = "sm_80", "sm_90a", "sm_100a"
"""The families of GPUs, by the first target of each: whose tensor cores a warp uses, a warpgroup, and a thread, with
sums in a memory of their own."""
FAMILIES = {
    WARPS: ("sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_120", "sm_121"),
    WARPGROUPS: ("sm_90a",),
    TENSOR_MEMORY: ("sm_100a", "sm_103a"),
}
SAID = {
    WARPS: "GPUs of sm_80 to sm_89, sm_120 and sm_121", WARPGROUPS: "Hopper GPUs (H100, H200: sm_90a)",
    TENSOR_MEMORY: "Blackwell GPUs (B200, B300: sm_100a, sm_103a)",
}  # fmt: skip


def check_target(what: str, x: Any, *families: str) -> str:
    """Refuse tensors that lie on a GPU of none of the `families` that an entry has kernels for, and give the one; that
    of warpgroups where there is no GPU to say it. what: the entry. x: a tensor, or an array of NumPy's, which may be
    compiled for. families: by default that of warpgroups."""
    families = families or (WARPGROUPS,)
    target = target_at(x)
    if target is None:
        return WARPGROUPS
    found = family_of(target)
    if found is None or found not in families:
        has = " and ".join(SAID[f] for f in families)
        one = "its kernel is" if len(families) == 1 else "its kernels are"
        raise CuteError(f"{what}: {one} for {has}, and this is {target.name}: use PyTorch's own there")
    return found


def family_of(target: Any) -> str | None:
    """Say of which family a target is, by its record; None of one of none."""
    return next((f for f, of in FAMILIES.items() if target.name.rstrip("af") in [t.rstrip("a") for t in of]), None)


def target_at(x: Any) -> Any:
    """Give the record of the GPU that a tensor lies on, or that is simulated or compiled for; None where there is
    none, as of NumPy's arrays. x: a tensor, or such an array."""
    if not hasattr(x, "is_cuda"):
        return None
    return cute.target(target_of(x.device.index)) if x.is_cuda else simulated()


@functools.cache
def target_of(index: int) -> str:
    """Name the target that a GPU is, by its compute capability; Hopper and Blackwell with their "a"."""
    major, minor = pytorch().cuda.get_device_capability(index)
    return f"sm_{major}{minor}{'a' if major in (9, 10) else ''}"


def stream_of(x: Any) -> int:
    """Give the handle of torch's current stream where the tensor `x` lies; 0 in a simulation."""
    return int(pytorch().cuda.current_stream(x.device).cuda_stream) if x.is_cuda else 0


def on_device_of(x: Any) -> AbstractContextManager[Any]:
    """Make the GPU current on which the tensor `x` lies, as long as the context lasts."""
    return pytorch().cuda.device(x.device) if x.is_cuda else nullcontext()


def capturing(x: Any) -> bool:
    """Say whether a CUDA graph is captured where the tensor `x` lies."""
    return bool(x.is_cuda and pytorch().cuda.is_current_stream_capturing())


def compiling() -> bool:
    """Say whether torch.compile traces what calls this."""
    return "torch" in sys.modules and bool(sys.modules["torch"].compiler.is_compiling())


def ordinary(tensors: Iterable[Any]) -> bool:
    """Say whether tensors, or None, are torch's own, and nobody but the caller wants to know what is done with them:
    neither autograd, of either mode, nor torch.compile nor torch.func. What is not is looked at more closely."""
    torch = pytorch()
    if torch.compiler.is_compiling() or torch.autograd.forward_ad._current_level >= 0:
        return False
    own, wrapped = (torch.Tensor, torch.nn.Parameter), torch._C._functorch.is_functorch_wrapped_tensor
    grad = torch.is_grad_enabled()
    for t in tensors:  # noqa: SIM110  # each call asks
        if t is not None and (type(t) not in own or (grad and t.requires_grad) or wrapped(t)):
            return False
    return True


def refuse_tangents(what: str, tensors: Sequence[Any]) -> None:
    """Refuse tensors, or None, that have tangents, or are of `torch.func`: no kernel is differentiated in forward mode,
    or mapped. what: the entry."""
    torch = pytorch()
    if torch.compiler.is_compiling():  # which cannot ask this: there vmap is right, if slow, and grad is an error
        return
    for t in tensors:
        if isinstance(t, torch.Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(t):
            raise CuteError(
                f"{what}: a tensor of shape {tuple(t.shape)} belongs to torch.func (vmap, grad, …), which is not "
                "supported: call it with tensors, whole batches of them, and take gradients by backward()"
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


def refuse_gradients(what: str, tensors: Sequence[Any], instead: str = "") -> None:
    """Refuse tensors, or None, of which autograd wants gradients, or which have tangents. what: the entry, which has
    no derivative. instead: what has one."""
    if "torch" in sys.modules and not pytorch().compiler.is_compiling():
        refuse_tangents(what, tensors)
    for t in tensors:
        if getattr(t, "requires_grad", False) and pytorch().is_grad_enabled():
            raise CuteError(
                f"{what}: {described(t)} requires a gradient, and there is none for it: give x.detach(), or call it "
                f"under torch.no_grad(){instead and '; for gradients '}{instead}"
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
    kind = lambda t: (t.dtype, t.shape, t.stride(), t.device, t.data_ptr() & 15 == 0)  # noqa: E731
    return [None if t is None else kind(t) for t in tensors]


class Planned:
    """A function of tensors that launches what was planned for their types, shapes, strides, devices and alignment.

    plan: `plan(*tensors, *static)` gives a Work, or a function that takes the tensors and launches several. It
    reads of tensors nothing but what was said. A tensor may be None, or a list of tensors. name: of the entry, for
    messages.
    """

    def __init__(self, plan: Callable[..., Any], name: str = "kernels") -> None:
        self.plan, self.name = plan, name
        self.known: dict[Any, Callable[..., None]] = {}

    def __call__(self, tensors: Sequence[Any], static: tuple[Any, ...] = ()) -> None:
        """Launch on `tensors`; `static` are the plan's other arguments, which hash."""
        flat = _flat(tensors)
        lengths = tuple(len(x) for x in tensors if isinstance(x, (list, tuple)))
        key = (simulated(), exact(static), lengths, *kinds(flat))
        launch = self.known.get(key)
        if launch is None:
            for t in flat:
                check_place(self.name, "a tensor", t)
            made = self.plan(*tensors, *static)
            launch = made.launcher() if isinstance(made, Work) else made
            keep(self.known, key, launch)
        launch(*map(_apart, tensors))


_operators: dict[str, Operator] = {}


def _registered(name: str) -> bool:
    """Register an operator with torch, if it is not; True."""
    own = _operators[name]
    if own._made is None:
        own._made = own._registered()
    return True


_registered._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch.compile calls it while it traces


class Operator:
    """A kernel's entry: it makes results, launches what is planned, and is an operator of torch's where autograd,
    torch.compile or fake tensors ask for one.

    name: "numba_cute::…". plan: `plan(*inputs, *results, *static)` of the tensors that go in and come out, and of the
    other arguments, as of `Planned`. signature: a function whose parameters, annotated in torch's words as strings
    ("torch.Tensor", "torch.Tensor | None", "list[torch.Tensor]", "float", …; "object" for what hashes and torch has no
    word for), are the operator's arguments, tensors first. It is called with them, checks, and gives the results, new
    tensors, as a tensor or a tuple: it runs for fake tensors too. count: how many results there are; None for a list of
    some. backward, setup_context: as of `cute.torch_op`. constant: names of the tensors of which `backward` gives no
    gradient, which are refused if one is asked for. Without `backward` torch refuses. mutates: names of the tensors
    that are written; such an operator has no `backward`.
    """

    devices: str | None = "cuda"

    def __init__(
        self, name: str, plan: Callable[..., Any], signature: Callable[..., Any], *, count: int | None = 1,
        backward: Callable[..., Any] | None = None, setup_context: Callable[..., Any] | None = None,
        constant: tuple[str, ...] = (), mutates: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.mutates = mutates
        self.name, self.signature, self.backward, self.setup_context = name, signature, backward, setup_context
        self.what = name.partition("::")[2]
        self.planned, self.count = Planned(plan, self.what), count
        parameters = inspect.signature(signature).parameters.values()
        self.tensors = sum("Tensor" in str(p.annotation) for p in parameters)
        self.names = [p.name for p in parameters]
        self.constant = [self.names.index(name) for name in constant]
        self.objects = [p.annotation == "object" for p in parameters]
        _operators[name], self._made = self, None

    @property
    def made(self) -> Any:
        """The operator of torch's: registered when it is first asked for, for that takes longer than many a call."""
        _registered(self.name)
        return self._made

    def _registered(self) -> Any:
        torch = pytorch()
        own = [
            p.replace(annotation=_annotation(p.annotation), default=inspect.Parameter.empty)
            for p in inspect.signature(self.signature).parameters.values()
        ]

        def run(*args: Any) -> None:
            inputs, results = self._given_objects(args[: len(own)]), args[len(own) :]
            static = (tuple(x) if isinstance(x, list) else x for x in inputs[self.tensors :])  # as torch has sequences
            self.planned((*inputs[: self.tensors], *results), tuple(static))

        def out(*args: Any, **named: Any) -> Any:
            return self.signature(*self._given_objects([*args, *(named[n] for n in self.names[len(args) :])]))

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        each = torch.Tensor if self.count is not None else types.GenericAlias(list, (torch.Tensor,))
        results = [inspect.Parameter(f"result_{i}", kind, annotation=each) for i in range(self.count or 1)]
        functions: tuple[tuple[Any, Any], ...] = (run, own + results), (out, own)
        for function, parameters in functions:
            function.__signature__ = inspect.Signature(parameters)
            function.__annotations__ = {p.name: p.annotation for p in parameters}
        made = cute.torch_op(
            self.name, out=out, mutates=self.mutates,
            backward=None if self.mutates else self._gradients if self.backward else self._no_backward,
            setup_context=self.setup_context and self._keep, devices=self.devices,
        )  # fmt: skip
        return made(run)

    def _given_objects(self, args: Sequence[Any]) -> list[Any]:
        """The arguments of the operator, with objects in the place of their names."""
        return [carried(x) if named else x for x, named in zip(args, self.objects, strict=True)]

    def _keep(self, ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what gradients need, as `setup_context` says."""
        assert self.setup_context is not None
        self.setup_context(ctx, self._given_objects(inputs), output)

    def _gradients(self, ctx: Any, *gradients: Any) -> Any:
        """Give the gradients; of what has none it is refused."""
        assert self.backward is not None
        asked = [self.names[i] for i in self.constant if ctx.needs_input_grad[i]]
        if asked:  # of which nobody has heard where torch.compile runs
            raise CuteError(
                f"{self.what}: a gradient of {', '.join(asked)} is asked for, and there is none: give "
                f"{asked[0]}.detach()"
            )
        return self.backward(ctx, *gradients)

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
        if not ordinary((*_flat(args[: self.tensors]), *(into or ()))) and self._asked(torch, args, into):
            if into is not None and any(t is not None for t in into):
                raise CuteError(
                    f"{self.what}: out is given, and a gradient is asked for or torch.compile runs: leave out=, or "
                    "call it under torch.no_grad()"
                )
            return self.traced(*args)
        results = self.signature(*args)
        several = isinstance(results, (tuple, list))
        written = results if several else (results,)
        if into is not None:
            if len(into) != len(written):
                raise CuteError(f"{self.what}: out has {len(into)} tensors, and there are {len(written)} results")
            written = tuple(self._given(i, made, given) for i, (made, given) in enumerate(zip(written, into)))
        given = written if self.count is not None else (list(written),)
        self.planned((*args[: self.tensors], *given), tuple(args[self.tensors :]))
        return written if several else written[0]

    def _asked(self, torch: Any, args: Sequence[Any], into: Sequence[Any] | None) -> bool:
        """Refuse what there is no derivative of, and say whether the operator of torch's is called."""
        if not torch.compiler.is_compiling():
            refuse_tangents(self.what, _flat(args[: self.tensors]))
            refuse_gradients(self.what, [args[i] for i in self.constant] + list(into or ()))
        return self.watched(args)

    def traced(self, *args: Any) -> Any:
        """Call the operator of torch's, which autograd and torch.compile know, with all of its arguments."""
        given = [name_of(x) if named else x for x, named in zip(args, self.objects)]
        if pytorch().compiler.is_compiling():  # by its name, for it may be registered while torch.compile traces
            _registered(self.name)
            library, _, name = self.name.partition("::")
            return getattr(getattr(pytorch().ops, library), name)(*given)
        return self.made(*given)

    def watched(self, args: Sequence[Any]) -> bool:
        """Say whether somebody wants to know what is called: torch.compile, autograd, or what stands for tensors. args:
        of which the first are the operator's tensors."""
        torch = pytorch()
        own, grad = (torch.Tensor, torch.nn.Parameter), torch.is_grad_enabled()
        return bool(torch.compiler.is_compiling()) or any(
            (type(t) not in own and isinstance(t, torch.Tensor)) or (grad and getattr(t, "requires_grad", False))
            for t in _flat(args[: self.tensors])
        )

    def _given(self, place: int, made: Any, given: Any) -> Any:
        """Return the tensor to write to in place of `made`: `given`, if it is as large."""
        if given is None:
            return made
        check(self.what, f"out[{place}]", given, dtypes=(type_name(made),), shape=tuple(made.shape), like=made)
        return given
