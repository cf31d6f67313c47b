# SPDX-License-Identifier: Apache-2.0
"""The operations that the CuTe DSL prints beside the published ones, and those that it writes in another way. Their
definition is not published; each is one line here, as it is printed.

A line has the operation's name, its results, its operands and how it is written. Results and operands are kinds of
types with `|` between them; `?` may be left out, `*` may be any number; a result has the name before its kind that it
is printed by. In what is written `%` stands for the operands, `%2` for the third, `%1*` for those from the second on;
`T` for their types in the same way, `R` for the results' and `F` for `(T) -> R`; `D` for the attributes in braces;
`{name:form}` for an attribute; `[[…]]` may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass

SETS = {
    "iter": ("ptr", "arith_tuple_iter"),
    "tensor": ("memref", "coord_tensor"),
    "view": ("memref", "coord_tensor", "smem_desc_view"),
    "layouts": ("layout", "composed_layout"),
    "shaped": ("layout", "composed_layout", "memref", "coord_tensor"),
    "tuple": ("int_tuple", "shape", "stride", "coord"),
    "arith": ("int_tuple", "shape"),
    "tiler": ("layout", "tile", "shape"),
    "int": ("i8", "i16", "i32", "i64"),
    "copier": ("atom", "tiled_copy"),
    "cute.int": ("cute.i32", "cute.i64"),
    "number": ("i1", "i4", "i8", "i16", "i32", "i64", "float", "vector"),
}
"""Names for several kinds."""


@dataclass(frozen=True)
class Part:
    """An operand or a result. hint: the name that it is printed by."""

    kinds: tuple[str, ...]
    optional: bool = False
    many: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Row:
    """An operation as it is printed."""

    name: str
    results: tuple[Part, ...]
    operands: tuple[Part, ...]
    spelling: str


def _parts(text: str) -> tuple[Part, ...]:
    return tuple(_part(p.strip()) for p in text.split(",") if p.strip())


def _part(text: str) -> Part:
    hint, colon, rest = text.rpartition(":")
    kinds = rest.strip().rstrip("?*")
    found = tuple(k for name in kinds.split("|") for k in SETS.get(name, (name,)))
    return Part(found, rest.endswith("?"), rest.endswith("*"), hint if colon else "")


_WRITTEN = """
cute.add_offset ; ptr:iter ; iter, int_tuple ; (%)D : F
cute.assume ; iv:cute.int|int ; int ; (%)D : F
cute.ceil_div ; shp:arith ; arith, arith|tile ; (%)D : T
cute.composed_get_inner ; swizzle|layout ; composed_layout ; (%)D : F
cute.composed_get_offset ; int_tuple ; composed_layout ; (%)D : F
cute.composed_get_outer ; layout ; composed_layout ; (%)D : F
cute.composition ; shaped ; shaped, tiler ; (%)D : F
cute.copy ; ; copier, view, view, memref? ; (%)D : (T)
cute.cosize ; cosz:int_tuple ; shaped ; (%)[[ <{mode = {mode:path}}>]]D : F
cute.crd2idx ; idx:int_tuple ; coord, layouts|shape ; (%)D : F
cute.deref_arith_tuple_iter ; tup:int_tuple ; arith_tuple_iter ; (%)D : T
cute.dice ; dice:shaped|tuple ; shaped|tuple ; (%, {coord:text})D : F
cute.elem_less ; i1 ; int_tuple|shape|coord, int_tuple|shape|coord ; (%)D : T
cute.flat_divide ; div:shaped ; shaped, tiler ; (%)D : T
cute.filter ; filtered:layout ; layout ; (%)D : T
cute.filter_zeros ; filtered:shaped ; shaped ; (%)D : T
cute.gemm ; ; atom|tiled_mma, memref, view, view, view, view?, memref? ; (%)D : (T)
cute.get ; layouts|tuple|tile ; layouts|tuple|tile ; (%)[[ <{mode = {mode:path}}>]]D : T -> R
cute.get_flat_coord ; coord ; int, layouts ; (%)D : F
cute.get_hier_coord ; coord ; int, layouts ; (%)D : F
cute.get_iter ; iter:iter|smem_desc ; view ; (%)D : T
cute.get_layout ; lay:layouts ; view ; (%)D : T
cute.get_shape ; shape ; shaped|tile ; (%)D : F
cute.get_stride ; stride ; shaped ; (%)D : F
cute.group_modes ; grouped:shaped|smem_desc_view ; shaped|smem_desc_view ; (%) <{begin:int}, {end:int}>D : F
cute.inttoptr ; ptr ; int|cute.int ; (%)D : T to R
cute.kernel_smem_size ; i64 ; ; {kernel:symbol}D : R
cute.local_tile ; tiled_view:tensor ; tensor, tile, coord ; (%[[, {proj:text}]])D : F
cute.logical_divide ; div:shaped ; shaped, tiler ; (%)D : T
cute.make_arith_tuple_iter ; int_tup_iter:arith_tuple_iter ; int_tuple ; (%)D : F
cute.make_atom ; atom:atom ; any* ; (%)D : F
cute.make_composed_layout ; lay:composed_layout ; swizzle|layout, int_tuple, layout ; (%)D : R
cute.make_identity_layout ; layout ; shape ; (%)D : R
cute.make_identity_tensor ; coord_tensor ; shape ; (%)D : R
cute.make_coord ; coord:coord ; int|cute.int* ; (%)D : F
cute.make_int_tuple ; int_tuple:int_tuple ; int|cute.int* ; (%)D : F
cute.make_shape ; shape:shape ; int|cute.int* ; (%)D : F
cute.make_stride ; stride:stride ; int|cute.int* ; (%)D : F
cute.make_layout ; lay:layout ; shape, stride? ; (%)D : R
cute.make_layout_like ; layout ; layouts ; (%)D : T to R
cute.make_tiled_copy ; tiled_copy ; atom ; (%)D : R
cute.make_tiled_mma ; tiled_mma ; atom ; (%)D : R
cute.make_view ; view:tensor ; iter, layouts ; (%)D : R
cute.memref.alloca ; {space}:memref ; layouts? ; (%)D : R
cute.memref.load ; number ; memref, coord ; (%)D : F
cute.memref.load_vec ; vector ; memref ; (%)D : F
cute.memref.store ; ; memref, coord, number ; (%)D : F
cute.memref.store_vec ; ; vector, memref ; (%)D : F
cute.mma.make_fragment ; frg_{part}:memref|smem_desc_view ; atom|tiled_mma, tensor|shape ; {part:word} (%)D : F
cute.print ; ; any* ; ({format:text}[[, %]])D[[ : T]]
cute.recast_iter ; iter:ptr ; ptr ; (%)D : T to R
cute.recast_layout ; layouts ; layouts ; <{new_type_bits:int}, {old_type_bits:int}> (%)D : T to R
cute.select ; layouts|tuple|tile ; layouts|tuple|tile ; <{mode:path}> (%)D : F
cute.shape_div ; shape ; shape, shape ; (%)D : T
cute.size ; sz:int_tuple ; shaped|arith|smem_desc_view ; (%)[[ <{mode = {mode:path}}>]]D : F
cute.slice ; slice:shaped|tuple|smem_desc_view ; shaped|tuple|smem_desc_view, coord ; (%)D : T
cute.tiled.copy.partition_S ; src_partitioned:tensor ; tiled_copy, tensor, coord ; (%)D : F
cute.tiled.copy.partition_D ; dst_partitioned:tensor ; tiled_copy, tensor, coord ; (%)D : F
cute.tiled.copy.retile ; retiled:tensor ; tiled_copy, tensor ; (%)D : F
cute.tiled.mma.partition ; ptn_{part}:tensor ; tiled_mma, tensor, coord ; {part:word} (%)D : F
cute.tiled.mma.partition_shape ; shape ; tiled_mma, shape ; {part:word} (%)D : F
cute.tiled_divide ; div:shaped ; shaped, tiler ; (%)D : T
cute.to_int_tuple ; itup:int_tuple ; tuple ; (%)D : T to R
cute.tuple.product ; res:arith ; arith ; (%)D : F
cute.tuple.product_each ; res:arith ; arith ; (%)D : F
cute.tuple_add ; add:arith ; arith, arith ; (%)D : F
cute.tuple_mod ; mod:arith ; arith, arith ; (%)D : F
cute.tuple_mul ; mul:arith ; arith, arith ; (%)D : F
cute.tuple_sub ; sub:arith ; arith, arith ; (%)D : F
cute.zipped_divide ; div:shaped ; shaped, tiler ; (%)D : T
cute_nvgpu.arch.make_warp_uniform ; i32 ; i32 ; (%)D : R
cute_nvgpu.arch.sm100.alloc_tmem ; ; i32, ptr ; (%) [ {group:word}]D : T
cute_nvgpu.arch.sm100.dealloc_tmem ; ; ptr, i32 ; (%) [ {group:word}]D : T
cute_nvgpu.arch.sm100.relinquish_tmem_alloc_permit ; ; ;  [ {group:word}]D
cute_nvgpu.arch.sm100.retrieve_tmem_ptr ; tmem_ptr:ptr ; ptr ; (%)D : T -> R
cute_nvgpu.atom.get_copy_s2t_smem_desc_view ; smem_desc_view ; tiled_copy, memref ; (%)D : F
cute_nvgpu.atom.make_exec_tma ; atom ; atom ; (%)D : F
cute_nvgpu.atom.make_non_exec_tiled_tma_load ; non_exec_atom:atom, tma_tensor:coord_tensor ; memref, layouts, layout ; (%) <{kind = <{kind:word}> num_multicast = {num_multicast:int}[[ tma_format = {tma_format:attribute}]]}>D : F
cute_nvgpu.atom.make_non_exec_tiled_tma_store ; non_exec_atom:atom, tma_tensor:coord_tensor ; memref, layouts, layout ; (%)D : F
cute_nvgpu.atom.make_s2t_copy ; tiled_copy ; atom, memref ; (%)D : F
cute_nvgpu.atom.make_tmem_copy ; tiled_copy ; atom, memref ; (%)D : F
cute_nvgpu.atom.set_value ; atom|tiled_mma|tiled_copy ; atom|tiled_mma|tiled_copy, any ; <{field:word}>(%)D : (T)
cute_nvgpu.atom.tma_partition ; res_smem_tensor:memref, res_target_tensors:coord_tensor ; atom, coord, layout, memref, coord_tensor ; (%)D : F
cute_nvgpu.prefetch_tma_desc ; ; atom ; (%)D : F
cuda.cast ; any ; any ; %D : T -> R
cuda.launch_cfg.cluster_dim ; ; launch_cfg, i32, i32, i32 ; [%0] (%1*)D : T
cuda.launch_cfg.cooperative ; ; launch_cfg, i32 ; [%0] %1D : T
cuda.launch_cfg.create ; launch_cfg ; i32, i32, i32, i64, i32, i32, i32, stream ; <max_attrs = {max_attrs:int} : i32> (blockDim = (%0, %1, %2), dynamicSmemBytes = %3, gridDim = (%4, %5, %6), stream = %7)D : T -> R
cuda.launch_cfg.programmatic_stream_serialization_allowed ; ; launch_cfg, i32 ; [%0] %1D : T
cuda.launch_ex ; result ; launch_cfg, any* ; {callee:symbol}<%0> (%1*)D : T0, (T1*) -> R
cuda.return_if_error ; ; i32 ; %D : T
nvvm.barrier ; ; i32?, i32? ; [[ id = %0]][[ number_of_threads = %1]]D
nvvm.cluster.arrive ; ; ; D
nvvm.cluster.wait ; ; ; D
nvvm.cp.async.bulk.commit.group ; ; ; D
nvvm.cp.async.bulk.wait_group ; ; ; {group:int}D
nvvm.cp.async.commit.group ; ; ; D
nvvm.cp.async.wait.group ; ; ; {n:int}D
nvvm.elect.sync ; i1 ; ; D -> R
nvvm.fence.mbarrier.init ; ; ; D
nvvm.fence.proxy ; ; ; D
nvvm.mbarrier.arrive ; i64? ; llvm.ptr, i32? ; %D : T0[[ -> R]]
nvvm.mbarrier.arrive.expect_tx ; i64? ; llvm.ptr, i32 ; %D : T[[ -> R]]
nvvm.mbarrier.expect_tx ; ; llvm.ptr, i32 ; %D : T
nvvm.mbarrier.init ; ; llvm.ptr, i32 ; %D : T
nvvm.mbarrier.try_wait.parity ; ; llvm.ptr, i32, i32 ; %D : T
nvvm.mbarrier.wait.parity ; i1 ; llvm.ptr, i32 ; %D : T -> R
nvvm.tcgen05.commit ; ; llvm.ptr, i16? ; %0[[, multicast_mask = %1]]D : T
nvvm.wgmma.commit.group.sync.aligned ; ; ; D
nvvm.wgmma.fence.aligned ; ; ; D
nvvm.wgmma.wait.group.sync.aligned ; ; ; {group:int}D
cute.fast_divmod.compute ; quotient:int, remainder:int ; int, fast_divmod_divisor ; (%)D : T -> R*
cute.fast_divmod.create_divisor ; fast_divmod_divisor ; int ; (%)D : T -> R
cute.prefetch ; ; copier, view ; (%)D : (T)
cute.print_view ; ; tensor ; (%)D : T
cute.ptrtoint ; int ; ptr ; (%)D : T to R
cute.tuple_div ; div:arith ; arith, arith ; (%)D : F
cute_nvgpu.arch.get_dyn_smem ; smem_ptr:ptr ; ; (%)D : R
cute_nvgpu.arch.get_dyn_smem_size ; smem_size:i32 ; ; (%)D : R
cute_nvgpu.atom.get_value ; number ; atom|tiled_mma|tiled_copy ; <{field:word}>(%)D : F
cute_nvgpu.atom.make_non_exec_tiled_tma_reduce ; non_exec_atom:atom, tma_tensor:coord_tensor ; memref, layouts, layout ; (%) <{kind = <{kind:word}>}>D : F
cute_nvgpu.copy_tma_desc ; ; atom, ptr ; (%)D : F
cute_nvgpu.update_tma_desc ; ; atom, memref, ptr ; (%)D : F
arith.extsi ; number ; number ; %D : T to R
arith.extui ; number ; number ; %D : T to R
arith.fptosi ; number ; number ; %D : T to R
arith.fptoui ; number ; number ; %D : T to R
arith.sitofp ; number ; number ; %D : T to R
arith.uitofp ; number ; number ; %D : T to R
arith.trunci ; number ; number ; %D : T to R
llvm.mlir.zero ; any ; ; D : R
llvm.intr.ctpop ; int ; int ; (%)D : F
nvgpu.cvt_fptrunc ; vector ; vector ; %D : T to R
nvvm.add.packed.f32x2 ; vector ; vector, vector ; %D : T -> R
nvvm.bar.warp.sync ; ; i32 ; %D : T
nvvm.cluster.arrive.relaxed ; ; ; D
nvvm.clusterlaunchcontrol.query_cancel.get_first_ctaid.x ; i32 ; any ; %D : R
nvvm.clusterlaunchcontrol.query_cancel.get_first_ctaid.y ; i32 ; any ; %D : R
nvvm.clusterlaunchcontrol.query_cancel.get_first_ctaid.z ; i32 ; any ; %D : R
nvvm.clusterlaunchcontrol.query_cancel.is_canceled ; i1 ; any ; %D : R
nvvm.clusterlaunchcontrol.try_cancel.multicast ; ; llvm.ptr, llvm.ptr ; %D
nvvm.cp.async.mbarrier.arrive.shared ; ; llvm.ptr ; %D : T
nvvm.fma.packed.f32x2 ; vector ; vector, vector, vector ; %D : T -> R
nvvm.fmax ; float ; float, float ; %D
nvvm.barrier.arrive ; ; i32?, i32 ; [[ id = %0]] number_of_threads = %1D
nvvm.cp.async.mbarrier.arrive ; ; llvm.ptr ; %D : T
nvvm.fmin ; float ; float, float ; %D
nvvm.griddepcontrol ; ; ; {kind:word}D
nvvm.mapa ; llvm.ptr ; llvm.ptr, i32 ; %D : T0 -> R
nvvm.redux.sync ; i32 ; i32, i32 ; {kind:word} %D : T0 -> R
nvvm.vote.sync ; number ; i32, i1 ; {kind:word} %D -> R
nvvm.mapa.shared.cluster ; llvm.ptr ; llvm.ptr, i32 ; %D : T -> R
nvvm.mbarrier.init.shared ; ; llvm.ptr, i32 ; %D : T
nvvm.mbarrier.try_wait.parity.shared ; ; llvm.ptr, i32, i32 ; %D : T
nvvm.mbarrier.txn ; ; llvm.ptr, i32 ; %D : T
nvvm.mul.packed.f32x2 ; vector ; vector, vector ; %D : T -> R
nvvm.rcp.approx.ftz.f ; float ; float ; %D : R
nvvm.setmaxregister ; ; ;   {action:word} {regCount:int}D
nvvm.shfl.sync ; number ; i32, number, i32, i32 ;   {kind:word} %D : T1 -> R
nvvm.tcgen05.commit.arrive ; ; llvm.ptr, i16? ; %0[[, multicast_mask = %1]]D : T
nvvm.tcgen05.wait ; ; ;  <{kind:word}>D
nvvm.vote.ballot.sync ; i32 ; i32, i1 ; %D : R
vector.extract_strided_slice ; vector ; vector ; %D : T to R
vector.extractelement ; number ; vector, int ; %0[%1 : T1]D : T0
vector.insert_strided_slice ; vector ; vector, vector ; %D : T0 into R
vector.splat ; vector ; number ; %D : R
vector.broadcast ; vector ; number ; %D : T to R
vector.from_elements ; vector ; number* ; %D : R
"""  # noqa: E501

REGISTERS = [
    *(f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster.ctaid",
                                    "cluster.nctaid") for axis in "xyz"),
    "cluster.ctarank", "cluster.nctarank", "laneid", "warpid", "smid",
]  # fmt: skip


def _row(line: str) -> Row:
    name, results, operands, spelling = line.split(" ;", 3)
    return Row(name.strip(), _parts(results), _parts(operands), spelling[1:])


ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        *map(_row, _WRITTEN.strip().splitlines()),
        *(_row(f"nvvm.read.ptx.sreg.{name} ; i32 ; ; D : R") for name in REGISTERS),
    )
}
"""By name, with the dialect's."""

WORDS = {"part": ("A", "B", "C"), "group": ("cta_1", "cta_2")}
"""The words that an attribute may be."""

HINTS = {
    "append_to_rank": "append", "coalesce": "coalesce", "get_leaves": "e{i}", "left_inverse": "linv",
    "make_coord": "coord", "make_int_tuple": "int_tuple", "make_ordered_layout": "lay", "make_shape": "shape",
    "make_stride": "stride", "make_tile": "tile", "prepend_to_rank": "prepend", "raked_product": "prod",
    "right_inverse": "rinv", "tile_to_shape": "tile_to_shape",
}  # fmt: skip
"""The names that results of operations are printed by which are written as they are published, without the
dialect's."""

__all__ = ["HINTS", "REGISTERS", "ROWS", "WORDS", "Part", "Row"]
