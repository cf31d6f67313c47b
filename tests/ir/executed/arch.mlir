%q = numba_cute.arch.activemask

%q = numba_cute.arch.block_in_cluster_dim

%q = numba_cute.arch.block_in_cluster_idx

%q = numba_cute.arch.clock64

%q = numba_cute.arch.cluster_dim

%q = numba_cute.arch.createpolicy_cvt 7

%p = numba_cute.get_attr %out, "iterator"
%q = numba_cute.arch.createpolicy_range %p, 64, 128, "evict_last"

%a = numba_cute.full 2, %n, !i8
%r = numba_cute.arch.cvt_i8x2_to_f32x2 %a

%a = numba_cute.full 4, %n, !i8
%r = numba_cute.arch.cvt_i8x4_to_bf16x4 %a

%q = numba_cute.arch.dynamic_smem_size

%a = numba_cute.cast %n : i32 -> ui32
%r = numba_cute.arch.exp2_packed_bf16x2 %a

%a = numba_cute.cast %n : i32 -> ui32
%r = numba_cute.arch.exp2_packed_f16x2 %a

numba_cute.arch.fence_acq_rel_cluster

numba_cute.arch.fence_acq_rel_cta

numba_cute.arch.fence_acq_rel_gpu

numba_cute.arch.fence_acq_rel_sys

%a = numba_cute.cast %f : f32 -> bf16
%r = numba_cute.arch.fma_bf16 %a, %a, %a

%r = numba_cute.arch.get_max_tmem_alloc_cols "sm_100" : !cute.int_tuple<"512">

%r = numba_cute.arch.get_min_tmem_alloc_cols "sm_100" : !cute.int_tuple<"32">

%q = numba_cute.arch.globaltimer

numba_cute.arch.griddepcontrol_launch_dependents

numba_cute.arch.griddepcontrol_wait

%r = numba_cute.arch.mul_wide %n, %m

%q = numba_cute.arch.nsmid

%q = numba_cute.arch.nwarpid

%q = numba_cute.arch.physical_warp_id

%q = numba_cute.arch.smid
