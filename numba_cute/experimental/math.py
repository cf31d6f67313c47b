# SPDX-License-Identifier: Apache-2.0
"""Products of tiles by any matrix instruction.

Names and parameters are those that NVIDIA documents of `cute.experimental`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import layout
from ..atoms.gemm import gemm
from ..atoms.mma_atom import MmaAtom, TiledMma
from ..seam import CuteError, traced
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.tensor import Tensor

__all__ = ["dot", "dot_block_scaled"]


def _fragment(atom: Any, operand: str, t: Any, what: str) -> Any:
    """An operand as the instruction takes it: what lies in shared memory of tcgen05 and wgmma as descriptors."""
    if not isinstance(t, Tensor):
        raise CuteError(f"{what}: {operand.lower()} {t!r} is not a tensor")
    p = t.iterator
    if not isinstance(p, Pointer) or p.space is not AddressSpace.smem:
        return t
    if p.swizzle is not None:  # that is of absolute addresses, and memory that has one begins at its period
        t = Tensor(replace(p, alignment=max(p.alignment, p.swizzle.period)), t.layout)
    return atom.op.fragment(operand, t)


def _factors(t: Any, operand: Tensor, name: str, what: str) -> Tensor:
    """An operand's factors, of as many modes: those that they lack have one element."""
    if not isinstance(t, Tensor):
        raise CuteError(f"{what}: {name} {t!r} is not a tensor")
    rank = max(layout.rank(t.layout), layout.rank(operand.layout))
    return t._relaid(lambda lay: layout.append_ones(lay, rank))


def _atom(mma_atom: Any, what: str) -> Any:
    if not isinstance(mma_atom, (MmaAtom, TiledMma)):
        raise CuteError(f"{what}: mma_atom {mma_atom!r} is neither an MmaAtom nor a TiledMma")
    return mma_atom


@traced
def dot(mma_atom: MmaAtom | TiledMma, a: Tensor, b: Tensor, c: Tensor) -> None:
    """Multiply tiles and add to `c`: c = a @ b.T + c, or a @ b.T alone where Field.ACCUMULATE of `mma_atom` is False.

    mma_atom: of any matrix instruction; its fields are set by `mma_atom = mma_atom.set(field, value)`. a, b: (V, M, K)
    and (V, N, K) as the instruction takes them: of mma.sync registers, of wgmma and tcgen05.mma shared memory as it was
    allocated, of wgmma A in registers and of tcgen05.mma A in tensor memory too. c: the accumulators (V, M, N), in
    registers or tensor memory. Executed by the threads of the instruction; it does not fence, commit or wait. Raises
    CuteError as `cute.gemm` does. PTX and least target: the instruction's.

    >>> from numba_cute import experimental as ext
    >>> tiled = cute.make_tiled_mma(nvgpu.MmaUniversalOp(cute.Float32), (1, 1, 1))
    >>> def kernel():
    ...     a, b, c = [cute.make_rmem_tensor(s, cute.Float32) for s in ((1, 2, 4), (1, 3, 4), (1, 2, 3))]
    ...     a.fill(2)
    ...     b.fill(3)
    ...     c.fill(1)
    ...     ext.dot(tiled, a, b, c)
    ...     print(c[0, 0, 0])
    >>> cute.simulate(kernel)[1, 1]()
    25.0
    """
    atom = _atom(mma_atom, "dot")
    gemm(atom, c, _fragment(atom, "A", a, "dot"), _fragment(atom, "B", b, "dot"), c)


