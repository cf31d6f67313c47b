%s = numba_cute.static : !cute.swizzle<"S<3,4,3>">
%s_1 = numba_cute.static : !cute.layout<"(8,64):(64,1)">
%r = numba_cute.ComposedLayout %s, 0, %s_1 : !cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">

%s = numba_cute.static : !numba_cute.nvgpu.CopyUniversalOp
%r = numba_cute.CopyAtom %s, !f32, 128, _, _, _ : !numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f32, num_bits = 128>

%q = numba_cute.E 0

%r = numba_cute.FastDivmodDivisor 7, 2454267027, 34 : !numba_cute.FastDivmodDivisor<divisor = 7, multiplier = 2454267027, shift = 34>

%r = numba_cute.FastDivmodDivisorV2 7, 2454267027, 34 : !numba_cute.FastDivmodDivisor<divisor = 7, multiplier = 2454267027, shift = 34>

%r = numba_cute.Layout (8, 32), (32, 1) : !cute.layout<"(8,32):(32,1)">

%s = numba_cute.static : !numba_cute.nvgpu.warp.MmaF16BF16Op<ab_dtype = !f16, acc_dtype = !f32, shape_mnk = (16,8,16)>
%r = numba_cute.MmaAtom %s, true, false, false, _, _, _, _, _, _ : !numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[16,8,16],SM80>

%r = numba_cute.ScaledBasis 1, (0,) : !cute.stride<"1@0">

%s = numba_cute.static : !cute.layout<"(768):(1@0)">
%r = numba_cute.Tensor (0,), %s : !cute.coord_tensor<"(0)", "(768):(1@0)">

%s = numba_cute.static : !numba_cute.nvgpu.tiled_copy<!numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f16, num_bits = 32>, ((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0))), [32:1,16:1]>
%r = numba_cute.ThrCopy %s, 3 : !numba_cute.nvgpu.thr_copy<!numba_cute.nvgpu.tiled_copy<!numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f16, num_bits = 32>, ((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0))), [32:1,16:1]>, 3>

%s = numba_cute.static : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[16,8,16],SM80>, (2,2,1):(1,2,0)>
%r = numba_cute.ThrMma %s, 5 : !numba_cute.nvgpu.thr_mma<!numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[16,8,16],SM80>, (2,2,1):(1,2,0)>, 5>

%s = numba_cute.static : !numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f32, num_bits = 128>
%s_1 = numba_cute.static : !cute.layout<"(256,4):(4,1)">
%s_2 = numba_cute.static : !cute.layout<"64:1">
%s_3 = numba_cute.static : !cute.layout<"16:1">
%r = numba_cute.TiledCopy %s, %s_1, (%s_2, %s_3) : !numba_cute.nvgpu.tiled_copy<!numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f32, num_bits = 128>, (256,4):(4,1), [64:1,16:1]>

%s = numba_cute.static : !numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[16,8,16],SM80>
%s_1 = numba_cute.static : !cute.layout<"(2,4,1):(1,2,0)">
%s_2 = numba_cute.static : !cute.layout<"32:1">
%s_3 = numba_cute.static : !cute.layout<"64:1">
%s_4 = numba_cute.static : !cute.layout<"16:1">
%r = numba_cute.TiledMma %s, %s_1, (%s_2, %s_3, %s_4) : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[16,8,16],SM80>, (2,4,1):(1,2,0), permutation_mnk = (32:1,64:1,16:1)>

%r = numba_cute.abs %f

%r = numba_cute.acos %f

%r = numba_cute.acosh %g

%r = numba_cute.asin %f

%r = numba_cute.asinh %f

%r = numba_cute.atan %f

%r = numba_cute.atan2 %f, %g

%r = numba_cute.atanh %f

%s = numba_cute.static : !cute.stride<"1@0">
%r = numba_cute.basis_get %s, (1,) : !cute.int_tuple<"1">

%s = numba_cute.static : !cute.stride<"1@0">
%r = numba_cute.basis_value %s : !cute.int_tuple<"1">

%s = numba_cute.static : !cute.layout<"(8,64,1):(64,1,0)">
%s_1 = numba_cute.static : !cute.layout<"(16,1,4):(1,0,16)">
%r = numba_cute.blocked_product %s, %s_1 : !cute.layout<"((8,16),(64,1),(1,4)):((64,512),(1,0),(0,8192))">

%r = numba_cute.cbrt %f

%r = numba_cute.ceil %f

%r = numba_cute.clamp %f, 0.0, 0.25

