# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's backward pass of latent attention of chosen keys on Blackwell: its three kernels."""

from attention import latent_backward

latent_backward(1, 1, 256, chosen=128)
