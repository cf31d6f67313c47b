# SPDX-License-Identifier: Apache-2.0
"""Launches of the GEMMs, one for each family of GPUs: prepared, of tensors of torch's, or simulated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import numba_cute as cute
from numba_cute import utils

from .. import entry
from .checks import OPERANDS as OPERANDS, RESULT_TYPES as RESULT_TYPES
from .cuts import Umma, Warps
from .dense import THREADS
from .epilogue import Epilogue
from .indexed import named_of, of_product
from .operands import some_clusters, view
from .plan import RESULTS, USUAL, Plan, arguments, kernel_of, plan, scratch_of

if TYPE_CHECKING:
    pass


def plans_of(cut: Warps | Umma) -> Any:
    """Give the module that plans for a family beside Hopper's. cut: one of its."""
    if isinstance(cut, Umma):
        from . import umma_plan

        return umma_plan
    from . import warps_plan

    return warps_plan


def simulate(
    a: Any, b: Any, c: Any, dtype: Any, cut: Plan | Warps | Umma = USUAL, epilogue: Epilogue | None = None,
    clusters: int = 1, c_dtype: Any = None, apart: int | None = None, **options: Any,
) -> None:  # fmt: skip
    """Run the GEMM in the simulator on NumPy's arrays. a, b, c, dtype, cut, epilogue, c_dtype, apart: as of
    `arguments`. clusters: that fit on the device. options: those of `cute.simulate`; arch is the first that has the
    cut's instructions, if not given."""
    if not isinstance(cut, Plan):
        plans, room, first = plans_of(cut), {}, entry.WARPS
        if isinstance(cut, Umma):
            room = {"clusters": clusters, "scratch": _poisoned(plans.scratch_of(view(c), cut, clusters, epilogue))}
            first = entry.TENSOR_MEMORY
        options = {"arch": first} | options
        given, blocks = plans.arguments(a, b, c, dtype, cute.target(options["arch"]), cut, epilogue, c_dtype, **room)
        cute.simulate(plans.kernel_of(cut), **options)[blocks, cut.threads](*given)
        return
    memory = _poisoned(scratch_of(c, cut, clusters, epilogue))
    args, grid = arguments(a, b, c, dtype, clusters, cut, epilogue, memory, c_dtype, apart=apart)
    cute.simulate(kernel_of(cut), **options)[grid, THREADS](*args)


def _poisoned(counts: tuple[int, int]) -> tuple[Any, Any]:
    """Make the memory of splits for the simulator, of sums that are none."""
    return np.full(counts[0], np.nan, np.float32), np.zeros(counts[1], np.int32)


def launch_of(
    a: Any, b: Any, c: Any, dtype: Any, cut: Plan, epilogue: Epilogue | None = None, c_dtype: Any = None
) -> Callable[[], None]:
    """Prepare a launch of the GEMM for arrays of the device: call it as often as you like. a, b, c, dtype, cut,
    epilogue, c_dtype: as of `arguments`. It overlaps with the launch before it (programmatic dependent launch)."""
    memory = scratch(c, scratch_of(c, cut, clusters_here(cut), epilogue)) if cut.splits > 1 else None
    args, grid = arguments(a, b, c, dtype, clusters_here(cut), cut, epilogue, memory, c_dtype)
    return cute.launch(kernel_of(cut), grid=grid, block=THREADS, pdl=True).prepare(*args)  # type: ignore[no-any-return]


def launcher(
    a: Any, b: Any, c: Any, dtype: Any, epilogue: Epilogue | None = None, c_dtype: Any = None, parts: int | None = None
) -> Callable[[], None]:
    """Prepare a launch, cut as `plan` finds best. parts: into how many K is split. The others: as of `arguments`."""
    width = (c_dtype or RESULTS[dtype]).width
    cut = plan(c, a.shape[-1], dtype, sms_here(), epilogue, width, parts)
    return launch_of(a, b, c, dtype, cut, epilogue, c_dtype)


def scratch(c: Any, counts: tuple[int, int]) -> tuple[Any, Any]:
    """Make the memory by which splits add their sums, where `c` lies. counts: as of `scratch_of`."""
    torch, (sums, tiles) = entry.pytorch(), counts
    return torch.empty(sums, device=c.device), torch.zeros(tiles, device=c.device, dtype=torch.int32)


def clusters_here(cut: Plan) -> int:
    """Count the clusters of a cut that fit on the current device."""
    ctas = cut.sharers * cut.parts
    return int(some_clusters(f"gemm: {cut}", utils.HardwareInfo().get_max_active_clusters(ctas), ctas))


def sms_here() -> int:
    """Count the SMs of the current device."""
    return int(utils.HardwareInfo().get_device_multiprocessor_count())


# ---------------------------------------------------------------- launches on torch's tensors


