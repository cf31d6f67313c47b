# SPDX-License-Identifier: Apache-2.0
"""Every message of register vectors, on the tensor side: what was asked, the value, the rule, the mend."""

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import runtime
from numba_cute.seam import traced

F32 = cute.Float32


def v(shape=(4, 2), dtype=F32):
    return cute.full(shape, 1, dtype)


def regs(shape=4, dtype=F32):
    t = cute.make_rmem_tensor(shape, dtype)
    t.fill(0)
    return t


MESSAGES = [
    (lambda i: v()[0, 0, 0], r"TensorSSA\[\(0, 0, 0\)\]: 3 modes, but \(4, 2\) has 2"),
    (lambda i: v()[4, 1], r"TensorSSA\[\(4, 1\)\]: outside of the shape \(4, 2\)"),
    (lambda i: v().to(float), r"to: dtype <class 'float'> is not an element type; use one like cute.BFloat16"),
    (lambda i: v().to(cute.dtypes.Uint1), r"to: Uint1 is an operand of matrix instructions alone"),
    (lambda i: v().bitcast(cute.Float16), r"bitcast: from Float32 to Float16; the widths must be the same"),
    (lambda i: v().reshape((4, 3)), r"reshape: shape \(4, 3\) does not have the 8 elements of \(4, 2\)"),
    (lambda i: v().broadcast_to((4, 3)), r"shape \(4, 2\) does not fit \(4, 3\): each mode must be equal"),
    (lambda i: v().broadcast_to((4, i)), r"broadcast_to: shape .* must be static, for registers are"),
    (
        lambda i: v() + v((4, 3)),
        r"modes of 2 and 3 do not meet: .* the shapes are \(4, 2\) and \(4, 3\)",
    ),
    (lambda i: v().reduce("add", 0), r"reduce: op 'add' is none of ReductionOp.ADD, MUL, MIN, MAX, AND, OR, XOR"),
    (lambda i: v(dtype=cute.Int32) ** -1, r"integers take static exponents from 1 to 64; use .to\(Float32\)"),
    (lambda i: v() & v(), r"and: it is for integers and bools, and the elements are Float32; convert with .to"),
    (lambda i: cute.where(v(), 1, 0), r"where: cond has Float32 elements, not Boolean; compare, as in cond != 0"),
    (lambda i: cute.full(4, 0, int), r"full: dtype <class 'int'> is not an element type"),
    (lambda i: cute.full((i,), 0, F32), r"full: shape .* must be static"),
    (lambda i: cute.full_like(3, 0), r"full_like: 3 is neither a vector nor a tensor"),
    (lambda i: cute.any_(True), r"any_: True is not a TensorSSA"),
    (lambda i: cute.gemv(1, regs(), regs(), 0, regs()), r"gemv: a has shape \(?4\)?; it must be \(M, K\)"),
    (lambda i: cute.gemv(1, regs((4, 2)), regs(3), 0, regs()), r"gemv: a has shape .* they must be \(M, K\), \(K\)"),
    (lambda i: cute.axpby(1, regs(), 1, regs(5)), r"axpby: x has shape .* they must have as many elements"),
    (lambda i: cute.print_tensor(cute.make_identity_tensor((i, 2))), r"print_tensor: the shape .* must be static"),
]


@pytest.mark.parametrize("call, message", MESSAGES, ids=[m[:40] for _, m in MESSAGES])
def test_messages(call, message):
    """Compiled, since in the simulator run-time values are ints, and look static."""
    traced_call = traced(lambda i: call(i) and None)

    @cuda.jit
    def kernel(out):
        i, _, _ = cute.arch.thread_idx()
        traced_call(i)

    with pytest.raises(cute.CuteError, match=message) as caught:
        cute.compile(kernel, (np.zeros(1, np.float32),))
    assert f"{__file__}:" in str(caught.value) and "lambda i: " in str(caught.value), "the user's line is shown"


def test_packed_fp4_is_seen_as_elements_and_unpacked_is_refused():
    class Packed:
        dtype, shape = "torch.float4_e2m1fn_x2", (4, 8)

        def data_ptr(self):
            return 4096

        def stride(self):
            return (8, 1)

    t = runtime.from_dlpack(Packed())
    assert t.element_type == cute.Float4E2M1FN and t.shape == (4, 16) and t.stride == (16, 1)
    with pytest.raises(cute.CuteError, match=r"pack it: .*runtime\.pack\(x\)"):
        runtime.from_dlpack(np.zeros((4, 8), ml_dtypes.float4_e2m1fn))


@cute.kernel
def beyond(out):
    r = cute.make_rmem_tensor(8, cute.Float16)
    r.fill(1)
    tiled = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16), cute.make_layout(32), cute.make_layout(2)
    )
    tid = cute.arch.thread_idx()[0]
    out[tid] = tiled.get_slice(tid).partition_D(r).load()[0]


@pytest.mark.parametrize("checks", [True, False])
def test_registers_beyond_a_tensors_are_reported(checks):
    with pytest.raises(cute.sim.OutOfBoundsError, match="accesses elements 8 to 9 of a tensor of 8"):
        cute.simulate(beyond, checks=checks)[1, 32](np.zeros(32, np.float32))
