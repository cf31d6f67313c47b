# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's forward of latent attention on Blackwell, dense and of chosen keys."""

from functools import partial

from attention import each, latent

each(partial(latent, 1, 1, 128), partial(latent, 1, 2, 256, chosen=128))