class Splits:
    """The memory of a problem's splits: for each stream some, for launches on one stream follow each other. counts: as
    of `scratch_of`; None, where nothing is split."""

    def __init__(self, counts: tuple[int, int] | None = None) -> None:
        self.counts = counts
        self.known: dict[int, tuple[Any, Any]] = {}

    def __call__(self, c: Any) -> tuple[Any, ...]:
        """Give that of the current stream, for a result like `c`; nothing, where nothing is split."""
        if self.counts is None:
            return ()
        if not hasattr(c, "is_cuda"):  # NumPy's, to be simulated
            return _poisoned(self.counts)
        if not c.is_cuda or entry.capturing(c):  # a graph has its own, which it makes zero
            return scratch(c, self.counts)
        stream = entry.stream_of(c)
        if stream not in self.known:
            self.known[stream] = scratch(c, self.counts)
        return self.known[stream]


def operands_of(t: Any) -> Any:
    """Say as what a tensor's elements are multiplied: float32 as TF32. t: the tensor."""
    return cute.TFloat32 if entry.type_name(t) == "float32" else entry.element_type(t)


def launch_on(
    tensors: tuple[Any, Any, Any], place: Callable[[Any, Any, Any], tuple[Any, Any, Any]], dtype: Any,
    cut: Plan | Warps | Umma, epilogue: Epilogue | None = None, rows: Any = (None, None), share: int | None = None,
    apart: int | None = None,
) -> Callable[..., None]:  # fmt: skip
    """Give what launches the GEMM on tensors like some: two operands, a result, the epilogue's, and the indices.

    tensors: the first three. place: gives of them a, b and c as of `arguments`. dtype, cut, epilogue: as there. rows:
    the indices that name A's rows and C's, or None. share: of a Warps, apart: of a Plan, as of their
    arguments."""
    indices = [r for r in rows if r is not None]
    named, form, count = (
        (rows[0] is not None, rows[1] is not None),
        epilogue and epilogue.form,
        len(epilogue.tensors) if epilogue else 0,
    )
    c_dtype = entry.element_type(tensors[2])
    if not isinstance(cut, Plan):
        plans, target = plans_of(cut), entry.target_at(tensors[0])
        c = view(place(*[t.detach() for t in tensors])[2])
        c = of_product(c, indices[0].shape[0]) if indices else c
        splits = Splits()
        if isinstance(cut, Umma) and cut.splits > 1:
            splits = Splits(plans.scratch_of(c, cut, plans.clusters_here(cut), epilogue))

        @cute.runtime.remembered
        def made(x: Any, y: Any, z: Any, *others: Any) -> Any:
            own, (a, b, c) = Epilogue.of(form, others[:count]) if form else None, place(x, y, z)
            a, c, of_a, of_c, scratch = named_of(a, c, named, others[count:])
            beside = {"share": share} if isinstance(cut, Warps) else {"scratch": scratch}
            return plans.arguments(
                a, b, c, dtype, target, cut, own, c_dtype, rows_a=of_a, rows_c=of_c, **beside
            )  # fmt: skip

    else:
        most = clusters_here(cut)
        c = place(*[t.detach() for t in tensors])[2]
        c = of_product(c, indices[0].shape[0]) if indices else c
        added = cut.splits > 1 and (apart is None or len(c.shape) == 2)
        splits = Splits(scratch_of(c, cut, most, epilogue)) if added else Splits()

        @cute.runtime.remembered
        def made(x: Any, y: Any, z: Any, *others: Any) -> Any:
            own, (a, b, c) = Epilogue.of(form, others[:count]) if form else None, place(x, y, z)
            a, c, of_a, of_c, scratch = named_of(a, c, named, others[count:])
            return arguments(a, b, c, dtype, most, cut, own, scratch, c_dtype, of_a, of_c, apart)

    given = [t.detach() for t in (*tensors, *(epilogue.tensors if epilogue else ()), *indices)]
    if isinstance(cut, Plan):
        bind = functools.partial(cute.launch, kernel_of(cut), block=THREADS, pdl=True)
    else:
        bind = functools.partial(cute.launch, plans.kernel_of(cut), block=cut.threads, pdl=isinstance(cut, Umma))
    return repeated(made, splits, bind, given)


def repeated(
    made: Callable[..., Any], splits: Splits, bind: Callable[..., Any], given: list[Any]
) -> Callable[..., None]:
    """Give what launches on tensors like some, of which what does not fit is refused here. made: gives the arguments of
    tensors and of the memory of splits, and the grid. bind: gives what launches on a grid. given: the tensors."""
    given = [*given, *splits(given[2])]
    args, grid = made(*given)
    bound = bind(grid=grid)
    fresh: tuple[list[int], Any] | None = ([t.data_ptr() for t in given], args)

    def launch(x: Any, y: Any, z: Any, *given: Any) -> None:
        nonlocal fresh
        others = [t.detach() if t is z else t for t in given]  # no object comes twice: else nothing is remembered
        every = x, y, z, *others, *splits(z)
        if fresh is None:
            bound(*made(*every)[0])
            return
        (places, args), fresh = fresh, None  # the first launch is mostly on these tensors
        bound(*(args if places == [t.data_ptr() for t in every] else made(*every)[0]))

    return launch