%s = numba_cute.static : !cute.layout<"(4,32):(256,1)">
%r = numba_cute.coalesce %s, target_profile = 1 : !cute.layout<"(4,32):(256,1)">

%s = numba_cute.static : !cute.layout<"(4,2):(2,1)">
%r = numba_cute.complement %s, 64 : !cute.layout<"8:8">

%r = numba_cute.copysign %f, %g

%r = numba_cute.cos %f

%r = numba_cute.cosh %f

%s = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%r = numba_cute.crd2idx (1, 2), %s : !cute.int_tuple<"17">

%r = numba_cute.depth 2 : !cute.int_tuple<"0">

%r = numba_cute.dice (_, 1), (3, 4) : !cute.coord<"(_,1)">

%a = numba_cute.full 4, %f, !f32
%q = numba_cute.empty_like %a

%r = numba_cute.erf %f

%r = numba_cute.erfc %f

%r = numba_cute.exp %f

%r = numba_cute.expm1 %f

%r = numba_cute.fast_divmod_create_divisor 7 : !numba_cute.FastDivmodDivisor<divisor = 7, multiplier = 2454267027, shift = 34>

%r = numba_cute.fast_divmod_create_divisor_v2 7 : !numba_cute.FastDivmodDivisor<divisor = 7, multiplier = 2454267027, shift = 34>

%s = numba_cute.static : !cute.layout<"(8,4):(1,0)">
%r = numba_cute.filter %s, target_profile = _ : !cute.layout<"8:1">

%r = numba_cute.filter_tuple @"tests.ir.test_executed:wrapped", (1, 2) : !cute.int_tuple<"(1,2)">

%r = numba_cute.find (1, 3, 4), 3

%r = numba_cute.find_if (1, 3, 4), @"tests.ir.test_executed:is_three" : !cute.int_tuple<"1">

%s = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%s_1 = numba_cute.static : !cute.layout<"(4,2):(2,1)">
%r = numba_cute.flat_product %s, %s_1 : !cute.layout<"(8,4,4,2):(1,8,64,32)">

%s = numba_cute.static : !cute.layout<"(64,128):(1@1,1@0)">
%r = numba_cute.flatten %s : !cute.layout<"(64,128):(1@1,1@0)">

%r = numba_cute.flatten_to_tuple (131, 1) : !cute.int_tuple<"(131,1)">

%r = numba_cute.floor %f

%r = numba_cute.front 1 : !cute.int_tuple<"1">

%a = numba_cute.full 4, %f, !f32
%r = numba_cute.full_like %a, %g

%s = numba_cute.static : !cute.layout<"(4,4):(4,1)">
%r = numba_cute.get %s, () : !cute.layout<"(4,4):(4,1)">

%r = numba_cute.get_divisibility (8, 12)

%r = numba_cute.get_leaves ((1, 2), 3) : !cute.int_tuple<"(1,2,3)">

%s = numba_cute.static : !cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">
%r = numba_cute.get_nonswizzle_portion %s : !cute.layout<"(8,64):(64,1)">

%s = numba_cute.static : !cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">
%r = numba_cute.get_swizzle_portion %s : !cute.swizzle<"S<3,4,3>">

%s = numba_cute.static : !cute.stride<"1@0">
%r = numba_cute.has_scaled_basis %s : !numba_cute.constant<true>

%r = numba_cute.has_underscore _ : !numba_cute.constant<true>

%r = numba_cute.idx2crd 5, (3, 5) : !cute.int_tuple<"(2,1)">

%r = numba_cute.increment_coord (1, 2), (3, 4), _ : !cute.int_tuple<"(2,2)">

%L = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%r = numba_cute.inner_partition %L, (2, 2), (0, 1)

%r = numba_cute.is_congruent (1, (2, 3)), (4, (5, 6)) : !numba_cute.constant<true>

%r = numba_cute.is_int_tuple 1 : !numba_cute.constant<true>

%r = numba_cute.is_int_tuple_type @"builtins:int" : !numba_cute.constant<true>

%r = numba_cute.is_integer 1 : !numba_cute.constant<true>

%r = numba_cute.is_major 0, (1, 8) : !numba_cute.constant<true>

%r = numba_cute.is_static (8, 32) : !numba_cute.constant<true>

%r = numba_cute.is_valid_leaf 3 : !numba_cute.constant<true>

%r = numba_cute.is_weakly_congruent (1, 3), (4, (5, 6)) : !numba_cute.constant<true>

