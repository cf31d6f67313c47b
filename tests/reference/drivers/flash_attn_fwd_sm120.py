# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's forward on Blackwell GeForce: dense, and causal of unaligned lengths; without the logarithms of the
sums, as on Hopper (flash_attn_fwd_sm90.py)."""

from functools import partial

from attention import each, forward

each(
    partial(forward, 1, 128, 128, 1, 1, 64, lse=False),
    partial(forward, 1, 113, 203, 1, 1, 128, lse=False, causal=True),
)
