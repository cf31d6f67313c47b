%q = numba_cute.nvgpu.machine.cast %f, !f16

%a = numba_cute.nvgpu.machine.pack !f32, (%f, %g)
%q = numba_cute.nvgpu.machine.convert %a, !f32, !f16, 2

%a = numba_cute.nvgpu.machine.pack !f32, (%f, %g)
%q = numba_cute.nvgpu.machine.elementwise "add", !f32, (%a, %a)

%a = numba_cute.nvgpu.machine.pack !f32, (%f, %g)
%q = numba_cute.nvgpu.machine.lane %a, 1

%p = numba_cute.get_attr %out, "iterator"
%ad = numba_cute.Pointer.toint %p
%q = numba_cute.nvgpu.machine.load !f64, "gmem", %ad, 1, 8

%q = numba_cute.nvgpu.machine.pack !f32, (%f, %g)

%g4 = numba_cute.nvgpu.machine.registers !f32, 4
numba_cute.nvgpu.machine.fill (%g4, !f32, 0, 4), %f
%q = numba_cute.nvgpu.machine.read (%g4, !f32, 2, 1)

%p = numba_cute.get_attr %out, "iterator"
%z = numba_cute.binary "+", %p, 504
%ad = numba_cute.Pointer.toint %z
numba_cute.nvgpu.machine.store !f64, "gmem", %ad, (%x,), 8

%a = numba_cute.nvgpu.machine.pack !f32, (%f, %g)
%q = numba_cute.nvgpu.machine.take %a, (1, 0)
