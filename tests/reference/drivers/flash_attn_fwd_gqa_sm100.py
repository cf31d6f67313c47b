# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's forward on Blackwell of heads of queries that share those of keys; and with its keys in two splits,
which another kernel combines."""

from functools import partial

from attention import each, forward

each(
    partial(forward, 1, 33, 140, 4, 2, 64, causal=True),
    partial(forward, 1, 130, 260, 1, 1, 128, num_splits=2),
)
