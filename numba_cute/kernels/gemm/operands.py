# SPDX-License-Identifier: Apache-2.0
"""Make of a GEMM's matrices, on the host: tensors, their places in shared memory, and launches whose TMA atoms go
where the tensors of each call lie."""

from typing import Any

import numpy as np

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import CtaGroup, cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError
from numba_cute.seam.ground.records import dataclass

from .. import entry

THREADS, CONSUMER_WARPS = 384, 8
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232


class Source:
    """A matrix with a way of its own to shared memory, or from there. A subclass has `shape`, its extents, (rows, K) of
    an operand, and the `mode`, 0 or 1, that is contiguous. For `dense.py` and `umma.py`, where K counts whole tiles, it
    has of `loads` and `stores` the one for what it can be, an operand or a result; for `warps.py` it has `copied`."""

    shape: tuple[int, int]
    mode = 1

    def loads(self, dtype, smem, tile, ctas, rows, together=1):
        """Make the TMA atom that loads an operand's tiles, and its coordinates: (rows, K), K perhaps of several modes,
        whose tiles are counted along the first one first. dtype: what its elements are taken for. smem: of a tile in
        shared memory. tile: its extents. ctas: how many share it by multicast. rows: how many the coordinates must
        have. together: as of `load_op`."""
        raise NotImplementedError

    def stores(self, dtype, smem, tile, extents):
        """Make the TMA atom that stores a result's pieces, and its coordinates, of such `extents`. dtype, smem, tile:
        as of `loads`."""
        raise NotImplementedError

    def copied(self, dtype, tile, threads):
        """Make a tensor of it, and what says how so many threads copy its tiles, which has of the methods of
        `warps.Copies` that for what it can be: `tiles` of an operand, `leave` of a result."""
        raise NotImplementedError


def view(array, align=None):
    """Make a tensor of an array as it lies, or give a tensor or a `Source`. array: it begins at a multiple of `align`
    bytes, or of those of an element."""
    return array if isinstance(array, (cute.Tensor, Source)) else from_dlpack(array, assumed_align=align)


def swapped(tensor):
    """Exchange a tensor's last two modes."""
    *others, i, j = range(cute.rank(tensor))
    return cute.make_tensor(tensor.iterator, cute.select(tensor.layout, mode=[*others, j, i]))


def tensor_of(array, mode, dtype=None):
    """Make a tensor of an array, contiguous along `mode`, whose extents are known at run time. array: it begins at a
    multiple of 16 bytes. dtype: another element type of the same width."""
    t = view(array, 16)
    shown = enumerate(zip(t.shape, t.stride))
    strides = [s if n > 1 else 1 if i == mode else 128 for i, (n, s) in shown]  # as TMA wants them
    whole = cute.make_tensor(t.iterator, cute.make_layout(t.shape, stride=tuple(strides)))
    return cute.recast_tensor(whole.mark_layout_dynamic(leading_dim=mode), dtype or t.element_type)


def contiguous(array):
    """Give the mode, 0 or 1 of the last two, along which an array's elements, or a source's, follow one another: of
    one element, if there is no other."""
    if isinstance(array, Source):
        return array.mode
    t = view(array)
    shape, stride = t.shape[-2:], t.stride[-2:]
    found = cute.leading_dim(shape, stride)
    alone = [(s != 1, -m) for m, (n, s) in enumerate(zip(shape, stride)) if n == 1]
    return -min(alone)[1] if found is None and alone else int(found)


def operand(array, dtype):
    """Make a tensor of an array with run-time extents, the batch last, and give its contiguous mode too. dtype: what
    its elements are taken for, of the same width. A `Source` is given as it is. Batches of several modes are one, which
    is counted along the last of them first; of these a stride of 0 is part of the type: such a mode is none of a tensor
    map's."""
    if isinstance(array, Source):
        return array, array.mode
    mode, batch = contiguous(array), len(array.shape) - 2
    t = tensor_of(array, mode + batch, dtype)  # Numba's arrays say int16
    if batch == 1:
        t = cute.make_tensor(t.iterator, cute.select(t.layout, mode=[1, 2, 0]))
    elif batch:
        steps = tuple(s if own else 0 for s, own in zip(t.stride, view(array).stride))
        batches = tuple(range(batch))[::-1]
        shape = (*t.shape[-2:], tuple(t.shape[i] for i in batches))
        t = cute.make_tensor(
            t.iterator, cute.make_layout(shape, stride=(*steps[-2:], tuple(steps[i] for i in batches)))
        )  # fmt: skip
    return t, mode


def load_op(ctas, together=1, im2col=False):
    """Give TMA's operation that loads tiles. ctas: that share a tile by multicast. together: that multiply together,
    on whose first one's barrier the bytes complete. im2col: whether the tiles are of images' im2col matrix."""
    kind = ("Im2Col" if im2col else "Tile") + "G2S" + ("" if ctas == 1 else "Multicast")
    return getattr(cpasync, f"CopyBulkTensor{kind}Op")(cta_group=CtaGroup(together))


def load_atom(tensor, layout, tile, ctas=1, together=1):
    """Make the TMA atom, and its coordinates, that loads tiles of `tensor` to a stage of `layout`. ctas, together: as
    of `load_op`."""
    smem = cute.slice_(layout, (None, None, 0))
    return cpasync.make_tiled_tma_atom(load_op(ctas, together), tensor, smem, tile, ctas)


