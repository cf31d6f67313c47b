# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's forward on Hopper with scores and masks that functions of the user's change, and windows."""

from functools import partial

import cutlass.cute as cute
import torch
from attention import each, modified


@cute.jit
def doubled(scores, batch, head, q_idx, kv_idx, seqlen_info, aux_tensors):  # noqa: ANN001, ANN201
    return scores * 2.0


@cute.jit
def even(batch, head, q_idx, kv_idx, seqlen_info, aux_tensors):  # noqa: ANN001, ANN201
    return (q_idx + kv_idx) % 2 == 0


kept = (torch.arange(128, device="cuda")[:, None] + torch.arange(128, device="cuda")[None]) % 2 == 0
each(
    partial(modified, lambda s: 2 * s, score_mod=doubled),
    partial(modified, lambda s: s.masked_fill(~kept, -torch.inf), mask_mod=even),
)