@traced
def dot_block_scaled(mma_atom: MmaAtom | TiledMma, a: Tensor, sfa: Tensor, b: Tensor, sfb: Tensor, c: Tensor) -> None:
    """Multiply tiles whose blocks of K have scale factors, and add to `c`: c = (a * sfa) @ (b * sfb).T + c.

    mma_atom: of a block-scaled instruction. a, b, c: as of `dot`. sfa, sfb: the factors in tensor memory, (V, M, K) and
    (V, N, K); modes of one element at the end may be left out. Executed by the warp that issues; it does not commit or
    wait. Raises CuteError as `cute.gemm` does. examples/experimental_blockscaled_gemm.py uses it. PTX
    tcgen05.mma.block_scale, sm_100a.

    >>> from numba_cute import experimental as ext
    >>> from numba_cute.nvgpu import tcgen05
    >>> from numba_cute.utils import blockscaled_layout as scaled
    >>> f8, sf, tiler = cute.Float8E4M3FN, cute.Float8E8M0FNU, (128, 32, 128)
    >>> k, one, umma = nvgpu.OperandMajorMode.K, tcgen05.CtaGroup.ONE, ext.OperationTypeEnum.SM100_MMA_1SM_SS
    >>> mma = utils.sm100.make_blockscaled_trivial_tiled_mma(f8, k, k, sf, 32, one, tiler[:2])
    >>> a_of, b_of = (f(mma, tiler, f8, 1) for f in (utils.sm100.make_smem_layout_a, utils.sm100.make_smem_layout_b))
    >>> sfa_of = scaled.make_smem_layout_sfa(mma, tiler, 32, 1)
    >>> sfb_of = scaled.make_smem_layout_sfb(mma, tiler, 32, 1)
    >>> tsfa_of = scaled.make_tmem_layout_sfa(mma, tiler, 32, cute.slice_(sfa_of, (None, None, None, 0)))
    >>> tsfb_of = scaled.make_tmem_layout_sfb(mma, tiler, 32, cute.slice_(sfb_of, (None, None, None, 0)))
    >>> acc_of = ext.make_tmem_layout_acc(mma, tiler, 1)
    >>> put = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(one), sf)
    >>> get = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cute.Float32)
    >>> @ext.kernel
    ... def kernel(c):
    ...     tid, warp = arch.thread_idx()[0], arch.make_warp_uniform(arch.warp_idx())
    ...     sA = ext.allocate(f8, cute.AddressSpace.smem, a_of, alignment=1024)
    ...     sB = ext.allocate(f8, cute.AddressSpace.smem, b_of, alignment=1024)
    ...     sSFA = ext.allocate(sf, cute.AddressSpace.smem, sfa_of, alignment=128)
    ...     sSFB = ext.allocate(sf, cute.AddressSpace.smem, sfb_of, alignment=128)
    ...     acc = ext.allocate(cute.Float32, cute.AddressSpace.tmem, acc_of)
    ...     tSFA = ext.allocate(sf, cute.AddressSpace.tmem, tsfa_of)
    ...     tSFB = ext.allocate(sf, cute.AddressSpace.tmem, tsfb_of)
    ...     done = ext.UMMAtoAsyncPipeline.create(num_stages=1, mma_operation_type=umma, consumer_arv_count=128)
    ...     done.producer_acquire()
    ...     for s, byte in ((sA, 0x38), (sB, 0x38), (sSFA, 0x80), (sSFB, 0x7F)):  # 1.0, 1.0, 2.0 and 1.0
    ...         words = cute.make_tensor(cute.recast_ptr(s.iterator, dtype=cute.Uint32), cute.cosize(s.layout) // 4)
    ...         for i in range(tid, cute.size(words), 128):
    ...             words[i] = byte * 0x01010101
    ...     arch.fence_proxy("async.shared", space="cta")
    ...     arch.sync_threads()
    ...     if warp == 0:
    ...         for s, t in ((sSFA, tSFA), (sSFB, tSFB)):
    ...             to_tmem = tcgen05.make_s2t_copy(put, cute.filter_zeros(t)).get_slice(0)
    ...             ext.partition_and_copy(to_tmem, cute.filter_zeros(s)[None, None, None, 0], cute.filter_zeros(t))
    ...         for i in cute.range_constexpr(4):
    ...             atom = cute.make_mma_atom(mma.op).set(tcgen05.Field.ACCUMULATE, i > 0)
    ...             a, b = sA[None, None, i, 0], sB[None, None, i, 0]
    ...             ext.dot_block_scaled(atom, a, tSFA[None, None, i], b, tSFB[None, None, i], acc[None, None, None, 0])
    ...         done.producer_commit()
    ...     done.consumer_wait()
    ...     rows, r = acc[(None, None), 0, 0, 0], ext.allocate(cute.Float32, cute.AddressSpace.rmem, 32)
    ...     ext.partition_and_copy(tcgen05.make_tmem_copy(get, rows).get_slice(tid), rows, r)
    ...     ext.simt_auto_vec_copy(r, c[tid, None])
    >>> c = np.zeros((128, 32), np.float32)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 128](cute.runtime.from_dlpack(c))
    >>> c.min(), c.max()  # 128 products of 2.0
    (np.float32(256.0), np.float32(256.0))
    """
    atom = _atom(mma_atom, "dot_block_scaled")
    what = "dot_block_scaled"
    x, y = _fragment(atom, "A", a, what), _fragment(atom, "B", b, what)
    gemm(atom, c, [x, _factors(sfa, x, "sfa", what)], [y, _factors(sfb, y, "sfb", what)], c)  # pairs, as the row has it
