# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that a kernel changes as it goes: a grouped product has one tensor after the other, and one atom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import seam
from ..arch.index import warp_idx
from ..arch.warp import elect_one, sync_warp
from ..atoms.copy_atom import CopyAtom
from ..isa.facts.tensormap_bits import BYTES
from ..nvgpu import cpasync
from ..seam import CuteError, Int, StaticEnum, frozen
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.tensor import Tensor

__all__ = ["TensorMapManager", "TensorMapUpdateMode"]


class TensorMapUpdateMode(StaticEnum):
    """The memory in which tensor maps are changed: global memory (GMEM), or shared memory, from where they are then
    copied (SMEM).

    >>> [member.name for member in utils.TensorMapUpdateMode]
    ['GMEM', 'SMEM']
    """

    GMEM = 1
    SMEM = 2


@frozen
class TensorMapManager:
    """A manager that makes, changes and publishes tensor maps in global memory, one for each atom and block (or warp).

    tensormap_update_mode: a TensorMapUpdateMode. bytes_per_tensormap: 128. In order: `init_tensormap_from_atom`, once,
    into global memory (GMEM) or shared memory (SMEM); `fence_tensormap_initialization`; then for each new tensor
    `update_tensormap` and `fence_tensormap_update`, and copies with `tma_desc_ptr=get_tensormap_ptr(…)`. Every method
    is for whole converged warps. PTX tensormap.replace, sm_90a, and sm_100f and later families.

    >>> x, y = [cute.runtime.from_dlpack(np.full((2, 4), i, np.float32), assumed_align=16) for i in (1, 2)]
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, coords = nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, box, (2, 4))
    >>> raw = np.zeros(256, np.uint8)
    >>> at = -raw.ctypes.data % 128
    >>> manager = utils.TensorMapManager(utils.TensorMapUpdateMode.GMEM)
    >>> def kernel(atom, coords, y, maps):
    ...     bar, mine = arch.alloc_smem(cute.Int64, 1), manager.get_tensormap_ptr(maps.iterator)
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 8, alignment=128), box)
    ...     manager.init_tensormap_from_atom(atom, mine, 0)
    ...     manager.fence_tensormap_initialization()
    ...     manager.update_tensormap((y,), (atom,), (mine,), 0, (None,))
    ...     manager.fence_tensormap_update(mine)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 1)
    ...         arch.mbarrier_init_fence()
    ...         arch.mbarrier_arrive_and_expect_tx(bar, 32)
    ...     arch.sync_warp()
    ...     to, source = cute.group_modes(s, 0, 2), cute.group_modes(coords, 0, 2)
    ...     cute.copy(atom, source, to, tma_bar_ptr=bar, tma_desc_ptr=mine)
    ...     arch.mbarrier_wait(bar, 0)
    ...     if arch.lane_idx() == 0:
    ...         print(s[0, 0])
    >>> cute.simulate(kernel)[1, 32](atom, coords, y, cute.runtime.from_dlpack(raw[at : at + 128], assumed_align=128))
    2.0
    """

    tensormap_update_mode: TensorMapUpdateMode
    bytes_per_tensormap: int = BYTES

    def __post_init__(self) -> None:
        if not isinstance(self.tensormap_update_mode, TensorMapUpdateMode):
            raise CuteError(
                f"TensorMapManager: tensormap_update_mode {self.tensormap_update_mode!r} is not a member of "
                "TensorMapUpdateMode"
            )
        if self.bytes_per_tensormap != BYTES:
            raise CuteError(f"TensorMapManager: bytes_per_tensormap {self.bytes_per_tensormap} must be {BYTES}")

    def get_tensormap_ptr(self, ptr: Pointer, address_space: AddressSpace = AddressSpace.gmem) -> Pointer:
        """Return `ptr`, to a tensor map in global memory, as `tma_desc_ptr` takes it. address_space: AddressSpace.gmem,
        as by default, or generic."""
        if address_space not in (AddressSpace.gmem, AddressSpace.generic):
            raise CuteError(f"get_tensormap_ptr: address_space {address_space!r} must be gmem or generic")
        if not isinstance(ptr, Pointer) or ptr.space not in (AddressSpace.gmem, AddressSpace.generic):
            raise CuteError(f"get_tensormap_ptr: ptr {ptr!r} must be a Pointer to global memory")
        return replace(ptr, space=address_space, alignment=max(ptr.alignment, BYTES))

    def init_tensormap_from_atom(self, copy_atom: CopyAtom, dst_ptr: Pointer, warp_id: Int) -> None:
        """Copy the tensor map of `copy_atom`, a TMA atom, to `dst_ptr` (global memory, or shared for SMEM). warp_id:
        the warp that does it."""

        def copy() -> None:
            seam.current().when(elect_one(), lambda: cpasync.copy_tensormap(copy_atom, dst_ptr))
            sync_warp()

        seam.current().when(_is_warp(warp_id), copy)

    def fence_tensormap_initialization(self) -> None:
        """Let what `init_tensormap_from_atom` wrote to global memory be changed and used. The warp that wrote. PTX
        fence.proxy.tensormap, sm_90."""
        if self.tensormap_update_mode is TensorMapUpdateMode.GMEM:
            cpasync.fence_tma_desc_release()

    def fence_tensormap_update(self, tensormap_ptr: Pointer) -> None:
        """Let this warp's later copies see the tensor map at `tensormap_ptr` as `update_tensormap` left it. PTX
        fence.proxy.tensormap, sm_90."""
        cpasync.fence_tma_desc_acquire(tensormap_ptr)

    def update_tensormap(
        self,
        tensor_gmem: tuple[Tensor, ...],
        tma_copy_atom: tuple[CopyAtom, ...],
        tensormap_gmem_ptr: tuple[Pointer, ...],
        warp_id: Int,
        tensormap_smem_ptr: tuple[Pointer, ...] = (),
    ) -> None:
        """Set the address, shape and strides of each tensor map to those of its tensor.

        tensor_gmem, tma_copy_atom, tensormap_gmem_ptr: tuples alike in number. warp_id: the warp that does it.
        tensormap_smem_ptr: for SMEM, the places where `init_tensormap_from_atom` put the maps. PTX tensormap.replace,
        sm_90a.
        """
        smem = self.tensormap_update_mode is TensorMapUpdateMode.SMEM
        changed = tensormap_smem_ptr if smem else tensormap_gmem_ptr
        counts = {len(x) for x in (tensor_gmem, tma_copy_atom, tensormap_gmem_ptr, changed)}
        if len(counts) != 1:
            raise CuteError(
                f"update_tensormap: {len(tensor_gmem)} tensors, {len(tma_copy_atom)} atoms, {len(tensormap_gmem_ptr)} "
                f"pointers to global and {len(tensormap_smem_ptr)} to shared memory must be alike in number"
            )

        def change() -> None:
            for t, atom, ptr in zip(tensor_gmem, tma_copy_atom, changed):
                cpasync.update_tma_descriptor(atom, t, ptr)
            if not smem:
                cpasync.fence_tma_desc_release()

        def update() -> None:
            seam.current().when(elect_one(), change)
            sync_warp()
            if smem:
                for to, source in zip(tensormap_gmem_ptr, tensormap_smem_ptr):
                    cpasync.cp_fence_tma_desc_release(to, source)

        seam.current().when(_is_warp(warp_id), update)


def _is_warp(warp_id: Any) -> Any:
    return seam.current().compare("==", warp_idx(), warp_id)
