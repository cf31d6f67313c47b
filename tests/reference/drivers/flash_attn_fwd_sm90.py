# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's forward on Hopper: dense, causal, by a window, of grouped heads."""

from attention import forward

forward(1, 128, 128, 1, 1, 128, lse=False)
forward(1, 113, 203, 1, 1, 64, lse=False, causal=True)
