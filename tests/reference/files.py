# SPDX-License-Identifier: Apache-2.0
"""Which files of a checkout are run, for which target, and on which small problem."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LEFT_OUT = ("experimental", "task_scheduling", "jax", "export", "distributed", "nvshmem", "aot_", "/cudnn")
"""Parts of paths that are out of scope: other programming models, JAX, C export, several GPUs."""
TARGETS = (
    ("sm103", "sm_103a"), ("blackwell_geforce", "sm_120a"), ("blackwell", "sm_100a"), ("hopper", "sm_90a"),
    ("ampere", "sm_80"), ("fp16_gemm_4_iket", "sm_100a"), ("tour_to_sol", "sm_100a"), ("", "sm_90a"),
)  # fmt: skip
"""By a part of a path, the target."""
PROBLEMS: dict[str, list[str]] = json.loads(Path(__file__).with_name("problems.json").read_text())
"""By the end of a path, the arguments of a small problem; of others there are none."""
CHECKS: dict[str, dict[str, str]] = {
    "tutorial_tma/tma_v0.py": {"exit_stores": "its block ends while its store reads shared memory"},
    "tutorial_tma/tma_v1.py": {"exit_stores": "its block ends while its store reads shared memory"},
    "tutorial_gemm/fp16_gemm_1.py": {"initialised": "no cluster barrier lies between tmem.free's barrier and its peer"},
    "notebooks/async_pipeline.ipynb": {"same_values": "two warps clear the same memory"},
    "cta_norm/cta_norm.py": {"same_values": "all lanes of a warp write their sum to one place"},
    "attention/fmha/fmha": {"tensor_fences": "no tcgen05.fence stands at the waits of its pipelines"},
    "mamba2_ssd/mamba2_ssd.py": {"tensor_fences": "no tcgen05.fence stands at the waits of its pipelines"},
    "attention/mla/mla_decode": {
        "tensor_fences": "no tcgen05.fence stands at the waits of its pipelines",
        "coordinates": "128 threads index a tile of 64 sums: two write each, the same",
        "same_values": "128 threads write 64 sums",
    },
    "mixed_input_fmha/mixed": {"tensor_fences": "no tcgen05.fence stands at the waits of its pipelines"},
    "attention/fmha/fmha_bwd.py": {"tensor_frees": "it gives all back while its last dQ is reduced"},
    "blackwell_geforce/kernel/dense_gemm": {"warpgroups": "its fifth warp gives registers back, alone"},
}
"""By a part of a path, the checks of the simulator that are left out, each with the reason (docs/differences.md)."""


class File(NamedTuple):
    """A file that is run. name: its path in the checkout. target: the GPU. arguments: of the small problem. without:
    the checks that are left out."""

    name: str
    target: str
    arguments: tuple[str, ...]
    without: tuple[str, ...] = ()


def files(root: Path, chosen: list[str]) -> Iterator[File]:
    """Yield the files below `root` in scope, or the `chosen` ones: parts of their paths."""
    for path in sorted((*root.rglob("*.py"), *root.rglob("*.ipynb"))):
        name = str(path.relative_to(root))
        if any(part in f"/{name}" for part in LEFT_OUT) or (chosen and not any(c in name for c in chosen)):
            continue
        target = next(t for part, t in TARGETS if part in name)
        without = {c for part, left in CHECKS.items() if part in name for c in left}
        arguments = next((a for n, a in PROBLEMS.items() if name.endswith(n)), ())
        yield File(name, target, tuple(arguments), tuple(sorted(without)))
