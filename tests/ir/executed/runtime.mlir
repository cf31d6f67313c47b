%q = numba_cute.runtime.make_ptr !f32, 0, #numba_cute.AddressSpace.smem
