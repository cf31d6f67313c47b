# SPDX-License-Identifier: Apache-2.0
"""`cutlass.torch`: torch's tensors for tests, and CuTe tensors over them."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from cuda.bindings import driver

from ...dtypes import DType
from ...runtime import from_dlpack as from_dlpack, pack
from ...seam import CuteError
from ...tensor.tensor import Tensor

__all__ = [
    "GaussianInitConfig", "RandomInitConfig", "ScalarInitConfig", "TensorInitType", "as_tensor", "convert_cute_tensor",
    "create_and_permute_torch_tensor", "current_stream", "cute_tensor_like", "default_stream", "dtype", "from_dlpack",
    "get_leading_dim", "matrix",
]  # fmt: skip


def dtype(ty: DType) -> torch.dtype:
    """Return torch's type of an element type; of one that torch lacks the type of the same bits: torch.int8 of those of
    a byte and less, torch.float32 of TFloat32.

    ty: the element type. CuteError: it is none.
    """
    if not isinstance(ty, DType):
        raise CuteError(f"torch.dtype: ty {ty!r} is not an element type; one is cutlass.Float16")
    if ty.width < 8:
        return torch.int8
    name = {"tf32": "float32"}.get(str(ty), np.dtype(ty.numpy).name)
    return getattr(torch, name, torch.int8)


class TensorInitType(enum.Enum):
    """Choose what fills a tensor: nothing, one number, uniform integers or normal numbers."""

    SKIP = "skip"
    SCALAR = "scalar"
    RANDOM = "random"
    GAUSSIAN = "gaussian"


@dataclasses.dataclass
class RandomInitConfig:
    """Uniform integers. min_val, max_val: from the first to below the second."""

    min_val: int = -2
    max_val: int = 2


@dataclasses.dataclass
class ScalarInitConfig:
    """One number. value: it."""

    value: float = 0.0


@dataclasses.dataclass
class GaussianInitConfig:
    """Normal numbers. mean, std: theirs. scale: what each is multiplied with."""

    mean: float = 0.0
    std: float = 1.0
    scale: float = 1.0


_USUAL = {
    TensorInitType.SCALAR: ScalarInitConfig,
    TensorInitType.RANDOM: RandomInitConfig,
    TensorInitType.GAUSSIAN: GaussianInitConfig,
}


def create_and_permute_torch_tensor(
    shape: Sequence[int], dtype: torch.dtype, permute_order: Sequence[int] | None = None,
    init_type: TensorInitType = TensorInitType.RANDOM, init_config: Any = None, device: Any = None,
) -> torch.Tensor:  # fmt: skip
    """Make a torch tensor, filled, and with its modes in another order.

    shape: before they are ordered. dtype: torch's. permute_order: the modes of `shape` in their new order.
    init_type: how it is filled. init_config: the numbers, an object of the kind that `init_type` names. device: where
    it lies; None: on the host. CuteError: a config of another kind.
    """
    usual = _USUAL.get(init_type)
    config = usual() if usual is not None and init_config is None else init_config
    if usual is not None and not isinstance(config, usual):
        raise CuteError(f"create_and_permute_torch_tensor: init_config {config!r} must be a {usual.__name__}")
    made = _filled(tuple(shape), dtype, config)
    if device is not None:
        made = made.to(device)
    return made if permute_order is None else made.permute(*permute_order)


def _filled(shape: tuple[int, ...], dtype: torch.dtype, config: Any) -> torch.Tensor:
    """A contiguous tensor of the host."""
    if config is None:
        return torch.empty(shape, dtype=dtype)
    if isinstance(config, ScalarInitConfig):
        return torch.full(shape, config.value, dtype=torch.float32).to(dtype)
    if isinstance(config, GaussianInitConfig):
        return (torch.randn(shape) * config.std + config.mean).mul_(config.scale).to(dtype)
    low, high = int(config.min_val), int(config.max_val)
    return torch.randint(low, max(high, low + 1), shape).to(dtype)


def matrix(
    l: int, mode0: int, mode1: int, is_mode0_major: bool, cutlass_dtype: DType,  # noqa: E741 - its name there
    init_type: TensorInitType = TensorInitType.RANDOM, init_config: Any = None,
) -> torch.Tensor:  # fmt: skip
    """Make a batch of matrices on the host, as a tensor of shape (mode0, mode1, l), of float32 or, of integers, int32.

    l: the matrices. mode0, mode1: rows and columns. is_mode0_major: whether columns are contiguous. cutlass_dtype: the
    element type that they are for, whose range the numbers have. init_type, init_config: as of
    `create_and_permute_torch_tensor`.
    """
    if init_type is TensorInitType.RANDOM and init_config is None:
        low = 0 if cutlass_dtype.is_integer and not cutlass_dtype.signed else -2
        init_config = RandomInitConfig(low, low + 4)
    shape, order = ((l, mode1, mode0), (2, 1, 0)) if is_mode0_major else ((l, mode0, mode1), (1, 2, 0))
    kind = torch.int32 if cutlass_dtype.is_integer else torch.float32
    return create_and_permute_torch_tensor(shape, kind, order, init_type, init_config)


def get_leading_dim(torch_tensor: torch.Tensor) -> int | None:
    """Return the first mode of a torch tensor whose stride is 1; None if there is none."""
    return next((i for i, d in enumerate(torch_tensor.stride()) if d == 1), None)


def cute_tensor_like(
    data_ref: torch.Tensor, cutlass_dtype: DType, is_dynamic_layout: bool, assumed_align: int | None = None
) -> tuple[Tensor, torch.Tensor]:
    """Make a tensor on the GPU with the shape, order and numbers of a torch tensor; gives it and the torch tensor that
    holds its memory.

    data_ref: the numbers. cutlass_dtype: the element type; of floats of a byte, and of what is narrower, the torch
    tensor is of int8, of which each byte holds as many elements as go into one. is_dynamic_layout: whether extents and
    strides are run-time values. assumed_align: bytes that its address is a multiple of.
    """
    held = torch.empty_strided(data_ref.shape, data_ref.stride(), dtype=_storage(cutlass_dtype), device="cuda")
    made = from_dlpack(held, assumed_align=assumed_align)
    if cutlass_dtype.width >= 8:
        made.element_type = cutlass_dtype
        if is_dynamic_layout:
            made.mark_layout_dynamic(leading_dim=get_leading_dim(held))
    else:
        made = _narrow(held, cutlass_dtype, is_dynamic_layout, assumed_align)
    _write(held, data_ref, cutlass_dtype)
    return made, held


def _storage(ty: DType) -> torch.dtype:
    """The type of the torch tensor that holds elements."""
    return torch.int8 if ty.is_float and ty.width <= 8 else dtype(ty)


def _narrow(held: torch.Tensor, ty: DType, is_dynamic_layout: bool, assumed_align: int | None) -> Tensor:
    """A tensor of elements narrower than a byte at the beginning of a torch tensor's memory, with its strides."""
    made = from_dlpack(held, assumed_align=assumed_align)
    made.element_type = ty
    if is_dynamic_layout:
        lead = get_leading_dim(held)
        made.mark_layout_dynamic(leading_dim=lead)
    return made


