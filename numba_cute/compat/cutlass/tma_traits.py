# SPDX-License-Identifier: Apache-2.0
"""TMA atoms that files make by the operation of the CuTe DSL's IR, with a tile of their own."""

from __future__ import annotations

from typing import Any

from ...atoms.copy_atom import CopyAtom as _CopyAtom
from ...nvgpu.cpasync import make_tiled_tma_atom
from ...seam import CuteError

__all__ = ["CopyAtom", "CopyBulkTensorTileG2SNonExecTrait", "atom_make_non_exec_tiled_tma_load"]


def atom_make_non_exec_tiled_tma_load(
    gmem_tensor: Any, smem_layout: Any, cta_v_map: Any, op: Any, *, num_multicast: int = 1, loc: Any = None,
    ip: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Make the TMA atom that loads tiles of a tensor, and the tensor of its coordinates: `cpasync.make_tiled_tma_atom`
    with the tile as a layout.

    gmem_tensor: the tensor. smem_layout: of a tile in shared memory. cta_v_map: from the coordinates of a tile to those
    of the tensor. op: a TMA load. num_multicast: how many blocks share a tile. PTX cp.async.bulk.tensor, sm_90.
    """
    made = make_tiled_tma_atom(op, gmem_tensor, smem_layout, cta_v_map, num_multicast)
    return made.copy_atom, made.tma_tensor


class CopyBulkTensorTileG2SNonExecTrait:
    """The traits of a TMA load's atom besides its operation. value: the atom that `atom_make_non_exec_tiled_tma_load`
    gave."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Atoms(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, _CopyAtom)


class CopyAtom(metaclass=_Atoms):
    """The class of copy atoms; called, it gives the one of a trait. op: its operation. trait: what an operation of the
    IR gave. CuteError: another trait."""

    def __new__(cls, op: Any, trait: Any = None, *args: Any, **named: Any) -> Any:
        if isinstance(trait, CopyBulkTensorTileG2SNonExecTrait):
            return trait.value
        if trait is None:
            raise CuteError(f"CopyAtom: op {op!r} alone: give its trait, or write cute.make_copy_atom(op, dtype)")
        return _CopyAtom(op, trait, *args, **named)
