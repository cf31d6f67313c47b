%s = numba_cute.static : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!bf16,!bf16,!f32,[128,128,16],SM100>, (1,1,1):(0,0,0)>
%r = numba_cute.experimental.make_tmem_layout_acc %s, (128, 128, 64), 1 : !cute.layout<"((128,128),1,1,1):((65536,1),0,0,0)">
