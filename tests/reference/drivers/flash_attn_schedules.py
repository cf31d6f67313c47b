# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's kernels that plan sequences of several lengths: sums of their blocks, what sequence a block is of,
and the splits of their keys."""

from compared import compare, judge
from published import as_published

as_published()

import torch  # noqa: E402 - of the namespace
from flash_attn.cute.interface import (  # noqa: E402
    _compute_blocks_to_batch,
    _compute_tile_cumsum,
    get_scheduler_metadata,
)  # fmt: skip

TILE = 64
lengths = torch.tensor([0, 1, 64, 65, 200, 3], dtype=torch.int32)
starts = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int().to("cuda")
blocks = -(-lengths // TILE)
sums = torch.nn.functional.pad(blocks.cumsum(0), (1, 0)).int()

given, _ = _compute_tile_cumsum(cu_seqlens=starts, tile_size=TILE)
compare(given.cpu(), sums)
splits = torch.tensor([1, 2, 3, 1, 2, 4], dtype=torch.int32)
given, given_splits = _compute_tile_cumsum(
    seqused=lengths.to("cuda"), num_splits_dynamic=splits.to("cuda"), tile_size=TILE
)
compare(given.cpu(), sums)
compare(given_splits.cpu(), torch.nn.functional.pad((blocks * splits).cumsum(0), (1, 0)).int())

of_blocks = _compute_blocks_to_batch(sums.to("cuda"), int(sums[-1]), "cuda")
compare(of_blocks.cpu(), torch.arange(len(lengths)).repeat_interleave(blocks).int())

made = get_scheduler_metadata(
    200, 200, 2, 2, 64, 4, causal=True, cu_seqlens_q=starts, cu_seqlens_k=starts, seqlen_k_per_split=256
)  # fmt: skip
compare(made.num_splits_dynamic_ptr.cpu(), torch.ones(len(lengths), dtype=torch.int32))
compare(made.num_m_blocks_ptr.cpu(), -(-lengths // 128))
judge()
