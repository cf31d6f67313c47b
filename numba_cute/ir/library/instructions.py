# SPDX-License-Identifier: Apache-2.0
"""The instructions of the dialect `cute_nvgpu` for which the API has no function of that name.

Each issues one instruction of an atom of its kind, on the fragments of one instruction (one mode, V). `KINDS` says
which operations of the API each is for; `atoms` has what makes the atoms. Kernels may call them like the API's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ... import layout
from ...arch.mbarrier import mbarrier_arrive, mbarrier_init, mbarrier_wait
from ...atoms.copy import copy
from ...atoms.copy_atom import CopyAtom, TiledCopy
from ...atoms.instructions import instructions
from ...atoms.mma_atom import MmaAtom, TiledMma
from ...atoms.op import CopyOp
from ...nvgpu import CopyG2ROp, CopyR2GOp, CopyR2SOp, CopyS2ROp, CopyUniversalOp, MmaUniversalOp, cpasync, warp
from ...nvgpu.ampere.warp_mma import BlockScaled, WarpMma
from ...nvgpu.ampere.warp_sparse import SparseWarpMma
from ...nvgpu.blackwell.copies import TmemCopy
from ...nvgpu.blackwell.copies_shared import SharedToTensor
from ...nvgpu.blackwell.mma import UnitMma
from ...nvgpu.blackwell.mma_scaled import ScaledMma
from ...nvgpu.hopper.bulk import BulkCopy
from ...nvgpu.hopper.tma_ops import TmaCopyOp
from ...nvgpu.hopper.warpgroup_mma import WarpgroupMma
from ...nvgpu.hopper.warpgroup_sparse import SparseWarpgroupMma
from ...seam import CuteError, known_as, traced
from ...tensor.pointer import Pointer, check_writable
from ...tensor.tensor import Tensor, element
from ..text import atoms
from ..text.atoms import *  # noqa: F403 - what its `__all__` lists
from ..text.atoms import ExecTma

__all__ = [
    *atoms.__all__, "bulk_copy", "copy_ordered", "copy_universal", "cpasync_g2s", "dsmem_store", "ldmatrix",
    "mbarrier_arrive", "mbarrier_init", "mbarrier_wait", "mma_begin", "smem_to_tmem", "stmatrix",
    "tcgen05_block_scaled_mma", "tcgen05_mma", "tma_load_execute", "tma_store_execute", "tmem_load", "tmem_load_reduce",
    "tmem_store", "universal_mma", "warp_mma", "warp_mma_block_scaled", "warp_mma_f16bf16", "warp_mma_sparse",
    "warp_mma_tf32", "warpgroup_mma", "warpgroup_mma_sparse",
]  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """An instruction of the dialect. name: its function's. classes: the operations that it is for. where: which of
    these, if not all. says: what they are, for errors."""

    name: str
    classes: tuple[type, ...]
    says: str
    where: Callable[[Any], bool] = lambda op: True

    def has(self, op: Any) -> bool:
        """Return whether an operation is of this kind."""
        return isinstance(op, self.classes) and self.where(op)


_LOAD_MATRIX = tuple(c for c in atoms.operations(CopyOp) if c.__name__.startswith("LdMatrix"))
_STORE_MATRIX = tuple(c for c in atoms.operations(CopyOp) if c.__name__.startswith("StMatrix"))

KINDS: tuple[Kind, ...] = (
    Kind("universal_mma", (MmaUniversalOp,), "MmaUniversalOp"),
    Kind("warp_mma_sparse", (SparseWarpMma,), "a sparse operation of nvgpu.warp"),
    Kind("warp_mma_block_scaled", (BlockScaled,), "a block-scaled operation of nvgpu.warp"),
    Kind("warp_mma_f16bf16", (warp.MmaF16BF16Op,), "warp.MmaF16BF16Op"),
    Kind("warp_mma_tf32", (warp.MmaTF32Op,), "warp.MmaTF32Op"),
    Kind("warp_mma", (WarpMma,), "another dense operation of nvgpu.warp"),
    Kind("warpgroup_mma_sparse", (SparseWarpgroupMma,), "a sparse operation of nvgpu.warpgroup"),
    Kind("warpgroup_mma", (WarpgroupMma,), "a dense operation of nvgpu.warpgroup"),
    Kind("tcgen05_block_scaled_mma", (ScaledMma,), "a block-scaled operation of nvgpu.tcgen05"),
    Kind("tcgen05_mma", (UnitMma,), "an operation of nvgpu.tcgen05 without scale factors"),
    Kind("copy_universal", (CopyUniversalOp,), "CopyUniversalOp"),
    Kind("copy_ordered", (CopyG2ROp, CopyR2GOp, CopyS2ROp, CopyR2SOp), "CopyG2ROp, CopyR2GOp, CopyS2ROp or CopyR2SOp"),
    Kind("ldmatrix", _LOAD_MATRIX, "an LdMatrix operation of nvgpu.warp"),
    Kind("stmatrix", _STORE_MATRIX, "an StMatrix operation of nvgpu.warp"),
    Kind("cpasync_g2s", (cpasync.CopyG2SOp,), "cpasync.CopyG2SOp"),
    Kind("tma_load_execute", (TmaCopyOp,), "a TMA load", lambda op: not op.writes),
    Kind("tma_store_execute", (TmaCopyOp,), "a TMA store or reduction", lambda op: op.writes),
    Kind("bulk_copy", (BulkCopy,), "a bulk operation of nvgpu.cpasync"),
    Kind("dsmem_store", (cpasync.CopyDsmemStoreOp,), "cpasync.CopyDsmemStoreOp"),
    Kind("tmem_load_reduce", (TmemCopy,), "a load with reduction of nvgpu.tcgen05", lambda op: op.destinations == 2),
    Kind("tmem_load", (TmemCopy,), "a load of tensor memory", lambda op: op.loads and op.destinations == 1),
    Kind("tmem_store", (TmemCopy,), "a store to tensor memory", lambda op: not op.loads),
    Kind("smem_to_tmem", (SharedToTensor,), "a copy of nvgpu.tcgen05 from shared to tensor memory"),
)
"""All of them; of several that an operation is of, the first is meant."""
_BY_NAME = {kind.name: kind for kind in KINDS}


def instruction_of(op: Any) -> Kind | None:
    """Return the instruction that an operation of the API is; None for an operation of the user's own."""
    return next((kind for kind in KINDS if kind.has(op)), None)