def most_clusters(array, ctas):
    """Count the clusters of `ctas` CTAs that run at once where `array` lies, or that is simulated; of NumPy's: one."""
    if getattr(getattr(array, "device", None), "type", None) != "cuda":
        return 1 if entry.simulated() is None else utils.HardwareInfo().get_max_active_clusters(ctas)
    return utils.HardwareInfo(array.device.index).get_max_active_clusters(ctas)


def some_clusters(what, count, ctas):
    """Give how many clusters of `ctas` CTAs run at once, which is `count`; refuse that it is none: a GPU, or the slice
    of one, may have fewer SMs. what: the entry, and how it is cut."""
    if count < 1:
        raise CuteError(
            f"{what}: a cluster has {ctas} CTAs, one to an SM, and this GPU has no room for one: give a cut of fewer, "
            "or more SMs"
        )
    return count


def check_rows(what, by="TMA", **arrays):
    """Refuse matrices that TMA, or cp.async, cannot take: rows that are not multiples of 16 bytes, or that begin
    elsewhere. by: which of them copies."""
    for name, x in arrays.items():
        size = x.element_size() if hasattr(x, "element_size") else x.itemsize
        steps = sorted(s for s, n in zip(entry.strides(x), x.shape) if n > 1)
        wide = [s for s in steps if s > 1]
        if any(s * size % 16 for s in wide):
            raise CuteError(
                f"{what}: {name} is {entry.described(x)}; {by} takes rows that are multiples of 16 bytes, and a stride "
                f"here is {next(s for s in wide if s * size % 16) * size} bytes: pad the contiguous mode"
            )
        if not entry.aligned(x):
            raise CuteError(f"{what}: {name} begins at no multiple of 16 bytes, which {by} needs: give {name}.clone()")


_counters = dict[Any, Any]()


def counter_of(array):
    """Give an int32 where `array` lies, which is 0 whenever no launch is under way on the current stream."""
    device: Any = getattr(array, "device", None)
    if not hasattr(device, "type"):
        return np.zeros(1, np.int32)
    torch = entry.pytorch()
    if device.type != "cuda" or entry.capturing(array):  # a graph has its own, which it makes zero
        return torch.zeros(1, dtype=torch.int32, device=device)
    key = device, entry.stream_of(array)
    if key not in _counters:
        _counters[key] = torch.zeros(1, dtype=torch.int32, device=device)
    return _counters[key]


def counter_beside(first, *others):
    """Give a tuple of `counter_of` a launch's first tensor, as of `Mapped.beside`."""
    return (counter_of(first),)


@dataclass(frozen=True)
class Mapped(entry.Work):
    """A launch whose arguments, with TMA atoms, are made of the tensors.

    tensors: those that it was planned for. arguments: makes the arguments of tensors. ready: a tensor of the launch's
    own, in the place of the one that is None. beside: a function of them that gives some of the launch's own, which
    come after them; None for none. pdl: whether it begins while the one before it ends."""

    tensors: tuple[Any, ...] = ()
    arguments: Any = None
    ready: Any = None
    beside: Any = None
    pdl: bool = True

    def launcher(self):
        """Give the function that launches on tensors like those that it was planned for, and keeps none."""
        bound = cute.launch(
            self.kernel, grid=self.grid, block=self.block, cluster=self.cluster, smem=self.smem, pdl=self.pdl
        )  # fmt: skip
        made, given = cute.runtime.remembered(self.arguments), (self.ready, self.beside)  # and not `self`

        def launch(*tensors):
            bound(*made(*whole(tensors, *given)))

        return launch

    def given(self):
        """Give the arguments of the tensors that it was planned for."""
        return self.arguments(*whole(self.tensors, self.ready, self.beside))

    def simulate(self, *arrays, **options):
        """Run it in the simulator, on the arrays that it was planned for; no others are taken."""
        assert not arrays
        run = cute.simulate(self.kernel, cluster=self.cluster, **options)
        run[self.grid, self.block, 0, self.smem](*self.given())

    def compile(self, *arrays, arch="sm_90a"):
        """Compile the kernel without a GPU, for the arrays that it was planned for; gives what `cute.compile` does."""
        assert not arrays
        return cute.compile(self.kernel, self.given(), arch=arch)


def whole(tensors, ready, beside):
    """Give the tensors that arguments are made of. ready, beside: as of `Mapped`."""
    given = tuple(ready if t is None else t for t in tensors)
    return given if beside is None else (*given, *beside(*given))


def mapped(kernel, grid, cluster, tensors, arguments, ready=None, beside=None, block=THREADS, pdl=True):
    """Make the launch of a kernel. tensors: those that it is planned for. arguments: makes its arguments of them, by
    what `cute.runtime.remembered` allows. ready, beside, pdl: as of `Mapped`."""
    return Mapped(
        kernel, grid, block, cluster=cluster, tensors=tensors, arguments=arguments, ready=ready, beside=beside, pdl=pdl
    )  # fmt: skip


def padded(shape: tuple[int, ...], like: Any, zeros: bool = False) -> Any:
    """Make a result whose rows are multiples of 16 bytes in memory. like: of its type, where it lies."""
    *outer, n = shape
    whole = (*outer, -(-n // 8) * 8)
    return (like.new_zeros(whole) if zeros else like.new_empty(whole))[..., :n]