%r = numba_cute.isfinite %f

%r = numba_cute.isinf %f

%r = numba_cute.isnan %f

%r = numba_cute.layout_from_str "(8,4):(1,8)" : !cute.layout<"(8,4):(1,8)">

%r = numba_cute.leading_dim (256, 256), (256, 1) : !cute.int_tuple<"1">

%s = numba_cute.static : !cute.layout<"8:1">
%r = numba_cute.left_inverse %s : !cute.layout<"8:1">

%r = numba_cute.log %f

%r = numba_cute.log10 %f

%r = numba_cute.log1p %f

%s = numba_cute.static : !cute.layout<"128:1">
%r = numba_cute.logical_divide %s, 128 : !cute.layout<"(128,1):(1,0)">

%s = numba_cute.static : !cute.layout<"(16,16):(1,16)">
%s_1 = numba_cute.static : !cute.layout<"(4,1):(1,0)">
%r = numba_cute.logical_product %s, %s_1 : !cute.layout<"((16,16),(4,1)):((1,16),(256,0))">

%s = numba_cute.static : !numba_cute.nvgpu.CopyUniversalOp
%r = numba_cute.make_atom %s, !f16, 0 : !numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f16>

%s = numba_cute.static : !cute.swizzle<"S<3,4,3>">
%s_1 = numba_cute.static : !cute.layout<"(8,64):(64,1)">
%r = numba_cute.make_composed_layout %s, 0, %s_1 : !cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">

%r = numba_cute.make_coord 1, (2, 3) : !cute.coord<"(1,(2,3))">

%s = numba_cute.static : !numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f16>
%s_1 = numba_cute.static : !cute.layout<"(4,2):(1,4)">
%s_2 = numba_cute.static : !cute.layout<"8:1">
%r = numba_cute.make_cotiled_copy %s, %s_1, %s_2 : !numba_cute.nvgpu.tiled_copy<!numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f16>, (4,2):(1,4), [8:1]>

%q = numba_cute.make_fragment 4, !f32

%r = numba_cute.make_identity_layout (768,) : !cute.layout<"(768):(1@0)">

%s = numba_cute.static : !cute.layout<"(2,2):(1,2)">
%r = numba_cute.make_layout_image_mask %s, (0, 1), 1 : !cute.int_tuple<"5">

%s = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%r = numba_cute.make_layout_like %s : !cute.layout<"(8,4):(1,8)">

%s = numba_cute.static : !cute.layout<"(16,16):(1,16)">
%s_1 = numba_cute.static : !cute.layout<"(4,1):(1,0)">
%r = numba_cute.make_layout_tv %s, %s_1 : !numba_cute.tuple<((64,16),(256,4):(4,1))>

%q = numba_cute.make_ptr !f32, 0, #numba_cute.AddressSpace.smem

%r = numba_cute.make_shape 4, (2, 3) : !cute.shape<"(4,(2,3))">

%r = numba_cute.make_stride 4, (2, 3) : !cute.stride<"(4,(2,3))">

%r = numba_cute.make_tile 4, (2, 3) : !cute.int_tuple<"(4,(2,3))">

%s = numba_cute.static : !numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f32, num_bits = 128>
%s_1 = numba_cute.static : !cute.layout<"(16,16):(1,16)">
%s_2 = numba_cute.static : !cute.layout<"(4,1):(1,0)">
%r = numba_cute.make_tiled_copy_tv %s, %s_1, %s_2 : !numba_cute.nvgpu.tiled_copy<!numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f32, num_bits = 128>, (256,4):(4,1), [64:1,16:1]>

%s = numba_cute.static : !numba_cute.nvgpu.warp.MmaF16BF16Op<ab_dtype = !f16, acc_dtype = !f32, shape_mnk = (16,8,16)>
%r = numba_cute.make_tiled_mma %s, (2, 4, 1), (32, 64, 16) : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[16,8,16],SM80>, (2,4,1):(1,2,0), permutation_mnk = (32:1,64:1,16:1)>

%s = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%s_1 = numba_cute.static : !cute.layout<"(4,2):(2,1)">
%r = numba_cute.max_common_layout %s, %s_1 : !cute.layout<"1:0">

%s = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%s_1 = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%r = numba_cute.max_common_vector %s, %s_1 : !cute.int_tuple<"32">

