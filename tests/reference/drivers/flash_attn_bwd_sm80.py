# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's backward pass on Ampere. Its functions take that for Blackwell GeForce alone, which has the same
kernel: `FLASH_ATTENTION_ARCH` asks for it."""

import os
from functools import partial

os.environ["FLASH_ATTENTION_ARCH"] = "sm_120"

from attention import backward, each  # noqa: E402 - as asked

each(
    partial(backward, 1, 64, 64, 1, 1, 64),
    partial(backward, 1, 50, 70, 1, 1, 64, causal=True),
)