def convert_cute_tensor(
    f32_torch_tensor: torch.Tensor, cute_tensor: Tensor, dtype: DType, is_dynamic_layout: bool = True
) -> Tensor:
    """Fill a tensor with the numbers of a torch tensor of float32, converted to its element type; gives it.

    f32_torch_tensor: the numbers, in the tensor's shape. cute_tensor: what is filled. dtype: its element type.
    is_dynamic_layout: taken; the layout is the tensor's.
    """
    owner = cute_tensor.iterator.address.owner
    owner = owner[0] if isinstance(owner, tuple) else owner
    _write(owner, f32_torch_tensor, dtype)
    return cute_tensor


def _write(held: torch.Tensor, numbers: torch.Tensor, ty: DType) -> None:
    """Write numbers into the memory of a torch tensor as elements of a type, rounded to nearest even."""
    if ty.width > 8 or (ty.width == 8 and not ty.is_float):
        held.copy_(numbers.to(held.dtype))
        return
    order = sorted(range(held.dim()), key=lambda i: held.stride(i), reverse=True)
    flat = numbers.detach().cpu().to(torch.float32).permute(*order).contiguous().numpy()
    bits = flat.astype(ty.numpy)
    raw = bits.view(np.uint8) if ty.width == 8 else pack(bits.reshape(-1))
    memory = torch.as_strided(held, (held.numel(),), (1,))
    filled = torch.from_numpy(raw.reshape(-1).view(np.int8).copy()).to(held.device)
    memory[: filled.numel()].copy_(filled.view(held.dtype))


def as_tensor(pointer: Any, shape: Sequence[int], torch_type: torch.dtype) -> torch.Tensor:
    """Make a torch tensor over memory. pointer: its address, or a CuTe pointer. shape: contiguous. torch_type: of its
    elements."""
    address = int(getattr(pointer, "address", pointer))

    class Memory:
        __cuda_array_interface__ = {
            "data": (address, False), "shape": (int(np.prod(shape)) * torch_type.itemsize,), "typestr": "|u1",
            "version": 3,
        }  # fmt: skip

    return torch.as_tensor(Memory(), device="cuda").view(torch_type).reshape(tuple(shape))


def current_stream() -> Any:
    """Return torch's current stream, as the driver has it."""
    return driver.CUstream(torch.cuda.current_stream().cuda_stream)


def default_stream() -> Any:
    """Return torch's default stream, as the driver has it."""
    return driver.CUstream(torch.cuda.default_stream().cuda_stream)
