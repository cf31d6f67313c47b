# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's backward pass of latent attention of chosen keys on Blackwell."""

from attention import latent

latent(1, 1, 256, chosen=128, gradients=True)
