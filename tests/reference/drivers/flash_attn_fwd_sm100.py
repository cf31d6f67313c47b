# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's forward on Blackwell: dense, and causal of unaligned lengths."""

from functools import partial

from attention import each, forward

each(
    partial(forward, 1, 128, 128, 1, 1, 128),
    partial(forward, 1, 113, 203, 1, 1, 64, causal=True),
)