%op = numba_cute.nvgpu.MmaUniversalOp !f32
%k = numba_cute.make_mma_atom %op
%a = numba_cute.make_rmem_tensor 1, !f32
%b = numba_cute.make_rmem_tensor 1, !f32
%c = numba_cute.make_rmem_tensor 1, !f32
numba_cute.fill %a, %f
numba_cute.fill %b, %g
numba_cute.clear %c
numba_cute.mma_atom_call %k, %c, %a, %b, %c

%r = numba_cute.neg %f

%s = numba_cute.static : !cute.layout<"(4,2):(0,1)">
%r = numba_cute.nullspace %s : !cute.layout<"4:1">

%a = numba_cute.full 4, %f, !f32
%r = numba_cute.ones_like %a

%L = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%r = numba_cute.outer_partition %L, (2, 2), (0, 1)

%r = numba_cute.pow %f, %g

%r = numba_cute.prepend (1, 2), 3, _ : !cute.int_tuple<"(3,1,2)">

%r = numba_cute.prepend_ones (1, 2), 3 : !cute.int_tuple<"(1,1,2)">

%s = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%r = numba_cute.pretty_str %s : !numba_cute.constant<"(8,4):(1,8)">

%r = numba_cute.product (8, 32) : !cute.int_tuple<"256">

%r = numba_cute.product_like 4, 1 : !cute.int_tuple<"4">

%s = numba_cute.static : !cute.layout<"(16,16):(1,16)">
%s_1 = numba_cute.static : !cute.layout<"(4,1):(1,0)">
%r = numba_cute.raked_product %s, %s_1 : !cute.layout<"((4,16),16):((256,1),16)">

%q = numba_cute.range 4

%r = numba_cute.rcp %f

%s = numba_cute.static : !cute.layout<"(32,128):(128,1)">
%r = numba_cute.recast_layout 16, 1, %s : !cute.layout<"(32,8):(8,1)">

%r = numba_cute.rem %f, %g

%r = numba_cute.repeat 3, 2 : !cute.int_tuple<"(3,3)">

%r = numba_cute.repeat_as_tuple 3, 2 : !cute.int_tuple<"(3,3)">

%r = numba_cute.repeat_like 0, 8 : !cute.int_tuple<"0">

%s = numba_cute.static : !cute.layout<"((4,16),16):((256,1),16)">
%r = numba_cute.right_inverse %s : !cute.layout<"(256,4):(4,1)">

%r = numba_cute.round %f

%r = numba_cute.round_up 5, 4 : !cute.int_tuple<"8">

%r = numba_cute.roundeven %f

%s = numba_cute.static : !cute.composed_layout<"S<2,4,3> o 0 o ((8,16),(32,1),(1,2)):((32,256),(1,0),(0,4096))">
%r = numba_cute.select %s, (0, 1) : !cute.composed_layout<"S<2,4,3> o 0 o ((8,16),(32,1)):((32,256),(1,0))">

%s = numba_cute.static : !cute.layout<"(1,(128,16)):(128,(1,128))">
%r = numba_cute.shape %s, mode = () : !cute.int_tuple<"(1,(128,16))">

%s = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%r = numba_cute.shape_at %s, 0 : !cute.int_tuple<"8">

%r = numba_cute.shape_div 8, 2 : !cute.int_tuple<"4">

%r = numba_cute.sin %f

%r = numba_cute.sinh %f

%s = numba_cute.static : !cute.composed_layout<"S<3,4,3> o 0 o ((8,16),(64,1),(1,4)):((64,512),(1,0),(0,8192))">
%r = numba_cute.slice_ %s, (_, _, 0) : !cute.composed_layout<"S<3,4,3> o 0 o ((8,16),(64,1)):((64,512),(1,0))">

%L = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%r = numba_cute.slice_and_offset (_, 1), %L

%s = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%r = numba_cute.stride %s, mode = 1 : !cute.int_tuple<"8">

%s = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%r = numba_cute.stride_at %s, 1 : !cute.int_tuple<"8">

%r = numba_cute.tan %f

%r = numba_cute.tanh %f

%s = numba_cute.static : !cute.layout<"1:0">
%s_1 = numba_cute.static : !cute.layout<"(1,1,1):(0,0,0)">
%r = numba_cute.tiled_product %s, %s_1 : !cute.layout<"(1,1,1,1):(0,0,0,0)">

%r = numba_cute.transform_apply (1, 2), f = @"tests.ir.test_executed:twice", g = @"tests.ir.test_executed:collected" : !cute.int_tuple<"(2,4)">

%r = numba_cute.transform_leaf @"tests.ir.test_executed:twice", (1, (2, 3)) : !cute.int_tuple<"(2,(4,6))">

