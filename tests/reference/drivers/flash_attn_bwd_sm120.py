# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's backward pass on Blackwell GeForce, with the passes before and after it."""

from functools import partial

from attention import backward, each

each(
    partial(backward, 1, 64, 64, 1, 1, 64),
    partial(backward, 1, 50, 70, 1, 1, 64, causal=True),
)
