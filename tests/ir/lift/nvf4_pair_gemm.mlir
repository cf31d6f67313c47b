!copy_ldtm_32_ = !cute.tiled_copy<!cute_nvgpu.atom.tmem_load<f32, 32 DP, 32 bit, x128>, layout_copy_tv = <"((32,4),(128,32)):((0,1),(4,512))">, tiler_mn = <"[(512,32):(32,1);1:0;1:0]">>
!copy_s2t_sfa_ = !cute.tiled_copy<!cute_nvgpu.atom.s2t_copy<f8E4M3FN, 32 DP, 128 bit, 2 cta, x4>, layout_copy_tv = <"(1,(32,(4,4),4)):(0,(1,(32,128),512))">, tiler_mn = <"[(32,4,16):(1,512,32);1:0;1:0]">>
!copy_s2t_sfb_ = !cute.tiled_copy<!cute_nvgpu.atom.s2t_copy<f8E4M3FN, 32 DP, 128 bit, 2 cta, x4>, layout_copy_tv = <"(1,(32,(4,4),4)):(0,(1,(32,128),512))">, tiler_mn = <"[(32,4,4,4):(1,1024,32,256);1:0;1:0]">>
!memref_gmem_f16_ = !cute.memref<f16, gmem, align<16>, "(?{div=32},?{div=16},?):(?{div=16},1,?{div=512})">
!memref_gmem_f16_1 = !cute.memref<f16, gmem, align<16>, "(256,256,?,?,?):(?{div=16},1,?{div=4096},256,?{div=512})">
!memref_gmem_f16_2 = !cute.memref<f16, gmem, align<16>, "((128,256),1,1,?,?,?):((?{div=16},1),0,0,?{div=4096},256,?{div=512})">
!memref_gmem_f16_3 = !cute.memref<f16, gmem, align<16>, "((128,1),2,1,1,?,?,?):((1,0),128,0,0,?{div=4096},256,?{div=512})">
!memref_gmem_f16_4 = !cute.memref<f16, gmem, align<16>, "((128,1),2,1,1):((1,0),128,0,0)">
!memref_gmem_f16_5 = !cute.memref<f16, gmem, align<16>, "((128,1),(2,1,1)):((1,0),(128,0,0))">
!memref_gmem_f4E2M1FN_ = !cute.memref<f4E2M1FN, gmem, align<16>, "(?,?{div=32},?):(?{div=32},1,?{div=32})">
!memref_gmem_f8E4M3FN_ = !cute.memref<f8E4M3FN, gmem, align<32>, "(((32,4),?),((16,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">
!memref_rmem_f16_ = !cute.memref<f16, rmem, align<32>, "((128,1),2,1,1):((1,0),128,0,0)">
!memref_rmem_f16_1 = !cute.memref<f16, rmem, align<32>, "((128,1),(2,1,1)):((1,0),(128,0,0))">
!memref_rmem_f32_ = !cute.memref<f32, rmem, align<32>, "((128,1),2,1,1):((1,0),128,0,0)">
!memref_rmem_f32_1 = !cute.memref<f32, rmem, align<32>, "((128,1),(2,1,1)):((1,0),(128,0,0))">
!memref_smem_f4E2M1FN_ = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((128,64),1,4,2):((256,1),0,64,32768)">
!memref_smem_f4E2M1FN_1 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "(((128,64),1,4),2):(((256,1),0,64),32768)">
!memref_smem_f4E2M1FN_2 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((32768,1),2):((1,0),32768)">
!memref_smem_f4E2M1FN_3 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((32768,1)):((1,0))">
!memref_smem_f4E2M1FN_4 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((32768,1),1):((1,0),0)">
!memref_smem_f4E2M1FN_5 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((32768,1),(1)):((1,0),(0))">
!memref_smem_f8E4M3FN_ = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4),1),(16,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">
!memref_smem_f8E4M3FN_1 = !cute.memref<f8E4M3FN, smem, align<128>, "(((((32,4),1),(16,4)),1,4),2):(((((16,4),0),(0,1)),0,512),2048)">
!memref_smem_f8E4M3FN_10 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,1),2):((1,0),4096)">
!memref_smem_f8E4M3FN_11 = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4),1),(1,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">
!memref_smem_f8E4M3FN_12 = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4,4),4),1),1,1,4,2):((((16,4,4),0),0),0,0,512,2048)">
!memref_smem_f8E4M3FN_13 = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4),2),(1,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">
!memref_smem_f8E4M3FN_14 = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4,4),4),1),2,1,4,2):((((16,4,4),0),0),2048,0,512,4096)">
!memref_smem_f8E4M3FN_2 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,16),2):((1,0),2048)">
!memref_smem_f8E4M3FN_3 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,1),2):((1,0),2048)">
!memref_smem_f8E4M3FN_4 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,1)):((1,0))">
!memref_smem_f8E4M3FN_5 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,1),1):((1,0),0)">
!memref_smem_f8E4M3FN_6 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,1),(1)):((1,0),(0))">
!memref_smem_f8E4M3FN_7 = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4),2),(16,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">
!memref_smem_f8E4M3FN_8 = !cute.memref<f8E4M3FN, smem, align<128>, "(((((32,4),2),(16,4)),1,4),2):(((((16,4),2048),(0,1)),0,512),4096)">
!memref_smem_f8E4M3FN_9 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,16),2):((1,0),4096)">
!memref_tmem_f32_ = !cute.memref<f32, tmem, align<1>, "((128,256),1,1):((65536,1),0,0)">
!memref_tmem_f32_1 = !cute.memref<f32, tmem, align<16>, "((128,256),1,1):((65536,1),0,0)">
!memref_tmem_f32_2 = !cute.memref<f32, tmem, align<16>, "(((128,32),1),2,1,1):(((1,65536),0),128,0,0)">
!memref_tmem_f32_3 = !cute.memref<f32, tmem, align<16>, "(((128,32),1),(2,1,1)):(((1,65536),0),(128,0,0))">
!memref_tmem_f8E4M3FN_ = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)">
!memref_tmem_f8E4M3FN_1 = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,8),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,32)">
!memref_tmem_f8E4M3FN_2 = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,4),4),(1,4)),1,4):((((262144,4),8388608),(0,1)),0,16)">
!memref_tmem_f8E4M3FN_3 = !cute.memref<f8E4M3FN, tmem, align<16>, "(((32,16,4),1),1,1,4):(((262144,1,8388608),0),0,0,16)">
!memref_tmem_f8E4M3FN_4 = !cute.memref<f8E4M3FN, tmem, align<16>, "(((32,16,4),1),(1,1,4)):(((262144,1,8388608),0),(0,0,16))">
!memref_tmem_f8E4M3FN_5 = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,8),4),(1,4)),1,4):((((262144,4),8388608),(0,1)),0,32)">
!memref_tmem_f8E4M3FN_6 = !cute.memref<f8E4M3FN, tmem, align<16>, "(((32,16,4),1),2,1,4):(((262144,1,8388608),0),16,0,32)">
!memref_tmem_f8E4M3FN_7 = !cute.memref<f8E4M3FN, tmem, align<16>, "(((32,16,4),1),(2,1,4)):(((262144,1,8388608),0),(16,0,32))">
!memref_tmem_f8E4M3FN_8 = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,4),4),(16,4)),1):((((262144,4),8388608),(0,1)),0)">
!memref_tmem_f8E4M3FN_9 = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,8),4),(16,4)),1):((((262144,4),8388608),(0,1)),0)">
!mma_1 = !cute.tiled_mma<!cute_nvgpu.sm100.mma_bs<128x256x64, num_cta = 1, ab_major = (k, k), elem_type = (f4E2M1FN, f4E2M1FN, f32), sf_type = f8E4M3FN, frag_kind = ss, vec_size = 16>, atom_layout_MNK = <"(1,1,1):(0,0,0)">, permutation_MNK = <"[_;_;_]">>
!mma_ = !cute.tiled_mma<!cute_nvgpu.sm100.mma_bs<256x256x64, num_cta = 2, ab_major = (k, k), elem_type = (f4E2M1FN, f4E2M1FN, f32), sf_type = f8E4M3FN, frag_kind = ss, vec_size = 16>, atom_layout_MNK = <"(1,1,1):(0,0,0)">, permutation_MNK = <"[_;_;_]">>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @kernel_cutlass_kernel_m_nvf4Sm100BlockScaledDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_0(%arg0: !mma_, %arg1: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, %arg2: !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, %arg3: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, %arg4: !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, %arg5: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, %arg6: !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, %arg7: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm_multicast, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, %arg8: !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, %arg9: !memref_gmem_f16_, %arg10: !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">, %arg11: !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">, %arg12: !cute.layout<"((((32,4),1),(16,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">, %arg13: !cute.layout<"((((32,4),2),(16,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">, %arg14: !mma_1) attributes {cu_attrs = {max_dynamic_shared_size_bytes = #cuda.dev_max_shared_memory_optin, non_portable_cluster_size_allowed = 1 : i32}, cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %iter_1 = cute.get_iter(%arg2) : !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">
      %tup_2 = cute.deref_arith_tuple_iter(%iter_1) : !cute.arith_tuple_iter<"(0,0,0)">
      %e0_3, %e1_4, %e2_5 = cute.get_leaves(%tup_2) : !cute.int_tuple<"(0,0,0)">
      %iter_6 = cute.get_iter(%arg4) : !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">
      %tup_7 = cute.deref_arith_tuple_iter(%iter_6) : !cute.arith_tuple_iter<"(0,0,0)">
      %e0_8, %e1_9, %e2_10 = cute.get_leaves(%tup_7) : !cute.int_tuple<"(0,0,0)">
      %iter_11 = cute.get_iter(%arg6) : !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">
      %tup_12 = cute.deref_arith_tuple_iter(%iter_11) : !cute.arith_tuple_iter<"(0,0,0,0)">
      %e0_13, %e1_14, %e2_15, %e3_16 = cute.get_leaves(%tup_12) : !cute.int_tuple<"(0,0,0,0)">
      %iter_17 = cute.get_iter(%arg8) : !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">
      %tup_18 = cute.deref_arith_tuple_iter(%iter_17) : !cute.arith_tuple_iter<"(0,0,0,0)">
      %e0_19, %e1_20, %e2_21, %e3_22 = cute.get_leaves(%tup_18) : !cute.int_tuple<"(0,0,0,0)">
      %1023 = nvvm.read.ptx.sreg.tid.x : i32
      %1024 = nvvm.read.ptx.sreg.tid.y : i32
      %1025 = nvvm.read.ptx.sreg.tid.z : i32
      %1026 = nvvm.read.ptx.sreg.ntid.x : i32
      %1027 = nvvm.read.ptx.sreg.ntid.y : i32
      %1028 = nvvm.read.ptx.sreg.ctaid.x : i32
      %1029 = nvvm.read.ptx.sreg.ctaid.y : i32
      %1030 = nvvm.read.ptx.sreg.ctaid.z : i32
      %1031 = arith.muli %1024, %1026 : i32
      %1032 = arith.addi %1023, %1031 : i32
      %1033 = arith.muli %1025, %1026 : i32
      %1034 = arith.muli %1033, %1027 : i32
      %1035 = arith.addi %1032, %1034 : i32
      %c32_i32_36 = arith.constant 32 : i32
      %1037 = arith.floordivsi %1035, %c32_i32_36 : i32
      %1038 = cute_nvgpu.arch.make_warp_uniform(%1037) : i32
      %smem_39 = cute.memref.alloca() {smem.partition_id = 0 : i32} : !cute.memref<i8, smem, align<1024>, "78848:1">
      %iter_40 = cute.get_iter(%smem_39) : !cute.memref<i8, smem, align<1024>, "78848:1">
      %int_tuple_41 = cute.make_int_tuple() : () -> !cute.int_tuple<"0">
      %ptr_42 = cute.add_offset(%iter_40, %int_tuple_41) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"0">) -> !cute.ptr<i8, smem, align<8>>
      %iter_43 = cute.recast_iter(%ptr_42) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i64, smem, align<8>>
      %int_tuple_44 = cute.make_int_tuple() : () -> !cute.int_tuple<"32">
      %ptr_45 = cute.add_offset(%iter_40, %int_tuple_44) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"32">) -> !cute.ptr<i8, smem, align<8>>
      %iter_46 = cute.recast_iter(%ptr_45) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i64, smem, align<8>>
      %int_tuple_47 = cute.make_int_tuple() : () -> !cute.int_tuple<"48">
      %ptr_48 = cute.add_offset(%iter_40, %int_tuple_47) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"48">) -> !cute.ptr<i8, smem, align<8>>
      %iter_49 = cute.recast_iter(%ptr_48) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i32, smem, align<8>>
      %int_tuple_50 = cute.make_int_tuple() : () -> !cute.int_tuple<"56">
      %ptr_51 = cute.add_offset(%iter_40, %int_tuple_50) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"56">) -> !cute.ptr<i8, smem, align<8>>
      %iter_52 = cute.recast_iter(%ptr_51) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i64, smem, align<8>>
      %int_tuple_53 = cute.make_int_tuple() : () -> !cute.int_tuple<"1024">
      %ptr_54 = cute.add_offset(%iter_40, %int_tuple_53) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"1024">) -> !cute.ptr<i8, smem, align<128>>
      %iter_55 = cute.recast_iter(%ptr_54) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f4E2M1FN, smem, align<128>, S<3,4,3>>
      %1056 = cute.composed_get_outer(%arg10) : (!cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">) -> !cute.layout<"((128,64),1,4,2):((256,1),0,64,32768)">
      %view_57 = cute.make_view(%iter_55, %1056) : !memref_smem_f4E2M1FN_
      %int_tuple_58 = cute.make_int_tuple() : () -> !cute.int_tuple<"33792">
      %ptr_59 = cute.add_offset(%iter_40, %int_tuple_58) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"33792">) -> !cute.ptr<i8, smem, align<128>>
      %iter_60 = cute.recast_iter(%ptr_59) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f4E2M1FN, smem, align<128>, S<3,4,3>>
      %1061 = cute.composed_get_outer(%arg11) : (!cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">) -> !cute.layout<"((128,64),1,4,2):((256,1),0,64,32768)">
      %view_62 = cute.make_view(%iter_60, %1061) : !memref_smem_f4E2M1FN_
      %int_tuple_63 = cute.make_int_tuple() : () -> !cute.int_tuple<"66560">
      %ptr_64 = cute.add_offset(%iter_40, %int_tuple_63) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"66560">) -> !cute.ptr<i8, smem, align<128>>
      %iter_65 = cute.recast_iter(%ptr_64) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f8E4M3FN, smem, align<128>>
      %view_66 = cute.make_view(%iter_65, %arg12) : !memref_smem_f8E4M3FN_
      %int_tuple_67 = cute.make_int_tuple() : () -> !cute.int_tuple<"70656">
      %ptr_68 = cute.add_offset(%iter_40, %int_tuple_67) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"70656">) -> !cute.ptr<i8, smem, align<128>>
      %iter_69 = cute.recast_iter(%ptr_68) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f8E4M3FN, smem, align<128>>
      %view_70 = cute.make_view(%iter_69, %arg13) : !memref_smem_f8E4M3FN_7
      %int_tuple_71 = cute.make_int_tuple() : () -> !cute.int_tuple<"2">
      %ptr_72 = cute.add_offset(%iter_43, %int_tuple_71) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem, align<8>>
      %int_tuple_73 = cute.make_int_tuple() : () -> !cute.int_tuple<"1">
      %ptr_74 = cute.add_offset(%iter_46, %int_tuple_73) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem, align<8>>
      %c0_i32_75 = arith.constant 0 : i32
      %c1_i32_76 = arith.constant 1 : i32
      %c2_i32_77 = arith.constant 2 : i32
      %1078 = arith.remsi %1028, %c2_i32_77 : i32
      %1079 = arith.floordivsi %1028, %c2_i32_77 : i32
      %1080 = arith.cmpi eq, %1078, %c0_i32_75 : i32
      %1081 = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %1082 = arith.cmpi eq, %1038, %c0_i32_75 : i32
      scf.if %1082 {
        %c1_i32_83 = arith.constant 1 : i32
        %1084 = builtin.unrealized_conversion_cast %iter_43 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        nvvm.mbarrier.init %1084, %c1_i32_83 : !llvm.ptr<3>, i32
        %c1_i32_85 = arith.constant 1 : i32
        %int_tuple_86 = cute.make_int_tuple() : () -> !cute.int_tuple<"1">
        %ptr_87 = cute.add_offset(%iter_43, %int_tuple_86) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
        %1088 = builtin.unrealized_conversion_cast %ptr_87 : !cute.ptr<i64, smem> to !llvm.ptr<3>
        nvvm.mbarrier.init %1088, %c1_i32_85 : !llvm.ptr<3>, i32
        %c1_i32_89 = arith.constant 1 : i32
        %1090 = builtin.unrealized_conversion_cast %ptr_72 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        nvvm.mbarrier.init %1090, %c1_i32_89 : !llvm.ptr<3>, i32
        %c1_i32_91 = arith.constant 1 : i32
        %int_tuple_92 = cute.make_int_tuple() : () -> !cute.int_tuple<"1">
        %ptr_93 = cute.add_offset(%ptr_72, %int_tuple_92) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
        %1094 = builtin.unrealized_conversion_cast %ptr_93 : !cute.ptr<i64, smem> to !llvm.ptr<3>
        nvvm.mbarrier.init %1094, %c1_i32_91 : !llvm.ptr<3>, i32
        %c1_i32_95 = arith.constant 1 : i32
        %1096 = builtin.unrealized_conversion_cast %iter_46 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        nvvm.mbarrier.init %1096, %c1_i32_95 : !llvm.ptr<3>, i32
        %c256_i32_97 = arith.constant 256 : i32
        %1098 = builtin.unrealized_conversion_cast %ptr_74 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        nvvm.mbarrier.init %1098, %c256_i32_97 : !llvm.ptr<3>, i32
        %c32_i32_99 = arith.constant 32 : i32
        %1100 = builtin.unrealized_conversion_cast %iter_52 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        nvvm.mbarrier.init %1100, %c32_i32_99 : !llvm.ptr<3>, i32
      }
      nvvm.fence.mbarrier.init
      nvvm.cluster.arrive.relaxed
      nvvm.cluster.wait
      %tile_101 = cute.make_tile() : () -> !cute.tile<"[256:1;256:1]">
      %coord_102 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_103 = cute.local_tile(%arg2, %tile_101, %coord_102) : (!cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute.tile<"[256:1;256:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0)", "(256,256,?,?,?):(1@1,1@0,256@1,256@0,1@2)">
      %sz_104 = cute.size(%tiled_view_103) <{mode = [3]}> : (!cute.coord_tensor<"(0,0,0)", "(256,256,?,?,?):(1@1,1@0,256@1,256@0,1@2)">) -> !cute.int_tuple<"?">
      %e0_105 = cute.get_leaves(%sz_104) : !cute.int_tuple<"?">
      %1106 = cute.get_scalars(%e0_105) : !cute.int_tuple<"?">
      %coord_107 = cute.make_coord(%1078) : (i32) -> !cute.coord<"?">
      %ptn_A_108 = cute.tiled.mma.partition A (%arg0, %tiled_view_103, %coord_107) : (!mma_, !cute.coord_tensor<"(0,0,0)", "(256,256,?,?,?):(1@1,1@0,256@1,256@0,1@2)">, !cute.coord<"?">) -> !cute.coord_tensor<"(0,0,0)", "((128,64),1,4,?,?,?):((1@1,1@0),0,64@0,256@1,256@0,1@2)">
      %tile_109 = cute.make_tile() : () -> !cute.tile<"[256:1;256:1]">
      %coord_110 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_111 = cute.local_tile(%arg4, %tile_109, %coord_110) : (!cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute.tile<"[256:1;256:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0)", "(256,256,?,?,?):(1@1,1@0,256@1,256@0,1@2)">
      %coord_112 = cute.make_coord(%1078) : (i32) -> !cute.coord<"?">
      %ptn_B_113 = cute.tiled.mma.partition B (%arg0, %tiled_view_111, %coord_112) : (!mma_, !cute.coord_tensor<"(0,0,0)", "(256,256,?,?,?):(1@1,1@0,256@1,256@0,1@2)">, !cute.coord<"?">) -> !cute.coord_tensor<"(0,0,0)", "((128,64),1,4,?,?,?):((1@1,1@0),0,64@0,256@1,256@0,1@2)">
      %tile_114 = cute.make_tile() : () -> !cute.tile<"[256:1;256:1]">
      %coord_115 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_116 = cute.local_tile(%arg6, %tile_114, %coord_115) : (!cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, !cute.tile<"[256:1;256:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0,0)", "(((32,4),1),((16,4),4),?,?,(1,?)):(((8@0,2@0),0),((0,1/2@0),1@1),1@2,4@1,(0,1@3))">
      %coord_117 = cute.make_coord(%1078) : (i32) -> !cute.coord<"?">
      %ptn_A_118 = cute.tiled.mma.partition A (%arg0, %tiled_view_116, %coord_117) : (!mma_, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),1),((16,4),4),?,?,(1,?)):(((8@0,2@0),0),((0,1/2@0),1@1),1@2,4@1,(0,1@3))">, !cute.coord<"?">) -> !cute.coord_tensor<"(0,0,0,0)", "((((32,4),1),(16,4)),1,4,?,?,(1,?)):((((8@0,2@0),0),(0,1/2@0)),0,1@1,1@2,4@1,(0,1@3))">
      %tile_119 = cute.make_tile() : () -> !cute.tile<"[256:1;256:1]">
      %coord_120 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_121 = cute.local_tile(%arg8, %tile_119, %coord_120) : (!cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, !cute.tile<"[256:1;256:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0,0)", "(((32,4),2),((16,4),4),?,?,(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),2@2,4@1,(0,1@3))">
      %coord_122 = cute.make_coord(%1078) : (i32) -> !cute.coord<"?">
      %ptn_B_123 = cute.tiled.mma.partition B (%arg14, %tiled_view_121, %coord_122) : (!mma_1, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),2),((16,4),4),?,?,(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),2@2,4@1,(0,1@3))">, !cute.coord<"?">) -> !cute.coord_tensor<"(0,0,0,0)", "((((32,4),2),(16,4)),1,4,?,?,(1,?)):((((8@0,2@0),1@2),(0,1/2@0)),0,1@1,2@2,4@1,(0,1@3))">
      %tile_124 = cute.make_tile() : () -> !cute.tile<"[256:1;256:1]">
      %coord_125 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_126 = cute.local_tile(%arg9, %tile_124, %coord_125) : (!memref_gmem_f16_, !cute.tile<"[256:1;256:1]">, !cute.coord<"(_,_,_)">) -> !memref_gmem_f16_1
      %coord_127 = cute.make_coord(%1078) : (i32) -> !cute.coord<"?">
      %ptn_C_128 = cute.tiled.mma.partition C (%arg0, %tiled_view_126, %coord_127) : (!mma_, !memref_gmem_f16_1, !cute.coord<"?">) -> !memref_gmem_f16_2
      %shape_129 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_130 = cute.make_layout(%shape_129) : !cute.layout<"1:0">
      %grouped_131 = cute.group_modes(%view_57) <0, 3> : (!memref_smem_f4E2M1FN_) -> !memref_smem_f4E2M1FN_1
      %grouped_132 = cute.group_modes(%ptn_A_108) <0, 3> : (!cute.coord_tensor<"(0,0,0)", "((128,64),1,4,?,?,?):((1@1,1@0),0,64@0,256@1,256@0,1@2)">) -> !cute.coord_tensor<"(0,0,0)", "(((128,64),1,4),?,?,?):(((1@1,1@0),0,64@0),256@1,256@0,1@2)">
      %coord_133 = cute.make_coord() : () -> !cute.coord<"0">
      %res_smem_tensor_134, %res_target_tensors_135 = cute_nvgpu.atom.tma_partition(%arg1, %coord_133, %lay_130, %grouped_131, %grouped_132) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord<"0">, !cute.layout<"1:0">, !memref_smem_f4E2M1FN_1, !cute.coord_tensor<"(0,0,0)", "(((128,64),1,4),?,?,?):(((1@1,1@0),0,64@0),256@1,256@0,1@2)">) -> (!memref_smem_f4E2M1FN_2, !cute.coord_tensor<"(0,0,0)", "(((256,128),1),?,?,?):(((1@0,1@1),0),256@1,256@0,1@2)">)
      %shape_136 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_137 = cute.make_layout(%shape_136) : !cute.layout<"1:0">
      %grouped_138 = cute.group_modes(%view_62) <0, 3> : (!memref_smem_f4E2M1FN_) -> !memref_smem_f4E2M1FN_1
      %grouped_139 = cute.group_modes(%ptn_B_113) <0, 3> : (!cute.coord_tensor<"(0,0,0)", "((128,64),1,4,?,?,?):((1@1,1@0),0,64@0,256@1,256@0,1@2)">) -> !cute.coord_tensor<"(0,0,0)", "(((128,64),1,4),?,?,?):(((1@1,1@0),0,64@0),256@1,256@0,1@2)">
      %coord_140 = cute.make_coord() : () -> !cute.coord<"0">
      %res_smem_tensor_141, %res_target_tensors_142 = cute_nvgpu.atom.tma_partition(%arg3, %coord_140, %lay_137, %grouped_138, %grouped_139) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord<"0">, !cute.layout<"1:0">, !memref_smem_f4E2M1FN_1, !cute.coord_tensor<"(0,0,0)", "(((128,64),1,4),?,?,?):(((1@1,1@0),0,64@0),256@1,256@0,1@2)">) -> (!memref_smem_f4E2M1FN_2, !cute.coord_tensor<"(0,0,0)", "(((256,128),1),?,?,?):(((1@0,1@1),0),256@1,256@0,1@2)">)
      %shape_143 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_144 = cute.make_layout(%shape_143) : !cute.layout<"1:0">
      %grouped_145 = cute.group_modes(%view_66) <0, 3> : (!memref_smem_f8E4M3FN_) -> !memref_smem_f8E4M3FN_1
      %grouped_146 = cute.group_modes(%ptn_A_118) <0, 3> : (!cute.coord_tensor<"(0,0,0,0)", "((((32,4),1),(16,4)),1,4,?,?,(1,?)):((((8@0,2@0),0),(0,1/2@0)),0,1@1,1@2,4@1,(0,1@3))">) -> !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),1),(16,4)),1,4),?,?,(1,?)):(((((8@0,2@0),0),(0,1/2@0)),0,1@1),1@2,4@1,(0,1@3))">
      %coord_147 = cute.make_coord() : () -> !cute.coord<"0">
      %res_smem_tensor_148, %res_target_tensors_149 = cute_nvgpu.atom.tma_partition(%arg5, %coord_147, %lay_144, %grouped_145, %grouped_146) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord<"0">, !cute.layout<"1:0">, !memref_smem_f8E4M3FN_1, !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),1),(16,4)),1,4),?,?,(1,?)):(((((8@0,2@0),0),(0,1/2@0)),0,1@1),1@2,4@1,(0,1@3))">) -> (!memref_smem_f8E4M3FN_2, !cute.coord_tensor<"(0,0,0,0)", "(((512,4),16),?,?,(1,?)):(((1/2@0,1@1),0),1@2,4@1,(0,1@3))">)
      %filtered_150 = cute.filter_zeros(%res_smem_tensor_148) : !memref_smem_f8E4M3FN_2
      %filtered_151 = cute.filter_zeros(%res_target_tensors_149) : !cute.coord_tensor<"(0,0,0,0)", "(((512,4),16),?,?,(1,?)):(((1/2@0,1@1),0),1@2,4@1,(0,1@3))">
      %shape_152 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_153 = cute.make_layout(%shape_152) : !cute.layout<"1:0">
      %grouped_154 = cute.group_modes(%view_70) <0, 3> : (!memref_smem_f8E4M3FN_7) -> !memref_smem_f8E4M3FN_8
      %grouped_155 = cute.group_modes(%ptn_B_123) <0, 3> : (!cute.coord_tensor<"(0,0,0,0)", "((((32,4),2),(16,4)),1,4,?,?,(1,?)):((((8@0,2@0),1@2),(0,1/2@0)),0,1@1,2@2,4@1,(0,1@3))">) -> !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),2),(16,4)),1,4),?,?,(1,?)):(((((8@0,2@0),1@2),(0,1/2@0)),0,1@1),2@2,4@1,(0,1@3))">
      %1156 = cute.static : !cute.layout<"2:1">
      %coord_157 = cute.make_coord(%1081) : (i32) -> !cute.coord<"?">
      %res_smem_tensor_158, %res_target_tensors_159 = cute_nvgpu.atom.tma_partition(%arg7, %coord_157, %1156, %grouped_154, %grouped_155) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm_multicast, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord<"?">, !cute.layout<"2:1">, !memref_smem_f8E4M3FN_8, !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),2),(16,4)),1,4),?,?,(1,?)):(((((8@0,2@0),1@2),(0,1/2@0)),0,1@1),2@2,4@1,(0,1@3))">) -> (!memref_smem_f8E4M3FN_9, !cute.coord_tensor<"(0,0,0,0)", "(((512,4),16),?,?,(1,?)):(((1/2@0,1@1),0),2@2,4@1,(0,1@3))">)
      %filtered_160 = cute.filter_zeros(%res_smem_tensor_158) : !memref_smem_f8E4M3FN_9
      %filtered_161 = cute.filter_zeros(%res_target_tensors_159) : !cute.coord_tensor<"(0,0,0,0)", "(((512,4),16),?,?,(1,?)):(((1/2@0,1@1),0),2@2,4@1,(0,1@3))">
      %frg_A_162 = cute.mma.make_fragment A (%arg0, %view_57) : (!mma_, !memref_smem_f4E2M1FN_) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">
      %frg_B_163 = cute.mma.make_fragment B (%arg0, %view_62) : (!mma_, !memref_smem_f4E2M1FN_) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">
      %shape_164 = cute.make_shape() : () -> !cute.shape<"(256,256)">
      %1165 = cute.tiled.mma.partition_shape C (%arg0, %shape_164) : (!mma_, !cute.shape<"(256,256)">) -> !cute.shape<"((128,256),1,1)">
      %shape_166 = cute.make_shape() : () -> !cute.shape<"((128,256),1,1)">
      %frg_C_167 = cute.mma.make_fragment C (%arg0, %shape_166) : (!mma_, !cute.shape<"((128,256),1,1)">) -> !memref_tmem_f32_
      %c512_i32_168 = arith.constant 512 : i32
      scf.if %1082 {
        cute_nvgpu.arch.sm100.alloc_tmem(%c512_i32_168, %iter_49) [ cta_2] : i32, !cute.ptr<i32, smem, align<8>>
      }
      %c1_i32_169 = arith.constant 1 : i32
      %c128_i32_170 = arith.constant 128 : i32
      nvvm.barrier id = %c1_i32_169 number_of_threads = %c128_i32_170
      %tmem_ptr_171 = cute_nvgpu.arch.sm100.retrieve_tmem_ptr(%iter_49) : !cute.ptr<i32, smem, align<8>> -> !cute.ptr<f32, tmem, align<16>>
      %lay_172 = cute.get_layout(%frg_C_167) : !memref_tmem_f32_
      %view_173 = cute.make_view(%tmem_ptr_171, %lay_172) : !memref_tmem_f32_1
      %lay_174 = cute.get_layout(%view_173) : !memref_tmem_f32_1
      %1175 = cute.recast_layout<32, 32> (%lay_174) : !cute.layout<"((128,256),1,1):((65536,1),0,0)"> to !cute.layout<"((128,256),1,1):((65536,1),0,0)">
      %cosz_176 = cute.cosize(%1175) : (!cute.layout<"((128,256),1,1):((65536,1),0,0)">) -> !cute.int_tuple<"8323328">
      %int_tuple_177 = cute.make_int_tuple() : () -> !cute.int_tuple<"256">
      %ptr_178 = cute.add_offset(%tmem_ptr_171, %int_tuple_177) : (!cute.ptr<f32, tmem, align<16>>, !cute.int_tuple<"256">) -> !cute.ptr<f32, tmem, align<16>>
      %iter_179 = cute.recast_iter(%ptr_178) : !cute.ptr<f32, tmem, align<16>> to !cute.ptr<f8E4M3FN, tmem, align<16>>
      %1180 = cute.static : !cute.layout<"((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)">
      %view_181 = cute.make_view(%iter_179, %1180) : !memref_tmem_f8E4M3FN_
      %lay_182 = cute.get_layout(%view_181) : !memref_tmem_f8E4M3FN_
      %1183 = cute.recast_layout<32, 8> (%lay_182) : !cute.layout<"((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)"> to !cute.layout<"((((32,4),4),(16,1)),1,4):((((65536,1),2097152),(0,1)),0,4)">
      %cosz_184 = cute.cosize(%1183) : (!cute.layout<"((((32,4),4),(16,1)),1,4):((((65536,1),2097152),(0,1)),0,4)">) -> !cute.int_tuple<"8323088">
      %int_tuple_185 = cute.make_int_tuple() : () -> !cute.int_tuple<"272">
      %ptr_186 = cute.add_offset(%tmem_ptr_171, %int_tuple_185) : (!cute.ptr<f32, tmem, align<16>>, !cute.int_tuple<"272">) -> !cute.ptr<f32, tmem, align<16>>
      %iter_187 = cute.recast_iter(%ptr_186) : !cute.ptr<f32, tmem, align<16>> to !cute.ptr<f8E4M3FN, tmem, align<16>>
      %1188 = cute.static : !cute.layout<"((((32,8),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,32)">
      %view_189 = cute.make_view(%iter_187, %1188) : !memref_tmem_f8E4M3FN_1
      %lay_190 = cute.get_layout(%view_189) : !memref_tmem_f8E4M3FN_1
      %1191 = cute.recast_layout<32, 8> (%lay_190) : !cute.layout<"((((32,8),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,32)"> to !cute.layout<"((((32,8),4),(16,1)),1,4):((((65536,1),2097152),(0,1)),0,8)">
      %cosz_192 = cute.cosize(%1191) : (!cute.layout<"((((32,8),4),(16,1)),1,4):((((65536,1),2097152),(0,1)),0,8)">) -> !cute.int_tuple<"8323104">
      %atom_193 = cute.make_atom() : () -> !cute_nvgpu.atom.s2t_copy<f8E4M3FN, 32 DP, 128 bit, 2 cta, x4>
      %filtered_194 = cute.filter_zeros(%view_66) : !memref_smem_f8E4M3FN_
      %filtered_195 = cute.filter_zeros(%view_181) : !memref_tmem_f8E4M3FN_
      %1196 = cute_nvgpu.atom.make_s2t_copy(%atom_193, %filtered_195) : (!cute_nvgpu.atom.s2t_copy<f8E4M3FN, 32 DP, 128 bit, 2 cta, x4>, !memref_tmem_f8E4M3FN_2) -> !copy_s2t_sfa_
      %coord_197 = cute.make_coord() : () -> !cute.coord<"0">
      %src_partitioned_198 = cute.tiled.copy.partition_S(%1196, %filtered_194, %coord_197) : (!copy_s2t_sfa_, !memref_smem_f8E4M3FN_11, !cute.coord<"0">) -> !memref_smem_f8E4M3FN_12
      %1199 = cute_nvgpu.atom.get_copy_s2t_smem_desc_view(%1196, %src_partitioned_198) : (!copy_s2t_sfa_, !memref_smem_f8E4M3FN_12) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,4,2):((((1,1,1),0),0),0,0,32,128)">
      %coord_200 = cute.make_coord() : () -> !cute.coord<"0">
      %dst_partitioned_201 = cute.tiled.copy.partition_D(%1196, %filtered_195, %coord_200) : (!copy_s2t_sfa_, !memref_tmem_f8E4M3FN_2, !cute.coord<"0">) -> !memref_tmem_f8E4M3FN_3
      %filtered_202 = cute.filter_zeros(%view_70) : !memref_smem_f8E4M3FN_7
      %filtered_203 = cute.filter_zeros(%view_189) : !memref_tmem_f8E4M3FN_1
      %1204 = cute_nvgpu.atom.make_s2t_copy(%atom_193, %filtered_203) : (!cute_nvgpu.atom.s2t_copy<f8E4M3FN, 32 DP, 128 bit, 2 cta, x4>, !memref_tmem_f8E4M3FN_5) -> !copy_s2t_sfb_
      %coord_205 = cute.make_coord() : () -> !cute.coord<"0">
      %src_partitioned_206 = cute.tiled.copy.partition_S(%1204, %filtered_202, %coord_205) : (!copy_s2t_sfb_, !memref_smem_f8E4M3FN_13, !cute.coord<"0">) -> !memref_smem_f8E4M3FN_14
      %1207 = cute_nvgpu.atom.get_copy_s2t_smem_desc_view(%1204, %src_partitioned_206) : (!copy_s2t_sfb_, !memref_smem_f8E4M3FN_14) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),2,1,4,2):((((1,1,1),0),0),128,0,32,256)">
      %coord_208 = cute.make_coord() : () -> !cute.coord<"0">
      %dst_partitioned_209 = cute.tiled.copy.partition_D(%1204, %filtered_203, %coord_208) : (!copy_s2t_sfb_, !memref_tmem_f8E4M3FN_5, !cute.coord<"0">) -> !memref_tmem_f8E4M3FN_6
      %coord_210 = cute.make_coord(%1079, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_211 = cute.slice(%res_target_tensors_135, %coord_210) : !cute.coord_tensor<"(0,0,0)", "(((256,128),1),?,?,?):(((1@0,1@1),0),256@1,256@0,1@2)">, !cute.coord<"(_,?,_,?)">
      %coord_212 = cute.make_coord(%1029, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_213 = cute.slice(%res_target_tensors_142, %coord_212) : !cute.coord_tensor<"(0,0,0)", "(((256,128),1),?,?,?):(((1@0,1@1),0),256@1,256@0,1@2)">, !cute.coord<"(_,?,_,?)">
      %coord_214 = cute.make_coord(%1079, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_215 = cute.slice(%filtered_151, %coord_214) : !cute.coord_tensor<"(0,0,0,0)", "(((512,4),1),?,?,(1,?)):(((1/2@0,1@1),0),1@2,4@1,(0,1@3))">, !cute.coord<"(_,?,_,?)">
      %coord_216 = cute.make_coord(%1029, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_217 = cute.slice(%filtered_161, %coord_216) : !cute.coord_tensor<"(0,0,0,0)", "(((512,4),1),?,?,(1,?)):(((1/2@0,1@1),0),2@2,4@1,(0,1@3))">, !cute.coord<"(_,?,_,?)">
      %1218:2 = scf.if %1082 -> (i32, i32) {
        scf.if %1080 {
          %1219 = builtin.unrealized_conversion_cast %ptr_74 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
          %c10000000_i32_220 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %1219, %c1_i32_76, %c10000000_i32_220 : !llvm.ptr<3>, i32, i32
        }
        %false_221 = arith.constant false
        %1222 = cute_nvgpu.atom.set_value<accum_c>(%arg0, %false_221) : (!mma_, i1)
        %c0_i32_223 = arith.constant 0 : i32
        %c1_i32_224 = arith.constant 1 : i32
        %1225:3 = scf.for %arg20 = %c0_i32_223 to %1106 step %c1_i32_224 iter_args(%arg21 = %c0_i32_223, %arg22 = %c0_i32_223, %arg23 = %1222) -> (i32, i32, !mma_)  : i32 {
          %c1_i32_226 = arith.constant 1 : i32
          %1227 = arith.xori %arg22, %c1_i32_226 : i32
          %int_tuple_228 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_229 = cute.add_offset(%ptr_72, %int_tuple_228) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %1230 = builtin.unrealized_conversion_cast %ptr_229 : !cute.ptr<i64, smem> to !llvm.ptr<3>
          %c10000000_i32_231 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %1230, %1227, %c10000000_i32_231 : !llvm.ptr<3>, i32, i32
          scf.if %1080 {
            %1232 = nvvm.elect.sync -> i1
            scf.if %1232 {
              %int_tuple_233 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
              %ptr_234 = cute.add_offset(%iter_43, %int_tuple_233) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              %1235 = builtin.unrealized_conversion_cast %ptr_234 : !cute.ptr<i64, smem> to !llvm.ptr<3>
              %c77824_i32_236 = arith.constant 77824 : i32
              %tx = nvvm.mbarrier.arrive.expect_tx %1235, %c77824_i32_236 : !llvm.ptr<3>, i32 -> i64
            }
          }
          %coord_237 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_238 = cute.slice(%slice_211, %coord_237) : !cute.coord_tensor<"(0,?{div=128},?)", "(((256,128),1),?):(((1@0,1@1),0),256@0)">, !cute.coord<"(_,?)">
          %coord_239 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_240 = cute.slice(%res_smem_tensor_134, %coord_239) : !memref_smem_f4E2M1FN_2, !cute.coord<"(_,?)">
          %iter_241 = cute.get_iter(%slice_238) : !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1)):(((1@0,1@1),0))">
          %tup_242 = cute.deref_arith_tuple_iter(%iter_241) : !cute.arith_tuple_iter<"(?{div=256},?{div=128},?)">
          %e0_243, %e1_244, %e2_245 = cute.get_leaves(%tup_242) : !cute.int_tuple<"(?{div=256},?{div=128},?)">
          %int_tuple_246 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_247 = cute.add_offset(%iter_43, %int_tuple_246) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_248 = cute.get_layout(%slice_238) : !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1)):(((1@0,1@1),0))">
          %shape_249 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_250 = cute.make_layout(%shape_249) : !cute.layout<"1:0">
          %append_251 = cute.append_to_rank<2> (%lay_248, %lay_250) : !cute.layout<"(((256,128),1)):(((1@0,1@1),0))">, !cute.layout<"1:0">
          %int_tuple_252 = cute.make_int_tuple(%e0_243, %e1_244, %e2_245) : (!cute.int_tuple<"?{div=256}">, !cute.int_tuple<"?{div=128}">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(?{div=256},?{div=128},?)">
          %int_tup_iter_253 = cute.make_arith_tuple_iter(%int_tuple_252) : (!cute.int_tuple<"(?{div=256},?{div=128},?)">) -> !cute.arith_tuple_iter<"(?{div=256},?{div=128},?)">
          %view_254 = cute.make_view(%int_tup_iter_253, %append_251) : !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),1):(((1@0,1@1),0),0)">
          %grouped_255 = cute.group_modes(%view_254) <1, 2> : (!cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),1):(((1@0,1@1),0),0)">) -> !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),(1)):(((1@0,1@1),0),(0))">
          %iter_256 = cute.get_iter(%slice_240) : !memref_smem_f4E2M1FN_3
          %lay_257 = cute.get_layout(%slice_240) : !memref_smem_f4E2M1FN_3
          %shape_258 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_259 = cute.make_layout(%shape_258) : !cute.layout<"1:0">
          %append_260 = cute.append_to_rank<2> (%lay_257, %lay_259) : !cute.layout<"((32768,1)):((1,0))">, !cute.layout<"1:0">
          %view_261 = cute.make_view(%iter_256, %append_260) : !memref_smem_f4E2M1FN_4
          %grouped_262 = cute.group_modes(%view_261) <1, 2> : (!memref_smem_f4E2M1FN_4) -> !memref_smem_f4E2M1FN_5
          %1263 = cute_nvgpu.atom.make_exec_tma(%arg1) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>) -> !cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 131072, mode = tiled, num_cta = 2, g_stride = <"()"> tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">>
          %1264 = cute_nvgpu.atom.set_value<tma_bar>(%1263, %ptr_247) : (!cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 131072, mode = tiled, num_cta = 2, g_stride = <"()"> tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">>, !cute.ptr<i64, smem>)
          cute.copy(%1264, %grouped_255, %grouped_262) : (!cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 131072, mode = tiled, num_cta = 2, g_stride = <"()"> tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">>, !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),(1)):(((1@0,1@1),0),(0))">, !memref_smem_f4E2M1FN_5)
          %coord_265 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_266 = cute.slice(%slice_213, %coord_265) : !cute.coord_tensor<"(0,?{div=128},?)", "(((256,128),1),?):(((1@0,1@1),0),256@0)">, !cute.coord<"(_,?)">
          %coord_267 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_268 = cute.slice(%res_smem_tensor_141, %coord_267) : !memref_smem_f4E2M1FN_2, !cute.coord<"(_,?)">
          %iter_269 = cute.get_iter(%slice_266) : !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1)):(((1@0,1@1),0))">
          %tup_270 = cute.deref_arith_tuple_iter(%iter_269) : !cute.arith_tuple_iter<"(?{div=256},?{div=128},?)">
          %e0_271, %e1_272, %e2_273 = cute.get_leaves(%tup_270) : !cute.int_tuple<"(?{div=256},?{div=128},?)">
          %int_tuple_274 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_275 = cute.add_offset(%iter_43, %int_tuple_274) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_276 = cute.get_layout(%slice_266) : !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1)):(((1@0,1@1),0))">
          %shape_277 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_278 = cute.make_layout(%shape_277) : !cute.layout<"1:0">
          %append_279 = cute.append_to_rank<2> (%lay_276, %lay_278) : !cute.layout<"(((256,128),1)):(((1@0,1@1),0))">, !cute.layout<"1:0">
          %int_tuple_280 = cute.make_int_tuple(%e0_271, %e1_272, %e2_273) : (!cute.int_tuple<"?{div=256}">, !cute.int_tuple<"?{div=128}">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(?{div=256},?{div=128},?)">
          %int_tup_iter_281 = cute.make_arith_tuple_iter(%int_tuple_280) : (!cute.int_tuple<"(?{div=256},?{div=128},?)">) -> !cute.arith_tuple_iter<"(?{div=256},?{div=128},?)">
          %view_282 = cute.make_view(%int_tup_iter_281, %append_279) : !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),1):(((1@0,1@1),0),0)">
          %grouped_283 = cute.group_modes(%view_282) <1, 2> : (!cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),1):(((1@0,1@1),0),0)">) -> !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),(1)):(((1@0,1@1),0),(0))">
          %iter_284 = cute.get_iter(%slice_268) : !memref_smem_f4E2M1FN_3
          %lay_285 = cute.get_layout(%slice_268) : !memref_smem_f4E2M1FN_3
          %shape_286 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_287 = cute.make_layout(%shape_286) : !cute.layout<"1:0">
          %append_288 = cute.append_to_rank<2> (%lay_285, %lay_287) : !cute.layout<"((32768,1)):((1,0))">, !cute.layout<"1:0">
          %view_289 = cute.make_view(%iter_284, %append_288) : !memref_smem_f4E2M1FN_4
          %grouped_290 = cute.group_modes(%view_289) <1, 2> : (!memref_smem_f4E2M1FN_4) -> !memref_smem_f4E2M1FN_5
          %1291 = cute_nvgpu.atom.make_exec_tma(%arg3) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>) -> !cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 131072, mode = tiled, num_cta = 2, g_stride = <"()"> tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">>
          %1292 = cute_nvgpu.atom.set_value<tma_bar>(%1291, %ptr_275) : (!cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 131072, mode = tiled, num_cta = 2, g_stride = <"()"> tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">>, !cute.ptr<i64, smem>)
          cute.copy(%1292, %grouped_283, %grouped_290) : (!cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 131072, mode = tiled, num_cta = 2, g_stride = <"()"> tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">>, !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),(1)):(((1@0,1@1),0),(0))">, !memref_smem_f4E2M1FN_5)
          %coord_293 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_294 = cute.slice(%slice_215, %coord_293) : !cute.coord_tensor<"(0,0,?,?)", "(((512,4),1),?):(((1/2@0,1@1),0),4@1)">, !cute.coord<"(_,?)">
          %coord_295 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_296 = cute.slice(%filtered_150, %coord_295) : !memref_smem_f8E4M3FN_3, !cute.coord<"(_,?)">
          %iter_297 = cute.get_iter(%slice_294) : !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1)):(((1/2@0,1@1),0))">
          %tup_298 = cute.deref_arith_tuple_iter(%iter_297) : !cute.arith_tuple_iter<"(0,?{div=4},?,?)">
          %e0_299, %e1_300, %e2_301, %e3_302 = cute.get_leaves(%tup_298) : !cute.int_tuple<"(0,?{div=4},?,?)">
          %int_tuple_303 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_304 = cute.add_offset(%iter_43, %int_tuple_303) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_305 = cute.get_layout(%slice_294) : !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1)):(((1/2@0,1@1),0))">
          %shape_306 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_307 = cute.make_layout(%shape_306) : !cute.layout<"1:0">
          %append_308 = cute.append_to_rank<2> (%lay_305, %lay_307) : !cute.layout<"(((512,4),1)):(((1/2@0,1@1),0))">, !cute.layout<"1:0">
          %int_tuple_309 = cute.make_int_tuple(%e1_300, %e2_301, %e3_302) : (!cute.int_tuple<"?{div=4}">, !cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(0,?{div=4},?,?)">
          %int_tup_iter_310 = cute.make_arith_tuple_iter(%int_tuple_309) : (!cute.int_tuple<"(0,?{div=4},?,?)">) -> !cute.arith_tuple_iter<"(0,?{div=4},?,?)">
          %view_311 = cute.make_view(%int_tup_iter_310, %append_308) : !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),1):(((1/2@0,1@1),0),0)">
          %grouped_312 = cute.group_modes(%view_311) <1, 2> : (!cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),1):(((1/2@0,1@1),0),0)">) -> !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),(1)):(((1/2@0,1@1),0),(0))">
          %iter_313 = cute.get_iter(%slice_296) : !memref_smem_f8E4M3FN_4
          %lay_314 = cute.get_layout(%slice_296) : !memref_smem_f8E4M3FN_4
          %shape_315 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_316 = cute.make_layout(%shape_315) : !cute.layout<"1:0">
          %append_317 = cute.append_to_rank<2> (%lay_314, %lay_316) : !cute.layout<"((2048,1)):((1,0))">, !cute.layout<"1:0">
          %view_318 = cute.make_view(%iter_313, %append_317) : !memref_smem_f8E4M3FN_5
          %grouped_319 = cute.group_modes(%view_318) <1, 2> : (!memref_smem_f8E4M3FN_5) -> !memref_smem_f8E4M3FN_6
          %1320 = cute_nvgpu.atom.make_exec_tma(%arg5) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>) -> !cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 16384, mode = tiled, num_cta = 2, g_stride = <"()"> tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>
          %1321 = cute_nvgpu.atom.set_value<tma_bar>(%1320, %ptr_304) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 16384, mode = tiled, num_cta = 2, g_stride = <"()"> tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>, !cute.ptr<i64, smem>)
          cute.copy(%1321, %grouped_312, %grouped_319) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 16384, mode = tiled, num_cta = 2, g_stride = <"()"> tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>, !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),(1)):(((1/2@0,1@1),0),(0))">, !memref_smem_f8E4M3FN_6)
          %coord_322 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_323 = cute.slice(%slice_217, %coord_322) : !cute.coord_tensor<"(0,0,?,?)", "(((512,4),1),?):(((1/2@0,1@1),0),4@1)">, !cute.coord<"(_,?)">
          %coord_324 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_325 = cute.slice(%filtered_160, %coord_324) : !memref_smem_f8E4M3FN_10, !cute.coord<"(_,?)">
          %iter_326 = cute.get_iter(%slice_323) : !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1)):(((1/2@0,1@1),0))">
          %tup_327 = cute.deref_arith_tuple_iter(%iter_326) : !cute.arith_tuple_iter<"(0,?{div=4},?,?)">
          %e0_328, %e1_329, %e2_330, %e3_331 = cute.get_leaves(%tup_327) : !cute.int_tuple<"(0,?{div=4},?,?)">
          %int_tuple_332 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_333 = cute.add_offset(%iter_43, %int_tuple_332) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_334 = cute.get_layout(%slice_323) : !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1)):(((1/2@0,1@1),0))">
          %shape_335 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_336 = cute.make_layout(%shape_335) : !cute.layout<"1:0">
          %append_337 = cute.append_to_rank<2> (%lay_334, %lay_336) : !cute.layout<"(((512,4),1)):(((1/2@0,1@1),0))">, !cute.layout<"1:0">
          %int_tuple_338 = cute.make_int_tuple(%e1_329, %e2_330, %e3_331) : (!cute.int_tuple<"?{div=4}">, !cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(0,?{div=4},?,?)">
          %int_tup_iter_339 = cute.make_arith_tuple_iter(%int_tuple_338) : (!cute.int_tuple<"(0,?{div=4},?,?)">) -> !cute.arith_tuple_iter<"(0,?{div=4},?,?)">
          %view_340 = cute.make_view(%int_tup_iter_339, %append_337) : !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),1):(((1/2@0,1@1),0),0)">
          %grouped_341 = cute.group_modes(%view_340) <1, 2> : (!cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),1):(((1/2@0,1@1),0),0)">) -> !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),(1)):(((1/2@0,1@1),0),(0))">
          %iter_342 = cute.get_iter(%slice_325) : !memref_smem_f8E4M3FN_4
          %lay_343 = cute.get_layout(%slice_325) : !memref_smem_f8E4M3FN_4
          %shape_344 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_345 = cute.make_layout(%shape_344) : !cute.layout<"1:0">
          %append_346 = cute.append_to_rank<2> (%lay_343, %lay_345) : !cute.layout<"((2048,1)):((1,0))">, !cute.layout<"1:0">
          %view_347 = cute.make_view(%iter_342, %append_346) : !memref_smem_f8E4M3FN_5
          %grouped_348 = cute.group_modes(%view_347) <1, 2> : (!memref_smem_f8E4M3FN_5) -> !memref_smem_f8E4M3FN_6
          %1349 = cute_nvgpu.atom.make_exec_tma(%arg7) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm_multicast, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>) -> !cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 16384, mode = tiled, num_cta = 2, g_stride = <"()"> mcast = true tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>
          %1350 = cute_nvgpu.atom.set_value<tma_bar>(%1349, %ptr_333) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 16384, mode = tiled, num_cta = 2, g_stride = <"()"> mcast = true tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>, !cute.ptr<i64, smem>)
          %c3_i16_351 = arith.constant 3 : i16
          %1352 = cute_nvgpu.atom.set_value<mcast_mask>(%1350, %c3_i16_351) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 16384, mode = tiled, num_cta = 2, g_stride = <"()"> mcast = true tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>, i16)
          cute.copy(%1352, %grouped_341, %grouped_348) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 16384, mode = tiled, num_cta = 2, g_stride = <"()"> mcast = true tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>, !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),(1)):(((1/2@0,1@1),0),(0))">, !memref_smem_f8E4M3FN_6)
          %1353 = scf.if %1080 -> (!mma_) {
            %int_tuple_354 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
            %ptr_355 = cute.add_offset(%iter_43, %int_tuple_354) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            %1356 = builtin.unrealized_conversion_cast %ptr_355 : !cute.ptr<i64, smem> to !llvm.ptr<3>
            %c10000000_i32_357 = arith.constant 10000000 : i32
            nvvm.mbarrier.try_wait.parity %1356, %arg22, %c10000000_i32_357 : !llvm.ptr<3>, i32, i32
            %coord_358 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,_,_,?)">
            %slice_359 = cute.slice(%1199, %coord_358) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,4,2):((((1,1,1),0),0),0,0,32,128)">, !cute.coord<"(_,_,_,_,?)">
            %grouped_360 = cute.group_modes(%slice_359) <1, 4> : (!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,4):((((1,1,1),0),0),0,0,32)">) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(1,1,4)):((((1,1,1),0),0),(0,0,32))">
            %grouped_361 = cute.group_modes(%dst_partitioned_201) <1, 4> : (!memref_tmem_f8E4M3FN_3) -> !memref_tmem_f8E4M3FN_4
            cute.copy(%1196, %grouped_360, %grouped_361) : (!copy_s2t_sfa_, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(1,1,4)):((((1,1,1),0),0),(0,0,32))">, !memref_tmem_f8E4M3FN_4)
            %coord_362 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,_,_,?)">
            %slice_363 = cute.slice(%1207, %coord_362) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),2,1,4,2):((((1,1,1),0),0),128,0,32,256)">, !cute.coord<"(_,_,_,_,?)">
            %grouped_364 = cute.group_modes(%slice_363) <1, 4> : (!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),2,1,4):((((1,1,1),0),0),128,0,32)">) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(2,1,4)):((((1,1,1),0),0),(128,0,32))">
            %grouped_365 = cute.group_modes(%dst_partitioned_209) <1, 4> : (!memref_tmem_f8E4M3FN_6) -> !memref_tmem_f8E4M3FN_7
            cute.copy(%1204, %grouped_364, %grouped_365) : (!copy_s2t_sfb_, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(2,1,4)):((((1,1,1),0),0),(128,0,32))">, !memref_tmem_f8E4M3FN_7)
            %coord_366 = cute.make_coord() : () -> !cute.coord<"(_,_,0)">
            %slice_367 = cute.slice(%view_181, %coord_366) : !memref_tmem_f8E4M3FN_, !cute.coord<"(_,_,0)">
            %iter_368 = cute.get_iter(%slice_367) : !memref_tmem_f8E4M3FN_8
            %1369 = cute_nvgpu.atom.set_value<sf_a>(%arg23, %iter_368) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
            %coord_370 = cute.make_coord() : () -> !cute.coord<"(_,_,0)">
            %slice_371 = cute.slice(%view_189, %coord_370) : !memref_tmem_f8E4M3FN_1, !cute.coord<"(_,_,0)">
            %iter_372 = cute.get_iter(%slice_371) : !memref_tmem_f8E4M3FN_9
            %1373 = cute_nvgpu.atom.set_value<sf_b>(%1369, %iter_372) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
            %coord_374 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,0,?)">
            %slice_375 = cute.slice(%frg_A_162, %coord_374) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,0,?)">
            %coord_376 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,0,?)">
            %slice_377 = cute.slice(%frg_B_163, %coord_376) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,0,?)">
            cute.gemm(%1373, %view_173, %slice_375, %slice_377, %view_173) : (!mma_, !memref_tmem_f32_1, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !memref_tmem_f32_1)
            %true_378 = arith.constant true
            %1379 = cute_nvgpu.atom.set_value<accum_c>(%1373, %true_378) : (!mma_, i1)
            %coord_380 = cute.make_coord() : () -> !cute.coord<"(_,_,1)">
            %slice_381 = cute.slice(%view_181, %coord_380) : !memref_tmem_f8E4M3FN_, !cute.coord<"(_,_,1)">
            %iter_382 = cute.get_iter(%slice_381) : !memref_tmem_f8E4M3FN_8
            %1383 = cute_nvgpu.atom.set_value<sf_a>(%1379, %iter_382) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
            %coord_384 = cute.make_coord() : () -> !cute.coord<"(_,_,1)">
            %slice_385 = cute.slice(%view_189, %coord_384) : !memref_tmem_f8E4M3FN_1, !cute.coord<"(_,_,1)">
            %iter_386 = cute.get_iter(%slice_385) : !memref_tmem_f8E4M3FN_9
            %1387 = cute_nvgpu.atom.set_value<sf_b>(%1383, %iter_386) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
            %coord_388 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,1,?)">
            %slice_389 = cute.slice(%frg_A_162, %coord_388) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,1,?)">
            %coord_390 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,1,?)">
            %slice_391 = cute.slice(%frg_B_163, %coord_390) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,1,?)">
            cute.gemm(%1387, %view_173, %slice_389, %slice_391, %view_173) : (!mma_, !memref_tmem_f32_1, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !memref_tmem_f32_1)
            %true_392 = arith.constant true
            %1393 = cute_nvgpu.atom.set_value<accum_c>(%1387, %true_392) : (!mma_, i1)
            %coord_394 = cute.make_coord() : () -> !cute.coord<"(_,_,2)">
            %slice_395 = cute.slice(%view_181, %coord_394) : !memref_tmem_f8E4M3FN_, !cute.coord<"(_,_,2)">
            %iter_396 = cute.get_iter(%slice_395) : !memref_tmem_f8E4M3FN_8
            %1397 = cute_nvgpu.atom.set_value<sf_a>(%1393, %iter_396) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
            %coord_398 = cute.make_coord() : () -> !cute.coord<"(_,_,2)">
            %slice_399 = cute.slice(%view_189, %coord_398) : !memref_tmem_f8E4M3FN_1, !cute.coord<"(_,_,2)">
            %iter_400 = cute.get_iter(%slice_399) : !memref_tmem_f8E4M3FN_9
            %1401 = cute_nvgpu.atom.set_value<sf_b>(%1397, %iter_400) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
            %coord_402 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,2,?)">
            %slice_403 = cute.slice(%frg_A_162, %coord_402) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,2,?)">
            %coord_404 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,2,?)">
            %slice_405 = cute.slice(%frg_B_163, %coord_404) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,2,?)">
            cute.gemm(%1401, %view_173, %slice_403, %slice_405, %view_173) : (!mma_, !memref_tmem_f32_1, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !memref_tmem_f32_1)
            %true_406 = arith.constant true
            %1407 = cute_nvgpu.atom.set_value<accum_c>(%1401, %true_406) : (!mma_, i1)
            %coord_408 = cute.make_coord() : () -> !cute.coord<"(_,_,3)">
            %slice_409 = cute.slice(%view_181, %coord_408) : !memref_tmem_f8E4M3FN_, !cute.coord<"(_,_,3)">
            %iter_410 = cute.get_iter(%slice_409) : !memref_tmem_f8E4M3FN_8
            %1411 = cute_nvgpu.atom.set_value<sf_a>(%1407, %iter_410) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
            %coord_412 = cute.make_coord() : () -> !cute.coord<"(_,_,3)">
            %slice_413 = cute.slice(%view_189, %coord_412) : !memref_tmem_f8E4M3FN_1, !cute.coord<"(_,_,3)">
            %iter_414 = cute.get_iter(%slice_413) : !memref_tmem_f8E4M3FN_9
            %1415 = cute_nvgpu.atom.set_value<sf_b>(%1411, %iter_414) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
            %coord_416 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,3,?)">
            %slice_417 = cute.slice(%frg_A_162, %coord_416) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,3,?)">
            %coord_418 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,3,?)">
            %slice_419 = cute.slice(%frg_B_163, %coord_418) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,3,?)">
            cute.gemm(%1415, %view_173, %slice_417, %slice_419, %view_173) : (!mma_, !memref_tmem_f32_1, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !memref_tmem_f32_1)
            %true_420 = arith.constant true
            %1421 = cute_nvgpu.atom.set_value<accum_c>(%1415, %true_420) : (!mma_, i1)
            %c3_i16_422 = arith.constant 3 : i16
            %1423 = nvvm.elect.sync -> i1
            scf.if %1423 {
              %int_tuple_424 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
              %ptr_425 = cute.add_offset(%ptr_72, %int_tuple_424) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
              %1426 = builtin.unrealized_conversion_cast %ptr_425 : !cute.ptr<i64, smem> to !llvm.ptr<3>
              nvvm.tcgen05.commit %1426, multicast_mask = %c3_i16_422 {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>, i16
            }
            scf.yield %1421 : !mma_
          } else {
            scf.yield %arg23 : !mma_
          }
          %1427 = arith.addi %arg21, %c1_i32_226 : i32
          %c2_i32_428 = arith.constant 2 : i32
          %1429 = arith.cmpi eq, %1427, %c2_i32_428 : i32
          %1430:2 = scf.if %1429 -> (i32, i32) {
            %1431 = arith.xori %arg22, %c1_i32_226 : i32
            %c0_i32_432 = arith.constant 0 : i32
            scf.yield %c0_i32_432, %1431 : i32, i32
          } else {
            scf.yield %1427, %arg22 : i32, i32
          }
          scf.yield %1430#0, %1430#1, %1353 : i32, i32, !mma_
        }
        scf.if %1080 {
          %c3_i16_433 = arith.constant 3 : i16
          %1434 = nvvm.elect.sync -> i1
          scf.if %1434 {
            %1435 = builtin.unrealized_conversion_cast %iter_46 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
            nvvm.tcgen05.commit %1435, multicast_mask = %c3_i16_433 {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>, i16
          }
        }
        scf.yield %1225#0, %1225#1 : i32, i32
      } else {
        scf.yield %c0_i32_75, %c1_i32_76 : i32, i32
      }
      %atom_436 = cute.make_atom() : () -> !cute_nvgpu.atom.tmem_load<f32, 32 DP, 32 bit, x128>
      %1437 = cute_nvgpu.atom.make_tmem_copy(%atom_436, %view_173) : (!cute_nvgpu.atom.tmem_load<f32, 32 DP, 32 bit, x128>, !memref_tmem_f32_1) -> !copy_ldtm_32_
      %coord_438 = cute.make_coord(%1023) : (i32) -> !cute.coord<"?">
      %src_partitioned_439 = cute.tiled.copy.partition_S(%1437, %view_173, %coord_438) : (!copy_ldtm_32_, !memref_tmem_f32_1, !cute.coord<"?">) -> !memref_tmem_f32_2
      %coord_440 = cute.make_coord(%1023) : (i32) -> !cute.coord<"?">
      %dst_partitioned_441 = cute.tiled.copy.partition_D(%1437, %ptn_C_128, %coord_440) : (!copy_ldtm_32_, !memref_gmem_f16_2, !cute.coord<"?">) -> !memref_gmem_f16_3
      %shape_442 = cute.make_shape() : () -> !cute.shape<"((128,1),2,1,1)">
      %lay_443 = cute.make_layout(%shape_442) : !cute.layout<"((128,1),2,1,1):((1,0),128,0,0)">
      %rmem_444 = cute.memref.alloca(%lay_443) : !memref_rmem_f32_
      %shape_445 = cute.make_shape() : () -> !cute.shape<"((128,1),2,1,1)">
      %lay_446 = cute.make_layout(%shape_445) : !cute.layout<"((128,1),2,1,1):((1,0),128,0,0)">
      %rmem_447 = cute.memref.alloca(%lay_446) : !memref_rmem_f16_
      %atom_448 = cute.make_atom() : () -> !cute_nvgpu.atom.universal_copy<f16>
      %coord_449 = cute.make_coord(%1079, %1029, %1030) : (i32, i32, i32) -> !cute.coord<"(_,_,_,_,?,?,?)">
      %slice_450 = cute.slice(%dst_partitioned_441, %coord_449) : !memref_gmem_f16_3, !cute.coord<"(_,_,_,_,?,?,?)">
      scf.if %1082 {
        cute_nvgpu.arch.sm100.relinquish_tmem_alloc_permit [ cta_2]
      }
      %c0_i32_451 = arith.constant 0 : i32
      %1452 = builtin.unrealized_conversion_cast %iter_46 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
      %c10000000_i32_453 = arith.constant 10000000 : i32
      nvvm.mbarrier.try_wait.parity %1452, %c0_i32_451, %c10000000_i32_453 : !llvm.ptr<3>, i32, i32
      %grouped_454 = cute.group_modes(%src_partitioned_439) <1, 4> : (!memref_tmem_f32_2) -> !memref_tmem_f32_3
      %grouped_455 = cute.group_modes(%rmem_444) <1, 4> : (!memref_rmem_f32_) -> !memref_rmem_f32_1
      cute.copy(%1437, %grouped_454, %grouped_455) : (!copy_ldtm_32_, !memref_tmem_f32_3, !memref_rmem_f32_1)
      %1456 = cute.memref.load_vec(%rmem_444) : (!memref_rmem_f32_) -> vector<256xf32>
      %1457 = arith.truncf %1456 : vector<256xf32> to vector<256xf16>
      cute.memref.store_vec(%1457, %rmem_447) : (vector<256xf16>, !memref_rmem_f16_) -> ()
      %grouped_458 = cute.group_modes(%rmem_447) <1, 4> : (!memref_rmem_f16_) -> !memref_rmem_f16_1
      %grouped_459 = cute.group_modes(%slice_450) <1, 4> : (!memref_gmem_f16_4) -> !memref_gmem_f16_5
      cute.copy(%atom_448, %grouped_458, %grouped_459) : (!cute_nvgpu.atom.universal_copy<f16>, !memref_rmem_f16_1, !memref_gmem_f16_5)
      %c1_i32_460 = arith.constant 1 : i32
      %c0_i32_461 = arith.constant 0 : i32
      %1462 = builtin.unrealized_conversion_cast %ptr_74 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
      %1463 = nvvm.mapa %1462, %c0_i32_461 : !llvm.ptr<3> -> !llvm.ptr<7>
      nvvm.mbarrier.arrive %1463, %c1_i32_460 {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
      nvvm.barrier
      scf.if %1082 {
        %1464 = arith.xori %1218#1, %c1_i32_76 : i32
        %int_tuple_465 = cute.make_int_tuple(%1218#0) : (i32) -> !cute.int_tuple<"?">
        %ptr_466 = cute.add_offset(%ptr_72, %int_tuple_465) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
        %1467 = builtin.unrealized_conversion_cast %ptr_466 : !cute.ptr<i64, smem> to !llvm.ptr<3>
        %c10000000_i32_468 = arith.constant 10000000 : i32
        nvvm.mbarrier.try_wait.parity %1467, %1464, %c10000000_i32_468 : !llvm.ptr<3>, i32, i32
        %1469 = arith.addi %1218#0, %c1_i32_76 : i32
        %c2_i32_470 = arith.constant 2 : i32
        %1471 = arith.cmpi eq, %1469, %c2_i32_470 : i32
        %1472 = arith.xori %1218#1, %c1_i32_76 : i32
        %1473 = arith.select %1471, %c0_i32_75, %1469 : i32
        %1474 = arith.select %1471, %1472, %1218#1 : i32
        %1475 = arith.xori %1474, %c1_i32_76 : i32
        %int_tuple_476 = cute.make_int_tuple(%1473) : (i32) -> !cute.int_tuple<"?">
        %ptr_477 = cute.add_offset(%ptr_72, %int_tuple_476) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
        %1478 = builtin.unrealized_conversion_cast %ptr_477 : !cute.ptr<i64, smem> to !llvm.ptr<3>
        %c10000000_i32_479 = arith.constant 10000000 : i32
        nvvm.mbarrier.try_wait.parity %1478, %1475, %c10000000_i32_479 : !llvm.ptr<3>, i32, i32
        %1480 = arith.addi %1473, %c1_i32_76 : i32
        %c2_i32_481 = arith.constant 2 : i32
        %1482 = arith.cmpi eq, %1480, %c2_i32_481 : i32
        %1483 = arith.xori %1474, %c1_i32_76 : i32
        %1484 = arith.select %1482, %c0_i32_75, %1480 : i32
        %1485 = arith.select %1482, %1483, %1474 : i32
        scf.if %1080 {
          %1486 = builtin.unrealized_conversion_cast %ptr_74 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
          %c10000000_i32_487 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %1486, %c0_i32_75, %c10000000_i32_487 : !llvm.ptr<3>, i32, i32
        }
        %1488 = arith.xori %1081, %c1_i32_76 : i32
        %1489 = builtin.unrealized_conversion_cast %iter_52 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        %1490 = nvvm.mapa %1489, %1488 : !llvm.ptr<3> -> !llvm.ptr<7>
        nvvm.mbarrier.arrive %1490, %c1_i32_76 {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
        %1491 = builtin.unrealized_conversion_cast %iter_52 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        %c10000000_i32_492 = arith.constant 10000000 : i32
        nvvm.mbarrier.try_wait.parity %1491, %c0_i32_75, %c10000000_i32_492 : !llvm.ptr<3>, i32, i32
        cute_nvgpu.arch.sm100.dealloc_tmem(%tmem_ptr_171, %c512_i32_168) [ cta_2] : !cute.ptr<f32, tmem, align<16>>, i32
      }
      return
    }
  }
  func.func @cutlass___call___m_nvf4Sm100BlockScaledDenseGemmKernel_object_at__Ptrgmem_Ptrgmem(%arg0: !cute.ptr<f4E2M1FN, gmem, align<16>>, %arg1: !cute.ptr<f4E2M1FN, gmem, align<16>>, %arg2: !cute.ptr<f8E4M3FN, gmem, align<32>>, %arg3: !cute.ptr<f8E4M3FN, gmem, align<32>>, %arg4: !cute.ptr<f16, gmem, align<16>>, %arg5: i32, %arg6: i32, %arg7: i32, %arg8: i32, %arg9: !cuda.stream) -> i32 attributes {llvm.emit_c_interface} {
    %iv_493 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %iv_494 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %1495 = arith.muli %arg5, %arg7 : i32
    %iv_496 = cute.assume(%1495) : (i32) -> !cute.i32<divby 32>
    %shape_497 = cute.make_shape(%arg5, %iv_493, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %stride_498 = cute.make_stride(%iv_494, %iv_496) : (!cute.i32<divby 32>, !cute.i32<divby 32>) -> !cute.stride<"(?{div=32},1,?{div=32})">
    %lay_499 = cute.make_layout(%shape_497, %stride_498) : !cute.layout<"(?,?{div=32},?):(?{div=32},1,?{div=32})">
    %view_500 = cute.make_view(%arg0, %lay_499) : !memref_gmem_f4E2M1FN_
    %iv_501 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %iv_502 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %1503 = arith.muli %arg6, %arg7 : i32
    %iv_504 = cute.assume(%1503) : (i32) -> !cute.i32<divby 32>
    %shape_505 = cute.make_shape(%arg6, %iv_501, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %stride_506 = cute.make_stride(%iv_502, %iv_504) : (!cute.i32<divby 32>, !cute.i32<divby 32>) -> !cute.stride<"(?{div=32},1,?{div=32})">
    %lay_507 = cute.make_layout(%shape_505, %stride_506) : !cute.layout<"(?,?{div=32},?):(?{div=32},1,?{div=32})">
    %view_508 = cute.make_view(%arg1, %lay_507) : !memref_gmem_f4E2M1FN_
    %iv_509 = cute.assume(%arg5) : (i32) -> !cute.i32<divby 32>
    %iv_510 = cute.assume(%arg6) : (i32) -> !cute.i32<divby 16>
    %iv_511 = cute.assume(%arg6) : (i32) -> !cute.i32<divby 16>
    %1512 = arith.muli %arg5, %arg6 : i32
    %iv_513 = cute.assume(%1512) : (i32) -> !cute.i32<divby 512>
    %shape_514 = cute.make_shape(%iv_509, %iv_510, %arg8) : (!cute.i32<divby 32>, !cute.i32<divby 16>, i32) -> !cute.shape<"(?{div=32},?{div=16},?)">
    %stride_515 = cute.make_stride(%iv_511, %iv_513) : (!cute.i32<divby 16>, !cute.i32<divby 512>) -> !cute.stride<"(?{div=16},1,?{div=512})">
    %lay_516 = cute.make_layout(%shape_514, %stride_515) : !cute.layout<"(?{div=32},?{div=16},?):(?{div=16},1,?{div=512})">
    %view_517 = cute.make_view(%arg4, %lay_516) : !memref_gmem_f16_
    %1518 = cute.static : !cute.layout<"((32,4),(16,4)):((16,4),(0,1))">
    %iv_519 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %shape_520 = cute.make_shape(%arg5, %iv_519, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %int_tuple_521 = cute.make_int_tuple() : () -> !cute.int_tuple<"(2,1,3)">
    %tile_to_shape_522 = cute.tile_to_shape(%1518, %shape_520, %int_tuple_521) : (!cute.layout<"((32,4),(16,4)):((16,4),(0,1))">, !cute.shape<"(?,?{div=32},?)">, !cute.int_tuple<"(2,1,3)">) -> !cute.layout<"(((32,4),?),((16,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">
    %view_523 = cute.make_view(%arg2, %tile_to_shape_522) : !memref_gmem_f8E4M3FN_
    %1524 = cute.static : !cute.layout<"((32,4),(16,4)):((16,4),(0,1))">
    %iv_525 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %shape_526 = cute.make_shape(%arg6, %iv_525, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %int_tuple_527 = cute.make_int_tuple() : () -> !cute.int_tuple<"(2,1,3)">
    %tile_to_shape_528 = cute.tile_to_shape(%1524, %shape_526, %int_tuple_527) : (!cute.layout<"((32,4),(16,4)):((16,4),(0,1))">, !cute.shape<"(?,?{div=32},?)">, !cute.int_tuple<"(2,1,3)">) -> !cute.layout<"(((32,4),?),((16,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">
    %view_529 = cute.make_view(%arg3, %tile_to_shape_528) : !memref_gmem_f8E4M3FN_
    %1530 = cute.static : !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">
    %coord_531 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_532 = cute.slice(%1530, %coord_531) : !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">, !cute.coord<"(_,_,_,0)">
    %1533 = cute.static : !cute.layout<"((128,64),1,4):((1@0,1@1),0,64@1)">
    %non_exec_atom_534, %tma_tensor_535 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_500, %slice_532, %1533) <{kind = <sm_100_2sm> num_multicast = 1}> : (!memref_gmem_f4E2M1FN_, !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4):((256,1),0,64)">, !cute.layout<"((128,64),1,4):((1@0,1@1),0,64@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">)
    %1536 = cute.static : !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">
    %coord_537 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_538 = cute.slice(%1536, %coord_537) : !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">, !cute.coord<"(_,_,_,0)">
    %1539 = cute.static : !cute.layout<"((128,64),1,4):((1@0,1@1),0,64@1)">
    %non_exec_atom_540, %tma_tensor_541 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_508, %slice_538, %1539) <{kind = <sm_100_2sm> num_multicast = 1}> : (!memref_gmem_f4E2M1FN_, !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4):((256,1),0,64)">, !cute.layout<"((128,64),1,4):((1@0,1@1),0,64@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">)
    %1542 = cute.static : !cute.layout<"((((32,4),1),(16,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">
    %coord_543 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_544 = cute.slice(%1542, %coord_543) : !cute.layout<"((((32,4),1),(16,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">, !cute.coord<"(_,_,_,0)">
    %1545 = cute.static : !cute.layout<"(((32,4),(16,4)),1,4):(((1@0@0@0,1@1@0@0),(1@0@0@1,1@1@0@1)),0,1@1@1)">
    %non_exec_atom_546, %tma_tensor_547 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_523, %slice_544, %1545) <{kind = <sm_100_2sm> num_multicast = 1 tma_format = #cute_nvgpu.tma_data_format<U16>}> : (!memref_gmem_f8E4M3FN_, !cute.layout<"((((32,4),1),(16,4)),1,4):((((16,4),0),(0,1)),0,512)">, !cute.layout<"(((32,4),(16,4)),1,4):(((1@0@0@0,1@1@0@0),(1@0@0@1,1@1@0@1)),0,1@1@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">)
    %1548 = cute.static : !cute.layout<"((((32,4),2),(16,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">
    %coord_549 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_550 = cute.slice(%1548, %coord_549) : !cute.layout<"((((32,4),2),(16,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">, !cute.coord<"(_,_,_,0)">
    %1551 = cute.static : !cute.layout<"(((32,4,2),(16,4)),1,4):(((1@0@0@0,1@1@0@0,1@1@0),(1@0@0@1,1@1@0@1)),0,1@1@1)">
    %non_exec_atom_552, %tma_tensor_553 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_529, %slice_550, %1551) <{kind = <sm_100_2sm_multicast> num_multicast = 2 tma_format = #cute_nvgpu.tma_data_format<U16>}> : (!memref_gmem_f8E4M3FN_, !cute.layout<"((((32,4),2),(16,4)),1,4):((((16,4),2048),(0,1)),0,512)">, !cute.layout<"(((32,4,2),(16,4)),1,4):(((1@0@0@0,1@1@0@0,1@1@0),(1@0@0@1,1@1@0@1)),0,1@1@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm_multicast, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">)
    %atom_554 = cute.make_atom() : () -> !cute_nvgpu.sm100.mma_bs<256x256x64, num_cta = 2, ab_major = (k, k), elem_type = (f4E2M1FN, f4E2M1FN, f32), sf_type = f8E4M3FN, frag_kind = ss, vec_size = 16>
    %1555 = cute.make_tiled_mma(%atom_554) : !mma_
    %tile_556 = cute.make_tile() : () -> !cute.tile<"[256:1;256:1;1:0]">
    %1557 = cute.get_shape(%tile_to_shape_528) : (!cute.layout<"(((32,4),?),((16,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">) -> !cute.shape<"(((32,4),?),((16,4),?),(1,?))">
    %c127_i32_558 = arith.constant 127 : i32
    %1559 = arith.addi %arg5, %c127_i32_558 : i32
    %c128_i32_560 = arith.constant 128 : i32
    %1561 = arith.floordivsi %1559, %c128_i32_560 : i32
    %c255_i32_562 = arith.constant 255 : i32
    %1563 = arith.addi %arg6, %c255_i32_562 : i32
    %c256_i32_564 = arith.constant 256 : i32
    %1565 = arith.floordivsi %1563, %c256_i32_564 : i32
    %c0_i32_566 = arith.constant 0 : i32
    %c1_i32_567 = arith.constant 1 : i32
    %c128_i32_568 = arith.constant 128 : i32
    %c0_i64_569 = arith.constant 0 : i64
    %c2_i32_570 = arith.constant 2 : i32
    %atom_571 = cute.make_atom() : () -> !cute_nvgpu.sm100.mma_bs<128x256x64, num_cta = 1, ab_major = (k, k), elem_type = (f4E2M1FN, f4E2M1FN, f32), sf_type = f8E4M3FN, frag_kind = ss, vec_size = 16>
    %1572 = cute.make_tiled_mma(%atom_571) : !mma_1
    %1573 = cute.kernel_smem_size @kernels::@kernel_cutlass_kernel_m_nvf4Sm100BlockScaledDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_0 : i64
    %1574 = cuda.launch_cfg.create<max_attrs = 17 : i32> (blockDim = (%c128_i32_568, %c1_i32_567, %c1_i32_567), dynamicSmemBytes = %1573, gridDim = (%1561, %1565, %arg8), stream = %arg9) : i32, i32, i32, i64, i32, i32, i32, !cuda.stream -> !cuda.launch_cfg<max_attrs = 17>
    cuda.launch_cfg.cluster_dim[%1574] (%c2_i32_570, %c1_i32_567, %c1_i32_567) : !cuda.launch_cfg<max_attrs = 17>, i32, i32, i32
    cuda.launch_cfg.cooperative[%1574] %c0_i32_566 : !cuda.launch_cfg<max_attrs = 17>, i32
    %1575 = cuda.launch_ex @kernels::@kernel_cutlass_kernel_m_nvf4Sm100BlockScaledDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_0<%1574> (%1555, %non_exec_atom_534, %tma_tensor_535, %non_exec_atom_540, %tma_tensor_541, %non_exec_atom_546, %tma_tensor_547, %non_exec_atom_552, %tma_tensor_553, %view_517, %1530, %1536, %1542, %1548, %1572) {assume_kernel_attr = #cuda.assume_kernel_attr<true>} : !cuda.launch_cfg<max_attrs = 17>, (!mma_, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_100_2sm_multicast, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, !memref_gmem_f16_, !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">, !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">, !cute.layout<"((((32,4),1),(16,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">, !cute.layout<"((((32,4),2),(16,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">, !mma_1) -> !cuda.result
    %1576 = cuda.cast %1575 : !cuda.result -> i32
    cuda.return_if_error %1576 : i32
    return %c0_i32_566 : i32
  }
}
