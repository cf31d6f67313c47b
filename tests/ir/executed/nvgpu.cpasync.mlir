%r = numba_cute.nvgpu.cpasync.CopyBulkG2SMulticastOp : !numba_cute.nvgpu.cpasync.CopyBulkG2SMulticastOp

%r = numba_cute.nvgpu.cpasync.CopyBulkG2SOp : !numba_cute.nvgpu.cpasync.CopyBulkG2SOp

%r = numba_cute.nvgpu.cpasync.CopyBulkS2GByteMaskOp : !numba_cute.nvgpu.cpasync.CopyBulkS2GByteMaskOp

%r = numba_cute.nvgpu.cpasync.CopyBulkS2GOp : !numba_cute.nvgpu.cpasync.CopyBulkS2GOp

%r = numba_cute.nvgpu.cpasync.CopyBulkS2SOp _ : !numba_cute.nvgpu.cpasync.CopyBulkS2SOp

%r = numba_cute.nvgpu.cpasync.CopyBulkTensorGather4G2SMulticastOp #numba_cute.nvgpu.CtaGroup.ONE, interleaved = false, recast = 1 : !numba_cute.nvgpu.cpasync.CopyBulkTensorGather4G2SMulticastOp

%r = numba_cute.nvgpu.cpasync.CopyBulkTensorGather4G2SOp #numba_cute.nvgpu.CtaGroup.ONE, interleaved = false, recast = 1 : !numba_cute.nvgpu.cpasync.CopyBulkTensorGather4G2SOp

%r = numba_cute.nvgpu.cpasync.CopyBulkTensorIm2ColG2SMulticastOp #numba_cute.nvgpu.CtaGroup.ONE, _, interleaved = false, recast = 1 : !numba_cute.nvgpu.cpasync.CopyBulkTensorIm2ColG2SMulticastOp

%r = numba_cute.nvgpu.cpasync.CopyBulkTensorIm2ColG2SOp #numba_cute.nvgpu.CtaGroup.ONE, _, interleaved = false, recast = 1 : !numba_cute.nvgpu.cpasync.CopyBulkTensorIm2ColG2SOp

%r = numba_cute.nvgpu.cpasync.CopyBulkTensorIm2ColS2GOp _, interleaved = false, recast = 1 : !numba_cute.nvgpu.cpasync.CopyBulkTensorIm2ColS2GOp

%r = numba_cute.nvgpu.cpasync.CopyBulkTensorScatter4S2GOp interleaved = false, recast = 1 : !numba_cute.nvgpu.cpasync.CopyBulkTensorScatter4S2GOp

%r = numba_cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp #numba_cute.nvgpu.CtaGroup.ONE, interleaved = false, recast = 1 : !numba_cute.nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp

%r = numba_cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp #numba_cute.nvgpu.CtaGroup.ONE, interleaved = false, recast = 1 : !numba_cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp

%r = numba_cute.nvgpu.cpasync.CopyBulkTensorTileS2GOp interleaved = false, recast = 1 : !numba_cute.nvgpu.cpasync.CopyBulkTensorTileS2GOp

%r = numba_cute.nvgpu.cpasync.CopyDsmemStoreOp _ : !numba_cute.nvgpu.cpasync.CopyDsmemStoreOp

%r = numba_cute.nvgpu.cpasync.CopyReduceBulkS2GOp #numba_cute.ReductionOp.ADD : !numba_cute.nvgpu.cpasync.CopyReduceBulkS2GOp

%r = numba_cute.nvgpu.cpasync.CopyReduceBulkS2SOp _, #numba_cute.ReductionOp.ADD : !numba_cute.nvgpu.cpasync.CopyReduceBulkS2SOp

%r = numba_cute.nvgpu.cpasync.CopyReduceBulkTensorTileS2GOp #numba_cute.ReductionOp.ADD, interleaved = false, recast = 1 : !numba_cute.nvgpu.cpasync.CopyReduceBulkTensorTileS2GOp

%r = numba_cute.nvgpu.cpasync.TmaCopyOp interleaved = false, recast = 1 : !numba_cute.nvgpu.cpasync.TmaCopyOp
