# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that a kernel makes, of tensors whose address, extents and strides it alone knows: written field by field
to memory (PTX ISA, "tensormap.replace")."""

from __future__ import annotations

from typing import Any

from ... import isa, layout, seam
from ...dtypes import DType, Int64, Uint32, Uint64
from ...isa.facts.tensormap_bits import BYTES, codes
from ...seam import CuteError, frozen
from ...seam.guards.messages import how_static
from ...tensor.tensor import Tensor
from .tma_dims import Dim

_WHAT = "make_tiled_tma_atom"


@frozen
class NewTensorMap:
    """Describes a tensor map that a kernel makes: `cpasync.copy_tensormap` writes it.

    dtype: what TMA takes the elements for. unpacked: those below a byte take a byte each in shared memory. dims: the
    modes of the tensor that each dimension is made of. box: elements of a copy along each. steps: between elements that
    are copied. swizzle, oob_fill: as TMA names them. tensor: in global memory."""

    dtype: DType
    unpacked: bool
    dims: tuple[Dim, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: str
    oob_fill: str
    tensor: Tensor

    def write(self, space: str, address: Any) -> None:
        """Write the map to 128 bytes of global ("gmem") or shared memory ("smem"). One thread. It is not released."""
        b = seam.current()
        nothing = seam.Regs(b.registers(Uint32, 4), Uint32, 0, 4)
        for i in range(4):
            b.write(seam.Regs(nothing.file, Uint32, i, 1), Uint32(0))
        for at in range(0, BYTES, 16):
            b.copy_from_regs(nothing, space, address + at, 16)
        for field, code in codes(self.dtype, self.unpacked, self.swizzle, self.oob_fill).items():
            isa.tensormap_replace_code(address, space=space, field=field, value=code)
        for field, ord, value in self._numbers():
            isa.tensormap_replace(address, value, space=space, field=field, ord=ord)

    def _numbers(self) -> list[tuple[str, int, Any]]:
        """The fields that are numbers, each with the dimension that it is of."""
        gmem, pointer = self.tensor.layout, self.tensor.iterator
        width, ratio = pointer.dtype.width, 1 if self.unpacked else self.dtype.width // pointer.dtype.width
        found = [("global_address", 0, Uint64(pointer.address)), ("rank", 0, Uint32(len(self.dims) - 1))]
        for i, (dim, box, step) in enumerate(zip(self.dims, self.box, self.steps)):
            extent, stride = reach(gmem, dim)
            if i == 0:
                check_contiguous(stride, extent, gmem)
                extent = seam.quotient(extent, ratio) if ratio > 1 else extent
            else:
                found.append(("global_stride", i - 1, _in_bytes(stride, extent, width)))
            found += [("global_dim", i, Uint32(extent)), ("box_dim", i, Uint32(box * step))]
            found.append(("element_stride", i, Uint32(step)))
        return found


def reach(gmem: Any, dim: Dim) -> tuple[Any, Any]:
    """Return the extent and the stride of a dimension, which may be run-time numbers. Modes that share a dimension have
    strides that are multiples of the first one's."""
    entries = [(layout.basis_get(e, gmem.shape), layout.basis_get(e, gmem.stride)) for e in dim.modes]
    if not entries:
        return 1, 0
    (extent, unit), *more = entries
    for n, d in more:
        if type(unit) is not int or type(d) is not int or d % unit:
            raise CuteError(
                f"{_WHAT}: strides {unit} and {d} of modes that share a dimension of TMA must be static, and the "
                f"latter a multiple of the former{how_static(d)}"
            )
        extent = extent + (n - 1) * (d // unit)
    return extent, unit


def check_contiguous(stride: Any, extent: Any, gmem: Any) -> None:
    """Refuse a tensor whose innermost mode is not contiguous: where it is static, and in the simulator."""

    def refuse(d: Any, n: Any) -> None:
        if d != 1 and n != 1:
            raise CuteError(
                f"{_WHAT}: gmem_tensor {gmem} has stride {d} along the mode that is contiguous in shared memory; it "
                "must be 1: both must have the same major mode"
            )

    if type(stride) is int:
        if stride != 1 and type(extent) is int:
            refuse(stride, extent)
    else:
        seam.current().either(lambda: None, lambda: refuse(stride, extent))


def _in_bytes(stride: Any, extent: Any, width: int) -> Any:
    """A stride of elements of `width` bits in bytes; that of a mode of one element, which nobody takes, is rounded up
    to what TMA wants."""
    b = seam.current()
    nbytes = Int64(stride) * (width // 8) if width >= 8 else seam.quotient(Int64(stride) * width, 8)
    if type(extent) is int and extent != 1:
        return Uint64(nbytes)
    return Uint64(b.select(b.compare("==", extent, 1), (nbytes + 15) & -16, nbytes))