def _checked(atom: Any, what: str) -> None:
    """Refuse an atom that is not of the kind whose instruction `what` is."""
    if instruction_of(atom.op) is not _BY_NAME[what]:
        found = instruction_of(atom.op)
        use = f"; use {found.name}" if found is not None else ""
        raise CuteError(f"{what}: the atom's operation {atom.op!r} is not {_BY_NAME[what].says}{use}")


# ------------------------------------------------------------------ matrix instructions


def _mma_atom(atom: Any, what: str) -> MmaAtom:
    atom = atom.atom if isinstance(atom, TiledMma) else atom
    if not isinstance(atom, MmaAtom):
        raise CuteError(f"{what}: atom {atom!r} is neither an MmaAtom nor a TiledMma")
    return atom


def _multiply(what: str, a: Any, b: Any, c: Any, atom: Any) -> Any:
    """Issue one instruction, in place."""
    atom = _mma_atom(atom, what)
    _checked(atom, what)
    for t, name in ((a, "a"), (b, "b"), (c, "c")):
        if not isinstance(t, Tensor) or layout.rank(t.layout) != 1:
            raise CuteError(f"{what}: {name} {t!r} must be the fragment of one instruction, a tensor of one mode (V)")
    atom.op.begin(c, c, atom.accumulate)
    atom.issue(c, a, b, True)
    return c


@known_as("cute_nvgpu")
@traced
def mma_begin(atom: MmaAtom | TiledMma, d: Tensor, c: Tensor) -> None:
    """Put `c`, which a product is added to, where its instructions add to it: in `d`.

    atom: of the instructions that come. d, c: accumulators of one shape and type, whole or of one instruction. Of an
    asynchronous instruction both must be the same. Executed by all threads of the atom. Raises CuteError for others.
    PTX mov, any target."""
    atom = _mma_atom(atom, "mma_begin")
    atom.op.begin(d, c, atom.accumulate)


@known_as("cute_nvgpu")
@traced
def universal_mma(a: Tensor, b: Tensor, c: Tensor, atom: MmaAtom | TiledMma) -> Tensor:
    """Multiply and add one element each by one thread: c = a * b + c, which it gives.

    a, b, c: registers of one element. atom: of `MmaUniversalOp`. Raises CuteError for another atom, and for fragments
    of more elements. PTX fma, mul and add, any target."""
    return _multiply("universal_mma", a, b, c, atom)  # type: ignore[no-any-return]


