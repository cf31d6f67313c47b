# SPDX-License-Identifier: Apache-2.0
"""A file as one writes it for the CuTe DSL, with what such files have in common: a class whose `__call__` launches its
kernel, a struct with a name for an expression, `with elect_one()`, texts of PTX, names by underscores, options."""

import argparse

import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import numpy as np
from cutlass._mlir.dialects import llvm
from cutlass.base_dsl.arch import Arch
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import from_dlpack, make_fake_stream
from cutlass.cutlass_dsl import BaseDSL, T, dsl_user_op

assert cpasync.CopyBulkTensorTileG2SOp and pipeline.PipelineTmaAsync and cutlass.CUDA_VERSION.major >= 12


@dsl_user_op
def add_exponent(x: cutlass.Float32, n: cutlass.Float32, *, loc=None, ip=None) -> cutlass.Float32:
    """x * 2**n, by the bits of x."""
    return cutlass.Float32(
        llvm.inline_asm(
            T.f32(),
            [cutlass.Float32(x).ir_value(loc=loc, ip=ip), cutlass.Int32(n).ir_value(loc=loc, ip=ip)],
            "{\n\t.reg .s32 bits, more;\n\tmov.b32 bits, $1;\n\tshl.b32 more, $2, 23;\n\t"
            "add.s32 bits, bits, more;\n\tmov.b32 $0, bits;\n\t}\n",
            "=f,f,r",
            has_side_effects=False,
            is_align_stack=False,
            asm_dialect=llvm.AsmDialect.AD_ATT,
        )
    )


class Scale:
    def __init__(self, threads: int):
        self.threads = threads
        self.arch = BaseDSL._get_dsl().get_arch_enum()

    @cute.jit
    def __call__(self, x: cute.Tensor, out: cute.Tensor, power: cutlass.Constexpr, stream):
        self.kernel(x, out, power).launch(
            grid=[cute.ceil_div(cute.size(x), self.threads), 1, 1], block=[self.threads, 1, 1], stream=stream,
            smem_merge_branch_allocs=True,
        )  # fmt: skip

    @cute.kernel
    def kernel(self, x: cute.Tensor, out: cute.Tensor, power: cutlass.Constexpr):
        @cute.struct
        class Storage:
            alignment = 16
            factor: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, 1], alignment]

        storage = utils.SmemAllocator().allocate(Storage)
        factor = storage.factor.get_tensor(cute.make_layout(1))
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        if tidx < 32:
            with cute.arch.elect_one():
                factor[0] = 1.0
        cute.arch.sync_threads()
        i = bidx * self.threads + tidx
        if cutlass.const_expr(self.arch >= Arch.sm_90 and self.threads in {32, 64}):
            if i < cute.size(x):
                out[i] = add_exponent(x[i] * factor[0], power)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=40)
    n = parser.parse_args().n
    x, out = np.linspace(1, 2, n, dtype=np.float32), np.zeros(n, np.float32)
    tensors = [from_dlpack(a, assumed_align=4).mark_layout_dynamic() for a in (x, out)]
    run = cute.compile[cute.GenerateLineInfo(True)](Scale(32), *tensors, 3, make_fake_stream(), options="--opt-level 2")
    run(*tensors, make_fake_stream())
    np.testing.assert_array_equal(out, x * 8)
    print("PASS", n)


if __name__ == "__main__":
    main()
