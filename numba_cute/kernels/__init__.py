# SPDX-License-Identifier: Apache-2.0
"""Kernels to call as they are, at the speed of the best: each with a function that takes PyTorch's tensors.

Loaded on demand, one by one. Their files are written as users write kernels, to be read, simulated and changed.
"""

import importlib as _importlib
import sys as _sys

from ..seam.ground import names as _names
from ..seam.ground.collecting import staying as _staying
from ..seam.guards import facade as _facade

# By name, the module that has it.
_FOUND_IN: dict[str, str] = {
    "attention_backward": "attention.gradients",
    "attention_with_cache": "attention.append",
    "block_mask": "attention.blocks",
    "block_mask_from": "attention.blocks",
    "blockscaled_gemm": "gemm.blockscaled",
    "chunked_scales": "gemm.microscaled",
    "conv1d": "conv.entry",
    "conv2d": "conv.entry",
    "conv3d": "conv.entry",
    "conv_transpose1d": "conv.entry",
    "conv_transpose2d": "conv.entry",
    "conv_transpose3d": "conv.entry",
    "cross_entropy": "rows.softmax",
    "flash_attention": "attention.entry",
    "grouped_gemm": "gemm.grouped_entry",
    "groupnorm": "rows.groupnorm",
    "int4_weights": "gemm.pack",
    "int4_weights_from_awq": "gemm.pack",
    "int4_weights_from_gptq": "gemm.pack",
    "latent_attention": "attention.latent_entry",
    "layernorm": "rows.norm",
    "linear_cross_entropy": "rows.linear_entropy",
    "matmul": "gemm.entry",
    "mixed_gemm": "gemm.mixed",
    "permute": "moves.permute",
    "rmsnorm": "rows.norm",
    "rotary": "rows.rotary",
    "softmax": "rows.softmax",
    "topk": "rows.topk",
    "transpose": "moves.permute",
    "warmup": "ahead",
}
__all__ = sorted(_FOUND_IN)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    """Load a kernel when it is first asked for."""
    if name in _FOUND_IN:
        with _staying:
            module = _importlib.import_module(f".{_FOUND_IN[name]}", __name__)
        return globals().setdefault(name, _facade.entry(getattr(module, name)))
    raise _names.absent_from(__name__, name, _sys._getframe(1))


def __dir__() -> list[str]:
    return __all__