@known_as("cute_nvgpu")
@traced
def warp_mma_f16bf16(a: Tensor, b: Tensor, c: Tensor, atom: MmaAtom | TiledMma) -> Tensor:
    """Multiply f16 or bf16 fragments by a whole converged warp: c = a @ b.T + c in place, which it gives.

    a, b, c: the fragments of one instruction, in registers. atom: of `warp.MmaF16BF16Op`. Raises CuteError for another
    atom, and for fragments of other sizes. PTX mma.sync, sm_80."""
    return _multiply("warp_mma_f16bf16", a, b, c, atom)  # type: ignore[no-any-return]


@known_as("cute_nvgpu")
@traced
def warp_mma_tf32(a: Tensor, b: Tensor, c: Tensor, atom: MmaAtom | TiledMma) -> Tensor:
    """Multiply tf32 fragments by a whole converged warp: c = a @ b.T + c in place, which it gives.

    a, b, c: the fragments of one instruction, in registers. atom: of `warp.MmaTF32Op`. Raises CuteError for another
    atom, and for fragments of other sizes. PTX mma.sync, sm_80."""
    return _multiply("warp_mma_tf32", a, b, c, atom)  # type: ignore[no-any-return]


@known_as("cute_nvgpu")
@traced
def warp_mma(a: Tensor, b: Tensor, c: Tensor, atom: MmaAtom | TiledMma) -> Tensor:
    """Multiply fragments of other types by a whole converged warp: c = a @ b.T + c in place, which it gives.

    a, b, c: the fragments of one instruction, in registers. atom: of an operation of `nvgpu.warp` on integers, bits,
    f64, or floats of 8 bits and less. Raises CuteError for another atom, and for fragments of other sizes. PTX
    mma.sync, sm_80; of floats of 8 bits sm_89, of fewer sm_120f."""
    return _multiply("warp_mma", a, b, c, atom)  # type: ignore[no-any-return]


@known_as("cute_nvgpu")
@traced
def warp_mma_sparse(a: Tensor, b: Tensor, c: Tensor, atom: MmaAtom | TiledMma) -> Tensor:
    """Multiply a sparse A, half of which along K is stored, by a whole converged warp: c = a @ b.T + c in place, which
    it gives.

    a, b, c: the fragments of one instruction, in registers. atom: of a sparse operation of `nvgpu.warp`, on which
    Field.METADATA is set, of a block-scaled one Field.SFA and SFB too. Raises CuteError for another atom, and for
    fragments of other sizes. PTX mma.sp, sm_80; of floats of 8 bits sm_89, of fewer sm_120f."""
    return _multiply("warp_mma_sparse", a, b, c, atom)  # type: ignore[no-any-return]


@known_as("cute_nvgpu")
@traced
def warp_mma_block_scaled(a: Tensor, b: Tensor, c: Tensor, atom: MmaAtom | TiledMma) -> Tensor:
    """Multiply fragments with scale factors by a whole converged warp: c = a @ b.T + c in place, which it gives.

    a, b, c: the fragments of one instruction, in registers. atom: of a block-scaled operation of `nvgpu.warp`, on which
    Field.SFA and SFB are set. Raises CuteError for another atom, and for fragments of other sizes. PTX
    mma.sync.block_scale, sm_120f."""
    return _multiply("warp_mma_block_scaled", a, b, c, atom)  # type: ignore[no-any-return]


@known_as("cute_nvgpu")
@traced
def warpgroup_mma(a: Tensor, b: Tensor, c: Tensor, atom: MmaAtom | TiledMma) -> Tensor:
    """Multiply by a whole converged warpgroup, which goes on: c = a @ b.T + c in place, which it gives.

    a, b: the fragments of one instruction: descriptors of shared memory, of A also registers. c: registers. atom: of a
    dense operation of `nvgpu.warpgroup`. After `warpgroup.fence`, before `commit_group` and `wait_group`. Raises
    CuteError for another atom, and for fragments of other sizes. PTX wgmma.mma_async, sm_90a."""
    return _multiply("warpgroup_mma", a, b, c, atom)  # type: ignore[no-any-return]


@known_as("cute_nvgpu")
@traced
def warpgroup_mma_sparse(a: Tensor, b: Tensor, c: Tensor, atom: MmaAtom | TiledMma) -> Tensor:
    """Multiply a sparse A, half of which along K is stored, by a whole converged warpgroup, which goes on: c = a @ b.T
    + c in place, which it gives.

    a, b, c: as of `warpgroup_mma`. atom: of a sparse operation of `nvgpu.warpgroup`, on which Field.METADATA is set.
    Raises CuteError for another atom, and for fragments of other sizes. PTX wgmma.mma_async.sp, sm_90a."""
    return _multiply("warpgroup_mma_sparse", a, b, c, atom)  # type: ignore[no-any-return]


