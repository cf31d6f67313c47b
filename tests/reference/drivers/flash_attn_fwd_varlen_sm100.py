# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's forward on Blackwell of sequences of several lengths, behind each other and in pages."""

from functools import partial

from attention import each, of_lengths

each(
    partial(of_lengths, (3, 130), (5, 70), 1, 1, 64),
    partial(of_lengths, (3, 100), (5, 200), 1, 1, 64, page=128),
)
