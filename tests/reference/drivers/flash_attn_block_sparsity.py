# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's kernel that finds which blocks a mask leaves whole, in part, and out."""

from compared import compare, judge
from published import as_published

as_published()

import cutlass.cute as cute  # noqa: E402 - of the namespace
import torch  # noqa: E402
from flash_attn.cute.compute_block_sparsity import compute_block_sparsity  # noqa: E402

TILE, Q, K = 32, 70, 100


@cute.jit
def causal(batch, head, q_idx, k_idx, seqlen_info, aux_tensors):  # noqa: ANN001, ANN201
    return k_idx <= q_idx + (seqlen_info.seqlen_k - seqlen_info.seqlen_q)


for fast in (False, True):
    given = compute_block_sparsity(TILE, TILE, 1, 2, Q, K, causal, None, "cuda", use_fast_sampling=fast)
    kept = torch.arange(K)[None] <= torch.arange(Q)[:, None] + K - Q
    for i in range(-(-Q // TILE)):
        rows = kept[i * TILE : (i + 1) * TILE]
        parts = [rows[:, j : j + TILE] for j in range(0, K, TILE)]
        whole = [j for j, p in enumerate(parts) if p.all() and p.shape[1] == TILE]
        some = [j for j, p in enumerate(parts) if p.any() and j not in whole]
        for cnt, idx, want in (
            (given.mask_block_cnt, given.mask_block_idx, some), (given.full_block_cnt, given.full_block_idx, whole),
        ):  # fmt: skip
            for head in range(2):
                compare(int(cnt[0, head, i]), len(want))
                compare(idx[0, head, i, : len(want)].cpu(), torch.tensor(want, dtype=torch.int32))
judge()
