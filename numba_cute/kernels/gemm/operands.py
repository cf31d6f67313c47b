# SPDX-License-Identifier: Apache-2.0
"""What the host makes of a GEMM's matrices: tensors, their places in shared memory, and launches whose TMA atoms go
where the tensors of each call lie."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

from .. import entry

THREADS, CONSUMER_WARPS = 384, 8
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
ADDRESSES = 256  # sets of tensors whose atoms one launch remembers


class Source:
    """A matrix with a way of its own to shared memory, or from there, as `dense.py` takes it. A subclass has `shape`,
    its extents, (rows, K) of an operand, where K counts whole tiles, and the `mode`, 0 or 1, that is contiguous."""

    shape: tuple[int, int]
    mode = 1

    def loads(self, dtype, smem, tile, ctas, rows):
        """Make the TMA atom that loads an operand's tiles, and its coordinates: (rows, K), K perhaps of several modes,
        whose tiles are counted along the first one first. dtype: what its elements are taken for. smem: of a tile in
        shared memory. tile: its extents. ctas: how many share it by multicast. rows: how many the coordinates must
        have."""
        raise NotImplementedError

    def stores(self, dtype, smem, tile, extents):
        """Make the TMA atom that stores a result's pieces, and its coordinates, of such `extents`. dtype, smem, tile:
        as of `loads`."""
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
    strides = [s if n > 1 or i == mode else 128 for i, (n, s) in enumerate(zip(t.shape, t.stride))]  # as TMA wants them
    whole = cute.make_tensor(t.iterator, cute.make_layout(t.shape, stride=tuple(strides)))
    return cute.recast_tensor(whole.mark_layout_dynamic(leading_dim=mode), dtype or t.element_type)


def contiguous(array):
    """Give the mode, 0 or 1 of the last two, along which an array's elements, or a source's, follow one another."""
    if isinstance(array, Source):
        return array.mode
    t = view(array)
    return int(cute.leading_dim(t.shape[-2:], t.stride[-2:]))


def operand(array, dtype):
    """Make a tensor of an array with run-time extents, the batch last, and give its contiguous mode too. dtype: what
    its elements are taken for, of the same width. A `Source` is given as it is."""
    if isinstance(array, Source):
        return array, array.mode
    mode, batch = contiguous(array), len(array.shape) - 2
    t = tensor_of(array, mode + batch, dtype)  # Numba's arrays say int16
    if batch:
        t = cute.make_tensor(t.iterator, cute.select(t.layout, mode=[1, 2, 0]))
    return t, mode


def load_atom(tensor, layout, tile, ctas=1):
    """Make the TMA atom, and its coordinates, that loads tiles of `tensor` to a stage of `layout`, for so many CTAs."""
    op = cpasync.CopyBulkTensorTileG2SOp() if ctas == 1 else cpasync.CopyBulkTensorTileG2SMulticastOp()
    return cpasync.make_tiled_tma_atom(op, tensor, cute.slice_(layout, (None, None, 0)), tile, ctas)


def most_clusters(array, ctas):
    """Count the clusters of `ctas` CTAs that run at once where `array` lies; one in the simulator."""
    if getattr(getattr(array, "device", None), "type", None) != "cuda":
        return 1
    return utils.HardwareInfo(array.device.index).get_max_active_clusters(ctas)


def check_rows(what, **arrays):
    """Refuse matrices that TMA cannot take: rows that are no multiples of 16 bytes, or that begin elsewhere."""
    for name, x in arrays.items():
        size = x.element_size() if hasattr(x, "element_size") else x.itemsize
        steps = sorted(s for s, n in zip(entry.strides(x), x.shape) if n > 1)
        wide = [s for s in steps if s > 1]
        if any(s * size % 16 for s in wide):
            raise CuteError(
                f"{what}: {name} is {entry.described(x)}; TMA takes rows that are multiples of 16 bytes, and a stride "
                f"here is {next(s for s in wide if s * size % 16) * size} bytes: pad the contiguous mode"
            )
        if not entry.aligned(x):
            raise CuteError(f"{what}: {name} begins at no multiple of 16 bytes, which TMA needs: give {name}.clone()")


def address_of(array):
    """Say where an array of torch's or NumPy's begins."""
    return array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data


def moved(atom, address):
    """Give a TMA atom whose map begins elsewhere."""
    return replace(atom, tensor_map=replace(atom.tensor_map, address=address))


class Of(NamedTuple):
    """An argument that belongs to a tensor of the call: a TMA atom, or the tensor itself."""

    value: Any
    number: int


@dataclass(frozen=True)
class Mapped(entry.Work):
    """A launch whose arguments, `static`, hold TMA atoms. atoms: of each its place in `static`, the number of its
    tensor, and how many bytes from that tensor's beginning its map begins. arrays: the place and the number of each
    tensor that is an argument itself."""

    atoms: tuple[tuple[int, int, int], ...] = ()
    arrays: tuple[tuple[int, int], ...] = ()

    def launcher(self):
        """Give the function that launches on tensors like those that the atoms were made for, and keeps none."""
        bound = cute.launch(self.kernel, grid=self.grid, block=self.block, cluster=self.cluster, smem=self.smem)
        of_atoms, of_arrays, known = self.atoms, self.arrays, dict[Any, Any]()  # `launch` must not hold `self`
        given = list(self.static)
        for place, *_ in of_atoms:
            given[place] = replace(given[place], source=None)
        for place, _ in of_arrays:
            given[place] = None

        def launch(*tensors):
            key = tuple(tensors[i].data_ptr() for _, i, _ in of_atoms)
            atoms = known.get(key)
            if atoms is None:
                atoms = [moved(given[p], at + begin) for at, (p, _, begin) in zip(key, of_atoms)]
                if len(known) >= ADDRESSES:
                    known.pop(next(iter(known)), None)
                known[key] = atoms
            arguments = given.copy()
            for (place, *_), atom in zip(of_atoms, atoms):
                arguments[place] = atom
            for place, i in of_arrays:
                arguments[place] = tensors[i]
            bound(*arguments)

        return launch

    def simulate(self, *arrays, **options):
        """Run it in the simulator, on the arrays that it was planned for; no others are taken."""
        assert not arrays
        run = cute.simulate(self.kernel, cluster=self.cluster, **options)
        run[self.grid, self.block, 0, self.smem](*self.static)

    def compile(self, *arrays, arch="sm_90a"):
        """Compile the kernel without a GPU, for the arrays that it was planned for; gives what `cute.compile` does."""
        assert not arrays
        return cute.compile(self.kernel, self.static, arch=arch)


def mapped(kernel, grid, cluster, tensors, arguments):
    """Make the launch of a kernel. tensors: those that it is planned for. arguments: of each its value, and for a TMA
    atom or a tensor of a call, in a pair with the tensor's number."""
    static, atoms, arrays = [], [], []
    for place, x in enumerate(arguments):
        value, number = x if isinstance(x, Of) else (x, None)
        static.append(value)
        if number is None:
            continue
        if isinstance(value, cute.CopyAtom):
            atoms.append((place, number, value.tensor_map.address - address_of(tensors[number])))
        else:
            arrays.append((place, number))
    return Mapped(
        kernel, grid, THREADS, cluster=cluster, static=tuple(static), atoms=tuple(atoms), arrays=tuple(arrays)
    )
