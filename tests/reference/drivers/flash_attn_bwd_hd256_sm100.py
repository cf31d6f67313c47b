# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's backward pass on Blackwell of head dimension 256, by pairs of CTAs."""

from attention import backward

backward(1, 256, 256, 1, 1, 256)