@known_as("cute_nvgpu")
@traced
def tcgen05_mma(a: Tensor, b: Tensor, c: Tensor, atom: MmaAtom | TiledMma) -> Tensor:
    """Multiply by the matrix unit, asynchronously: c = a @ b.T + c in tensor memory, which it gives.

    a, b: the fragments of one instruction: descriptors of shared memory, of A also tensor memory. c: tensor memory.
    atom: of an operation of `nvgpu.tcgen05` without scale factors, dense, or sparse with Field.METADATA set. A whole
    converged warp, of which one lane issues. Raises CuteError for another atom, and for other fragments. PTX
    tcgen05.mma, sm_100f."""
    return _multiply("tcgen05_mma", a, b, c, atom)  # type: ignore[no-any-return]


@known_as("cute_nvgpu")
@traced
def tcgen05_block_scaled_mma(a: Tensor, b: Tensor, c: Tensor, atom: MmaAtom | TiledMma) -> Tensor:
    """Multiply with scale factors by the matrix unit, asynchronously: c = a @ b.T + c in tensor memory, which it gives.

    a, b, c: as of `tcgen05_mma`. atom: of a block-scaled operation of `nvgpu.tcgen05`, on which Field.SFA and SFB are
    set, of a sparse one Field.METADATA too. A whole converged warp, of which one lane issues. Raises CuteError for
    another atom, and for other fragments. PTX tcgen05.mma.block_scale, sm_100f."""
    return _multiply("tcgen05_block_scaled_mma", a, b, c, atom)  # type: ignore[no-any-return]


# ------------------------------------------------------------------ copies


def _copy_atom(atom: Any, what: str) -> CopyAtom:
    if isinstance(atom, TiledCopy):
        atom.check_whole()
        atom = atom.atom
    if not isinstance(atom, CopyAtom):
        raise CuteError(f"{what}: atom {atom!r} is neither a CopyAtom nor a TiledCopy")
    _checked(atom, what)
    return atom


def _one(what: str, atom: Any, src: Any, dst: Any, pred: Any = None, **more: Any) -> None:
    """Issue one instruction of a copy."""
    atom = _copy_atom(atom, what)
    written = dst if isinstance(dst, tuple) else (dst,)
    for t, name in ((src, "src"), *((t, "dst") for t in written)):
        if not isinstance(t, Tensor):
            raise CuteError(f"{what}: {name} {t!r} is not a tensor")
    whole = isinstance(atom.op, CopyUniversalOp) and not atom.num_bits
    if not whole and isinstance(atom.op, SharedToTensor):
        count = int(layout.size(layout.shape(src.layout)[1:]))
    else:
        count = 1 if whole else len(instructions(atom, src, written[0], None))
    if count != 1:
        raise CuteError(
            f"{what}: src of shape {src.shape} and dst of shape {written[0].shape} make {count} instructions of the "
            "atom: slice them to one, or use cute.copy"
        )
    if pred is None:
        copy(atom, src, dst, **more)
        return
    for t in written:
        check_writable(t.iterator, what)
    names = {"tma_bar_ptr": None, "mcast_mask": None, "cache_policy": None, **more}
    atom.op.issue_all(atom, [(src, dst, pred)], *names.values())


@known_as("cute_nvgpu")
@traced
def copy_universal(atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor, pred: Any = None) -> None:
    """Copy by this thread what one instruction copies, between any memories and registers.

    atom: of `CopyUniversalOp`; without a number of bits whole tensors are copied, as wide as layouts and alignment
    prove. src, dst: of one mode. pred: where this bool is false nothing is copied. Raises CuteError for another atom,
    and for tensors of several instructions. PTX ld, st and mov, any target."""
    _one("copy_universal", atom, src, dst, pred)


@known_as("cute_nvgpu")
@traced
def copy_ordered(
    atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor, pred: Any = None, cache_policy: Any = None
) -> None:
    """Copy by this thread between registers and one memory, in an order and with hints that the atom says.

    atom: of `CopyG2ROp`, `CopyR2GOp`, `CopyS2ROp` or `CopyR2SOp`. src, dst: what one instruction copies. pred: where
    this bool is false nothing is copied. cache_policy: an L2 policy word. Raises CuteError for another atom, and for
    tensors of several instructions. PTX ld and st, any target; hints sm_80, clusters sm_90."""
    _one("copy_ordered", atom, src, dst, pred, cache_policy=cache_policy)


