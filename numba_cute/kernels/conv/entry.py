# SPDX-License-Identifier: Apache-2.0
"""`conv1d`, `conv2d`, `conv3d`, and the transposed ones: the GEMMs on images, for PyTorch's tensors.

y = conv2d(x, weight, bias, padding=1)
y = conv2d(x, weight, padding=1, epilogue=bias(v) | residual(r) | relu())
z = conv_transpose2d(y, weight, padding=1)
"""

from __future__ import annotations

from typing import Any

from ..gemm.cuts import Umma, Warps
from ..gemm.epilogue import Epilogue
from ..gemm.plan import Plan
from .operators import called


def conv1d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    epilogue: Epilogue | None = None, out: Any = None, out_dtype: Any = None, cut: Plan | Umma | Warps | None = None,
) -> Any:  # fmt: skip
    """Convolve signals with filters, as torch's conv1d does.

    x: (N, C, W), weight: (outputs, C, taps); as they lie where channels are contiguous, `x.mT.contiguous().mT`. bias,
    stride, padding, dilation, epilogue, out, out_dtype, cut: as of `conv2d`. Gives (N, outputs, W'), whose channels
    are contiguous. CuteError for what it does not take.

    >>> import torch
    >>> x, weight = torch.ones(1, 8, 6, dtype=torch.float16), torch.ones(8, 8, 3, dtype=torch.float16)
    >>> with cute.simulation():
    ...     y = cute.kernels.conv1d(x, weight)
    >>> y.shape, y[0, 0]
    (torch.Size([1, 8, 4]), tensor([24., 24., 24., 24.], dtype=torch.float16))
    """
    return called("conv1d", x, weight, bias, (stride, padding, dilation), epilogue, out, out_dtype, cut)


def conv2d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    epilogue: Epilogue | None = None, out: Any = None, out_dtype: Any = None, cut: Plan | Umma | Warps | None = None,
) -> Any:  # fmt: skip
    """Convolve images with filters, as torch's conv2d does, on a GPU of sm_80 to sm_89, sm_90a, sm_100a, sm_103a,
    sm_120 or sm_121.

    x: (N, C, H, W), weight: (outputs, C, kh, kw), of one of the types of matmul (float32 as TF32), both the same. They
    are taken as they lie in torch.channels_last where C is a multiple of 16 bytes; of other orders, and another C, they
    are copied first; a result of other than multiples of 16 bytes is too, but on Hopper. bias: (outputs,), of any
    floating type. stride (by TMA, on Hopper and Blackwell, up to 8), padding, dilation: a number, or one for H and one
    for W; padding also "same", with stride 1, or "valid". epilogue: what becomes of the sums and the bias, as of
    `matmul`; its rows are output pixels, its columns are channels, and a `residual` has the shape and order of the
    result. out: what is written to, in torch.channels_last. out_dtype: the result's type if `out` is not given, as of
    `matmul`. cut: a Plan (Hopper), an Umma (Blackwell), or a Warps; by default the one that a model finds fastest.

    Gives (N, outputs, H', W') in torch.channels_last. Autograd knows it, of bfloat16 and float16, without out, as of
    `matmul`: images, filters, the bias, and what the epilogue reads. CuteError for what it does not take.

    >>> import torch
    >>> x, weight = torch.ones(1, 8, 4, 4, dtype=torch.float16), torch.ones(8, 8, 3, 3, dtype=torch.float16)
    >>> with cute.simulation():
    ...     y = cute.kernels.conv2d(x, weight, padding=1)
    >>> y.shape, y[0, 0, 0]
    (torch.Size([1, 8, 4, 4]), tensor([32., 48., 48., 32.], dtype=torch.float16))
    """
    return called("conv2d", x, weight, bias, (stride, padding, dilation), epilogue, out, out_dtype, cut)


def conv3d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    epilogue: Epilogue | None = None, out: Any = None, out_dtype: Any = None, cut: Plan | Umma | Warps | None = None,
) -> Any:  # fmt: skip
    """Convolve volumes with filters, as torch's conv3d does.

    x: (N, C, D, H, W), weight: (outputs, C, kd, kh, kw), best in torch.channels_last_3d. bias, stride, padding,
    dilation, epilogue, out, out_dtype, cut: as of `conv2d`. Gives (N, outputs, D', H', W') in torch.channels_last_3d.
    CuteError for what it does not take.

    >>> import torch
    >>> x, weight = torch.ones(1, 8, 2, 2, 4, dtype=torch.float16), torch.ones(8, 8, 1, 1, 3, dtype=torch.float16)
    >>> with cute.simulation():
    ...     y = cute.kernels.conv3d(x, weight)
    >>> y.shape, y[0, 0, 0, 0]
    (torch.Size([1, 8, 2, 2, 2]), tensor([24., 24.], dtype=torch.float16))
    """
    return called("conv3d", x, weight, bias, (stride, padding, dilation), epilogue, out, out_dtype, cut)


