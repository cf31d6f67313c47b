# SPDX-License-Identifier: Apache-2.0
"""Which files of a checkout are run, for which target, and on which small problem."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DRIVERS = Path(__file__).with_name("drivers")
"""Programs of ours that call a package and compare with torch: `<package>_<what>.py`, in whose name a target may be."""
IMPORTS = DRIVERS / "imports.py"
PACKAGES = ("quack", "flash_attn")
"""Packages of a checkout, whose functions only drivers call."""
LEFT_OUT = ("experimental", "task_scheduling", "jax", "export", "distributed", "nvshmem", "aot_", "/cudnn")
"""Parts of paths that are out of scope: other programming models, JAX, C export, several GPUs."""
TARGETS = (
    ("sm103", "sm_103a"), ("blackwell_geforce", "sm_120a"), ("blackwell", "sm_100a"), ("hopper", "sm_90a"),
    ("ampere", "sm_80"), ("sm80", "sm_80"), ("sm100", "sm_100a"), ("sm120", "sm_120a"),
    ("fp16_gemm_4_iket", "sm_100a"), ("tour_to_sol", "sm_100a"), ("", "sm_90a"),
)  # fmt: skip
"""By a part of a path, the target."""
PROBLEMS: dict[str, list[str]] = json.loads(Path(__file__).with_name("problems.json").read_text())
"""By the end of a path, the arguments of a small problem; of others there are none."""
CHECKS: dict[str, dict[str, str]] = {
    "tutorial_tma/tma_v0.py": {"exit_stores": "its block ends while its store reads shared memory"},
    "tutorial_tma/tma_v1.py": {"exit_stores": "its block ends while its store reads shared memory"},
    "tutorial_gemm/fp16_gemm_1.py": {"initialised": "no cluster barrier lies between tmem.free's barrier and its peer"},
    "nvfp4_gemm_1.py": {"initialised": "no cluster barrier lies between tmem.free's barrier and its peer"},
    "notebooks/async_pipeline.ipynb": {"same_values": "two warps clear the same memory"},
    "cta_norm/cta_norm.py": {"same_values": "all lanes of a warp write their sum to one place"},
    "attention/fmha/fmha": {"tensor_fences": "no tcgen05.fence stands at the waits of its pipelines"},
    "mamba2_ssd/mamba2_ssd.py": {"tensor_fences": "no tcgen05.fence stands at the waits of its pipelines"},
    "flash_attn_fwd_sm80.py": {
        "uninitialised": "it reads rows of a tile beyond the sequence, and drops what comes of them",
    },
    "quack_hadamard.py": {
        "uninitialised": "it transforms registers of rows beyond the last, and drops what comes of them"
    },
    "flash_attn_fwd_sm100.py": {"tensor_fences": "no tcgen05.fence stands at the waits of its pipelines"},
    "flash_attn_combine.py": {
        "uninitialised": "it reads rows of a tile beyond the sequence, and drops what comes of them"
    },
    "flash_attn_bwd_sm120.py": {
        "uninitialised": "it multiplies rows of tiles beyond the sequence, which it does not load, and drops them"
    },
    "flash_attn_bwd_sm100.py": {
        "exit_stores": "its block ends while its last stores of dK or dV read shared memory",
        "tensor_fences": "no tcgen05.fence stands at the waits of its pipelines",
        "warpgroups": "the four warps of its last warpgroup ask for registers by instructions of their own",
    },
    "flash_attn_fwd_gqa_sm100.py": {
        "tensor_fences": "no tcgen05.fence stands at the waits of its pipelines",
        "uninitialised": "its combining kernel reads rows of a tile beyond the sequence, and drops what comes of them",
    },
    "flash_attn_fwd_varlen_sm100.py": {"tensor_fences": "no tcgen05.fence stands at the waits of its pipelines"},
    "attention/mla/mla_decode": {
        "tensor_fences": "no tcgen05.fence stands at the waits of its pipelines",
        "coordinates": "128 threads index a tile of 64 sums: two write each, the same",
        "same_values": "128 threads write 64 sums",
        "exits": "a block ends while the release of the last P may still arrive at its barrier",
    },
    "mixed_input_fmha/mixed": {
        "tensor_fences": "no tcgen05.fence stands at the waits of its pipelines",
        "tensor_frees": "one warp gives all back while its three others load",
    },
    "mixed_input_fmha_decode.py": {
        "initialised": "no fence follows the initialisation of its mbarriers",
        "races": "no tcgen05.wait::st follows the store of O's first values",
    },
    "attention/fmha/fmha_bwd.py": {"tensor_frees": "it gives all back while its last dQ is reduced"},
    "hopper/kernel/attention/fmha.py": {"exit_stores": "its block ends while its last stores read shared memory"},
    "dense_gemm_fp8_2xacc.py": {"registers": "no wgmma.fence between reads of accumulators and the next wgmma"},
    "smem_allocator.py": {"uninitialised": "it prints shared memory that nobody has written"},
    "hopper/kernel/grouped_gemm": {"same_values": "all lanes of a warp set the same fields of a tensor map"},
    "fp16_gemm_4": {"cancelled_shapes": "it cancels clusters of a launch with two shapes, and takes them for its own"},
    "dense_gemm_alpha_beta_persistent.py": {"converged": "a lane gives back what the others of its warp have read"},
    "blockwise_gemm/": {
        "same_values": "lanes of a warp copy the same scale factors to the same place by cp.async",
        "tensor_fences": "no tcgen05.fence stands between its store of sums and the epilogue's load",
    },
    "moe/torch_grouped_mm.py": {
        "races": "all lanes of a warp write one tensor map, and the kernel after it uses it without an acquire",
    },
    "moe/torch_scaled_grouped_mm.py": {
        "races": "no fence acquires the tensor maps that the kernel before it wrote",
    },
    "cute_ext/blackwell/dense_gemm_2sm.py": {
        "exits": "the second block of its pair ends while the last stages' releases may still arrive at its barriers",
    },
    "mixed_input_gemm/": {"warpgroups": "its idle warp asks for fewer registers than the others of its warpgroup"},
    "blackwell_geforce/kernel/": {"warpgroups": "a warp that loads gives registers back, alone"},
}
"""By a part of a path, the checks of the simulator that are left out, each with the reason (docs/differences.md)."""


TORCH = {"moe/torch_scaled_grouped_mm.py": "2.9.1"}
"""By the end of a path, the release that torch says it is, without a GPU: before 2.10 this file compares with a
reference of its own, and later with a function of torch that only its CUDA build has."""
ENDS = {"tvm_ffi/error_reporting.py": "a: (5):(1) is given, and (10):(1) was compiled for"}
"""By the end of a path, what the error says that a file is there to show: it is right if it ends so."""


class File(NamedTuple):
    """A file that is run. name: its path in the checkout, or that of a driver. path: where it lies. target: the GPU.
    arguments: of the small problem. without: the checks that are left out.
    """

    name: str
    path: Path
    target: str
    arguments: tuple[str, ...]
    without: tuple[str, ...] = ()


def files(root: Path, chosen: list[str]) -> Iterator[File]:
    """Yield the files below `root` in scope, or the `chosen` ones: parts of their paths. Of a checkout of a package
    they are its drivers, after one that imports all its modules."""
    package = next((p for p in PACKAGES if Path(root, p).is_dir()), None)
    for name, path in sorted(_drivers(package) if package else _below(root)):
        if any(part in f"/{name}" for part in LEFT_OUT) or (chosen and not any(c in name for c in chosen)):
            continue
        target = next(t for part, t in TARGETS if part in name)
        without = {c for part, left in CHECKS.items() if part in name for c in left}
        arguments = (
            (package,) if path.stem == "imports" else next((a for n, a in PROBLEMS.items() if name.endswith(n)), ())
        )
        yield File(name, path, target, tuple(arguments), tuple(sorted(without)))


def _below(root: Path) -> Iterator[tuple[str, Path]]:
    for path in (*root.rglob("*.py"), *root.rglob("*.ipynb")):
        yield str(path.relative_to(root)), path


def _drivers(package: str) -> Iterator[tuple[str, Path]]:
    for path in (IMPORTS, *DRIVERS.glob(f"{package}_*.py")):
        yield f"drivers/{path.name}", path