@known_as("cute_nvgpu")
@traced
def ldmatrix(atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor) -> None:
    """Load matrices of 8 or 16 rows from shared memory to the registers of a whole converged warp.

    atom: of an LdMatrix operation. src: the row whose address this lane gives. dst: registers of one instruction.
    Raises CuteError for another atom, and for tensors of several instructions. PTX ldmatrix, sm_75; of 16 rows sm_100f
    or sm_120f."""
    _one("ldmatrix", atom, src, dst)


@known_as("cute_nvgpu")
@traced
def stmatrix(atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor) -> None:
    """Store matrices of 8 or 16 rows from the registers of a whole converged warp to shared memory.

    atom: of an StMatrix operation. src: registers of one instruction. dst: the row whose address this lane gives.
    Raises CuteError for another atom, and for tensors of several instructions. PTX stmatrix, sm_90; of 16 rows sm_100f
    or sm_120f."""
    _one("stmatrix", atom, src, dst)


@known_as("cute_nvgpu")
@traced
def cpasync_g2s(
    atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor, pred: Any = None, cache_policy: Any = None
) -> None:
    """Copy 4, 8 or 16 bytes from global to shared memory by this thread, some time later.

    atom: of `cpasync.CopyG2SOp`. src, dst: what one instruction copies. pred: where this bool is false zeros are
    written, or with the operation's zfill False nothing. cache_policy: an L2 policy word. Raises CuteError for another
    atom, and for tensors of several instructions. PTX cp.async, sm_80."""
    _one("cpasync_g2s", atom, src, dst, pred, cache_policy=cache_policy)


@known_as("cute_nvgpu")
@traced
def bulk_copy(
    atom: CopyAtom | TiledCopy,
    src: Tensor,
    dst: Tensor,
    tma_bar: Pointer | None = None,
    mcast_mask: Any = None,
    cache_policy: Any = None,
) -> None:
    """Copy consecutive bytes by the TMA unit, some time later. One thread.

    atom: of a bulk operation of `nvgpu.cpasync`. src, dst: what one instruction copies. tma_bar: the mbarrier that a
    load completes its bytes on. mcast_mask: the blocks that receive it, or the bytes of each 16 that are stored.
    cache_policy: an L2 policy word. Raises CuteError for another atom, and for tensors of several instructions. PTX
    cp.async.bulk, sm_90."""
    _one("bulk_copy", atom, src, dst, tma_bar_ptr=tma_bar, mcast_mask=mcast_mask, cache_policy=cache_policy)


@known_as("cute_nvgpu")
@traced
def dsmem_store(atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor, tma_bar: Pointer, pred: Any = None) -> None:
    """Store registers of this thread to shared memory of a block of the cluster, some time later.

    atom: of `cpasync.CopyDsmemStoreOp`. src, dst: what one instruction stores. tma_bar: the mbarrier there that the
    bytes complete on. pred: where this bool is false nothing is stored. Raises CuteError for another atom, and for
    tensors of several instructions. PTX st.async, sm_90."""
    _one("dsmem_store", atom, src, dst, pred, tma_bar_ptr=tma_bar)


@known_as("cute_nvgpu")
@traced
def tmem_load(atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor) -> None:
    """Load from tensor memory to registers, some time later. A whole converged warp; then
    `arch.fence_view_async_tmem_load`.

    atom: of a load of `nvgpu.tcgen05`. src, dst: what one instruction loads. Raises CuteError for another atom, and for
    tensors of several instructions. PTX tcgen05.ld, sm_100f."""
    _one("tmem_load", atom, src, dst)


@known_as("cute_nvgpu")
@traced
def tmem_load_reduce(atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor, reduced: Tensor) -> None:
    """Load from tensor memory to registers, and the least or greatest element of each thread. A whole converged warp;
    then `arch.fence_view_async_tmem_load`.

    atom: of a load with reduction of `nvgpu.tcgen05`. src, dst: what one instruction loads. reduced: the one element.
    Raises CuteError for another atom, and for tensors of several instructions. PTX tcgen05.ld.red, sm_103f."""
    _one("tmem_load_reduce", atom, src, (dst, reduced))