def conv_transpose1d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    dilation: Any = 1, epilogue: Epilogue | None = None, out: Any = None, cut: Plan | Umma | Warps | None = None,
) -> Any:  # fmt: skip
    """Convolve signals transposed, as torch's conv_transpose1d does.

    x: (N, C, W), weight: (C, outputs, taps); as they lie where channels are contiguous: those of x, and the outputs of
    weight, `weight.mT.contiguous().mT`. bias, stride, padding, output_padding, dilation, epilogue, out, cut: as of
    `conv_transpose2d`. Gives (N, outputs, W'). CuteError for what it does not take.

    >>> import torch
    >>> x, weight = torch.ones(1, 8, 3, dtype=torch.float16), torch.ones(8, 8, 2, dtype=torch.float16)
    >>> with cute.simulation():
    ...     y = cute.kernels.conv_transpose1d(x, weight, stride=2)
    >>> y.shape, y[0, 0]
    (torch.Size([1, 8, 6]), tensor([8., 8., 8., 8., 8., 8.], dtype=torch.float16))
    """
    how = (stride, padding, output_padding, dilation)
    return called("conv_transpose1d", x, weight, bias, how, epilogue, out, None, cut)


def conv_transpose2d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    dilation: Any = 1, epilogue: Epilogue | None = None, out: Any = None, cut: Plan | Umma | Warps | None = None,
) -> Any:  # fmt: skip
    """Convolve images transposed, as torch's conv_transpose2d does: what `conv2d` makes of images, it gives the
    gradient of.

    x: (N, C, H, W), weight: (C, outputs, kh, kw), of bfloat16 or float16, best in torch.channels_last: of other orders
    they are copied first, and where C or the outputs are not multiples of 8. bias: (outputs,), of any floating type.
    stride, padding, output_padding, dilation: a number, or one for H and one for W. epilogue: as of `conv2d`; with
    strides, of numbers and of values for each column alone. out: what is written to, in torch.channels_last. cut: as of
    `conv2d`.

    Gives (N, outputs, H', W') in torch.channels_last. Autograd knows it without out, as `conv2d`. CuteError for what
    it does not take.

    >>> import torch
    >>> x, weight = torch.ones(1, 8, 2, 2, dtype=torch.float16), torch.ones(8, 8, 2, 2, dtype=torch.float16)
    >>> with cute.simulation():
    ...     y = cute.kernels.conv_transpose2d(x, weight)
    >>> y.shape, y[0, 0]
    (torch.Size([1, 8, 3, 3]), tensor([[ 8., 16.,  8.],
            [16., 32., 16.],
            [ 8., 16.,  8.]], dtype=torch.float16))
    """
    how = (stride, padding, output_padding, dilation)
    return called("conv_transpose2d", x, weight, bias, how, epilogue, out, None, cut)


def conv_transpose3d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    dilation: Any = 1, epilogue: Epilogue | None = None, out: Any = None, cut: Plan | Umma | Warps | None = None,
) -> Any:  # fmt: skip
    """Convolve volumes transposed, as torch's conv_transpose3d does.

    x: (N, C, D, H, W), weight: (C, outputs, kd, kh, kw), best in torch.channels_last_3d. bias, stride, padding,
    output_padding, dilation, epilogue, out, cut: as of `conv_transpose2d`. Gives (N, outputs, D', H', W') in
    torch.channels_last_3d. CuteError for what it does not take.

    >>> import torch
    >>> x, weight = torch.ones(1, 8, 1, 1, 2, dtype=torch.float16), torch.ones(8, 8, 1, 1, 2, dtype=torch.float16)
    >>> with cute.simulation():
    ...     y = cute.kernels.conv_transpose3d(x, weight)
    >>> y.shape, y[0, 0, 0, 0]
    (torch.Size([1, 8, 1, 1, 3]), tensor([ 8., 16.,  8.], dtype=torch.float16))
    """
    how = (stride, padding, output_padding, dilation)
    return called("conv_transpose3d", x, weight, bias, how, epilogue, out, None, cut)