%r = numba_cute.trunc %f

%r = numba_cute.tuple_cat (1, 2), (3,) : !cute.int_tuple<"(1,2,3)">

%r = numba_cute.unflatten (1, 2, 3), ((0, 0), 0) : !cute.int_tuple<"((1,2),3)">

%r = numba_cute.unwrap (1,) : !cute.int_tuple<"1">

%r = numba_cute.wrap (8, 32) : !cute.int_tuple<"(8,32)">

%a = numba_cute.full 4, %f, !f32
%r = numba_cute.zeros_like %a

%s = numba_cute.static : !cute.layout<"1:0">
%s_1 = numba_cute.static : !cute.layout<"(1,1,1):(0,0,0)">
%r = numba_cute.zipped_product %s, %s_1 : !cute.layout<"(1,(1,1,1)):(0,(0,0,0))">

%r = numba_cute.make_swizzle 3, 4, 3 : !cute.swizzle<"S<3,4,3>">

%s = numba_cute.static : !numba_cute.nvgpu.CopyUniversalOp
%r = numba_cute.make_copy_atom %s, !f16, 64 : !numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f16, num_bits = 64>

%s = numba_cute.static : !numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f16, num_bits = 128>
%s_1 = numba_cute.static : !numba_cute.nvgpu.CopyUniversalOp
%r = numba_cute.CopyAtom.with_op %s, %s_1 : !numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f16, num_bits = 128>

%s = numba_cute.static : !cute.layout<"(8,4):(1,8)">
%r = numba_cute.Layout.get_hier_coord %s, 5 : !cute.int_tuple<"(5,0)">

%k = numba_cute.static : !numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>
%q = numba_cute.MmaAtom.get %k, #numba_cute.nvgpu.Field.ACCUMULATE

%op = numba_cute.nvgpu.MmaUniversalOp !f32
%k = numba_cute.make_mma_atom %op
%a = numba_cute.make_rmem_tensor 1, !f32
%b = numba_cute.make_rmem_tensor 1, !f32
%c = numba_cute.make_rmem_tensor 1, !f32
numba_cute.fill %a, %f
numba_cute.fill %b, %g
numba_cute.clear %c
numba_cute.MmaAtom.issue %k, %c, %a, %b, true

%p = numba_cute.get_attr %out, "iterator"
%q = numba_cute.Pointer.load_vector %p, 2

%p = numba_cute.get_attr %out, "iterator"
%z = numba_cute.binary "+", %p, 500
numba_cute.Pointer.store_vector %z, (%x, %x)

%q = numba_cute.Swizzle.from_name "S<3,4,3>"

%a = numba_cute.full 4, %f, !f32
%q = numba_cute.TensorSSA.bitcast %a, !i32

%a = numba_cute.full (1, 4), %f, !f32
%q = numba_cute.TensorSSA.broadcast_to %a, (2, 4)

%a = numba_cute.full 4, %f, !f32
%q = numba_cute.TensorSSA.reshape %a, (2, 2)

%s = numba_cute.static : !numba_cute.nvgpu.thr_mma<!numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[16,8,16],SM80>, (2,2,1):(1,2,0)>, 5>
%r = numba_cute.ThrMma.partition_shape_C %s, (32, 16) : !cute.int_tuple<"((2,2),1,1)">

%k = numba_cute.static : !numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>
%tm = numba_cute.make_tiled_mma %k, (1, 1, 1)
%q = numba_cute.TiledMma.get %tm, #numba_cute.nvgpu.Field.ACCUMULATE

%s = numba_cute.static : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[128,64,16],SM100>, (1,1,1):(0,0,0)>
%r = numba_cute.TiledMma.get_tile_size %s, 0 : !cute.int_tuple<"128">

%s = numba_cute.static : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[128,64,16],SM100>, (1,1,1):(0,0,0)>
%r = numba_cute.TiledMma.layout_tv %s, "C", _ : !cute.layout<"(1,((128,64),(1,1))):(0,((1,128),(0,0)))">

%s = numba_cute.static : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!bf16,!bf16,!f32,[128,128,16],SM100>, (1,1,1):(0,0,0)>
%s_1 = numba_cute.static : !cute.layout<"(128,64):(1,128)">
%r = numba_cute.TiledMma.thrfrg %s, "A", %s_1, _ : !cute.layout<"((1,(1,1)),((128,16),(1,4))):((128,(0,0)),((1,128),(0,2048)))">