@known_as("cute_nvgpu")
@traced
def tmem_store(atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor) -> None:
    """Store registers to tensor memory, some time later. A whole converged warp; then
    `arch.fence_view_async_tmem_store`.

    atom: of a store of `nvgpu.tcgen05`. src, dst: what one instruction stores. Raises CuteError for another atom, and
    for tensors of several instructions. PTX tcgen05.st, sm_100f."""
    _one("tmem_store", atom, src, dst)


@known_as("cute_nvgpu")
@traced
def smem_to_tmem(atom: CopyAtom | TiledCopy, src: Tensor, dst: Tensor) -> None:
    """Copy from shared to tensor memory, some time later. A whole converged warp, of which one lane issues.

    atom: of a copy of `nvgpu.tcgen05` from shared memory. src: descriptors of what one instruction copies. dst: tensor
    memory. Raises CuteError for another atom, and for tensors of several instructions. PTX tcgen05.cp, sm_100f."""
    _one("smem_to_tmem", atom, src, dst)


# ------------------------------------------------------------------ TMA


def _execute(what: str, executable: Any, src: Any, dst: Any, coordinates: tuple[Any, ...], at_dst: bool) -> None:
    if not isinstance(executable, ExecTma):
        maker = "make_exec_tma_store" if at_dst else "make_exec_tma_load"
        raise CuteError(f"{what}: exec {executable!r} is not what {maker} makes")
    atom = _copy_atom(executable.atom, what)
    for t, name in ((src, "src"), (dst, "dst")):
        if not isinstance(t, Tensor):
            raise CuteError(f"{what}: {name} {t!r} is not a tensor")
    given = tuple(x for x in coordinates if x is not None)
    if given != coordinates[: len(given)]:
        raise CuteError(f"{what}: coordinates {coordinates!r} must be given from the first on")
    there, name = (dst, "dst") if at_dst else (src, "src")
    if given:
        if layout.rank(there.layout) != len(given):
            raise CuteError(
                f"{what}: {name} of shape {there.shape} needs {layout.rank(there.layout)} coordinates, not {len(given)}"
            )
        there = Tensor(element(there, given if len(given) > 1 else given[0]), there.layout)
    elif len(instructions(atom, src, dst, None)) != 1:
        raise CuteError(f"{what}: src of shape {src.shape} is not one box; slice it, or give the coordinates of one")
    here = src if at_dst else dst
    values = int(layout.size(atom.layout_dst_tv, (1,)))
    if layout.size(here.layout) * here.element_type.width != values * atom.value_type.width:
        raise CuteError(f"{what}: {here!r} is not one box of {values} elements of {atom.value_type}; slice it")
    part = (src, there, None) if at_dst else (there, dst, None)
    atom.op.issue_all(atom, [part], executable.bar, executable.mask, executable.policy)


@known_as("cute_nvgpu")
@traced
def tma_load_execute(
    exec: ExecTma, src: Tensor, dst: Tensor, x: Any = None, y: Any = None, z: Any = None, u: Any = None, v: Any = None
) -> None:
    """Load a box by TMA. A whole converged warp, of which one lane issues.

    exec: the atom with its barrier, as `make_exec_tma_load` makes it. src: the tensor of coordinates that
    `cpasync.make_tiled_tma_atom` gave, or a part of it: that box itself, or with coordinates all from which they are
    counted. dst: the box in shared memory. x, y, z, u, v: where along each mode of `src` the box begins. Raises
    CuteError for another atom, for more or fewer coordinates than modes, and for tensors of several boxes. PTX
    cp.async.bulk.tensor, sm_90."""
    _execute("tma_load_execute", exec, src, dst, (x, y, z, u, v), False)


@known_as("cute_nvgpu")
@traced
def tma_store_execute(
    exec: ExecTma, src: Tensor, dst: Tensor, x: Any = None, y: Any = None, z: Any = None, u: Any = None, v: Any = None
) -> None:
    """Store a box by TMA, or combine it with what is there. A whole converged warp, of which one lane issues.

    exec: the atom, as `make_exec_tma_store` makes it. src: the box in shared memory. dst: the tensor of coordinates, as
    `tma_load_execute` takes it. x, y, z, u, v: where along each mode of `dst` the box begins. Raises CuteError for
    another atom, for more or fewer coordinates than modes, and for tensors of several boxes. PTX cp.async.bulk.tensor
    or cp.reduce.async.bulk.tensor, sm_90."""
    _execute("tma_store_execute", exec, src, dst, (x, y, z, u, v), True)
