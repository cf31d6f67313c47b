# SPDX-License-Identifier: Apache-2.0
"""One rank of several: `python -m tests.several_gpus.experts CASE…` with RANK, WORLD_SIZE and MASTER_… set (torchrun).
Experts spread over the GPUs, against torch's products of all ranks' tokens. Each case prints a line of JSON by rank 0
as it ends, as `tests.several_gpus.rank` does."""

from __future__ import annotations

import json
import os
import sys
import traceback

import torch
import torch.distributed as dist
import torch.nn.functional as F

from numba_cute.kernels.distributed import ExpertParallel
from numba_cute.kernels.gemm import swiglu
from numba_cute.seam import CuteError

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", RANK)))
TOKENS, HIDDEN, INNER, TOPK, EXPERTS = 512, 2176, 512, 4, 8 * WORLD


def random(*shape):
    return torch.randn(shape, device=DEVICE, dtype=torch.bfloat16)


def everyone(x):
    """All ranks' tensors of this shape, in their order."""
    found = [torch.empty_like(x) for _ in range(WORLD)]
    dist.all_gather(found, x.contiguous())
    return found


class Layer:
    """Experts, and their matrices. how: as of `ExpertParallel`."""

    def __init__(self, tokens=TOKENS, hidden=HIDDEN, topk=TOPK, experts=EXPERTS, **how):
        self.experts, own = ExpertParallel(tokens, hidden, topk, experts, **how), experts // WORLD
        self.up = random(own, 2 * INNER, hidden) * hidden**-0.5
        self.down = random(own, hidden, INNER) * INNER**-0.5
        self.every = [torch.cat(everyone(w)) for w in (self.up, self.down)]

    def __call__(self, x, indices, weights):
        h = self.experts.dispatch_matmul(x, indices, self.up, epilogue=swiglu())
        return self.experts.matmul_combine(h, self.down, weights)

    def check(self, got, x, indices, weights, what):
        """Compare with torch, of this rank's tokens."""
        up, down = self.every
        want = torch.zeros(x.shape, device=DEVICE)
        for expert in range(up.shape[0]):
            token, choice = (indices == expert).nonzero(as_tuple=True)
            gate, value = F.linear(x[token], up[expert]).float().chunk(2, -1)
            made = F.linear((F.silu(gate) * value).to(x.dtype), down[expert])
            want.index_add_(0, token, weights[token, choice][:, None].float() * made.float())
        size = max(float(want.norm()), 1e-3)
        off = float((got.float() - want).norm()) / size
        assert off < 1e-2, f"{what}: off by {off}"
        return off


def choices(n, topk=TOPK, experts=EXPERTS):
    """Different experts of each token, some of which are none."""
    indices = torch.rand(n, experts, device=DEVICE).argsort(1)[:, :topk].contiguous()
    indices[torch.rand(indices.shape, device=DEVICE) < 0.1] = -1
    return indices


def weights_of(indices):
    return torch.rand(indices.shape, device=DEVICE)


def tokens():
    """As many as there can be, fewer, other ones on each rank, and none on one."""
    layer = Layer()
    for n in (TOKENS, 300, 100 + 57 * RANK, 40 * RANK, TOKENS):
        x, indices = random(n, HIDDEN), choices(n)
        weights = weights_of(indices)
        layer.check(layer(x, indices, weights), x, indices, weights, f"{n} tokens")
    layer.experts.check()


def skewed():
    """All to one expert; to one rank; and none anywhere."""
    layer = Layer()
    x = random(TOKENS, HIDDEN)
    for what, indices in {
        "one expert": torch.full((TOKENS, TOPK), EXPERTS - 1, device=DEVICE),
        "one rank": choices(TOKENS, experts=8),
        "no expert": torch.full((TOKENS, TOPK), -1, device=DEVICE, dtype=torch.int32),
    }.items():
        weights = weights_of(indices)
        layer.check(layer(x, indices, weights), x, indices, weights, what)
    layer.experts.check()


def topks():
    for topk in (1, 2, 8):
        layer = Layer(128, 512, topk, 8 * WORLD)
        x, indices = random(128, 512), choices(128, topk)
        weights = weights_of(indices).bfloat16()
        layer.check(layer(x, indices, weights), x, indices, weights, f"topk {topk}")


def again():
    """Bit by bit the same, in each of many launches without a word of the host."""
    layer = Layer()
    x, indices = random(TOKENS, HIDDEN), choices(TOKENS)
    weights = weights_of(indices)
    first = layer(x, indices, weights).clone()
    layer.check(first, x, indices, weights, "first")
    found = [layer(x, indices, weights) for _ in range(100)]
    torch.cuda.synchronize()
    assert all(torch.equal(first, y) for y in found)


def graph():
    layer = Layer()
    x, indices = layer.experts.x, choices(TOKENS)
    x.copy_(random(TOKENS, HIDDEN))
    weights = weights_of(indices)
    layer(x, indices, weights)
    torch.cuda.synchronize()
    dist.barrier()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = layer(x, indices, weights)
    for turn in range(5):
        dist.barrier()
        x.normal_()
        indices.copy_(choices(TOKENS))
        captured.replay()
        layer.check(y, x, indices, weights, f"replay {turn}")
    layer.experts.check()


def plain():
    """Rows travel without a product."""
    layer = Layer()
    for n in (TOKENS, 60 * RANK, 300):
        x, indices = random(n, HIDDEN), choices(n)
        weights = weights_of(indices)
        rows = layer.experts.dispatch(x, indices)
        y = layer.experts.combine(rows, weights)
        want = x.float() * (weights * (indices >= 0)).sum(1, keepdim=True)
        off = float((y.float() - want).norm()) / max(float(want.norm()), 1e-3)
        assert off < 1e-2, f"{n} tokens: off by {off}"
    layer.experts.check()


def said(call):
    try:
        call()
    except CuteError as e:
        return str(e)
    return ""


def errors():
    """What is not possible is said, and the memory is good for more."""
    layer = Layer(capacity=TOKENS)
    x, fits = random(TOKENS, HIDDEN), torch.full((TOKENS, TOPK), -1, device=DEVICE)
    fits[:, 0] = RANK * 8
    weights = weights_of(fits)
    for turn in range(2):
        many = torch.full((TOKENS, TOPK), WORLD * 8 - 1, device=DEVICE)
        y = layer(x, many, weights)
        says = said(layer.experts.check)
        room = f"{WORLD * TOKENS * TOPK} rows came to rank {WORLD - 1}, and there is room for {TOKENS}"
        assert room in says, says
        assert bool(y.isnan().all())
        layer.check(layer(x, fits, weights), x, fits, weights, f"after, {turn}")
    wrong = fits.clone()
    wrong[3, 1] = EXPERTS + 5
    y = layer(x, wrong, weights)
    torch.cuda.synchronize()
    dist.barrier()
    says = said(lambda: layer(x, fits, weights))  # the next call, on all ranks
    assert f"indices name expert {EXPERTS + 5}, and there are {EXPERTS}" in says, says
    assert bool(y[3].isnan().all()) and not bool(y[:3].isnan().any() | y[4:].isnan().any())
    dist.barrier()
    h = torch.zeros(TOKENS, INNER, device=DEVICE, dtype=torch.bfloat16)
    for rule, call in {
        "x has 513 rows, and there is memory for 512 tokens": lambda: layer(random(513, HIDDEN), choices(513), weights),
        "x is float32": lambda: layer(x.float(), fits, weights),
        f"its shape must be (any, {HIDDEN})": lambda: layer(random(8, 512), fits[:8], weights),
        "indices is float32": lambda: layer(x, fits.float(), weights),
        "give indices.contiguous()": lambda: layer(x, choices(TOKENS, 8)[:, ::2], weights),
        "weights is float32 of shape (8, 4)": lambda: layer.experts.matmul_combine(h, layer.down, weights[:8]),
        "h is bfloat16 of shape (8, 512)": lambda: layer.experts.matmul_combine(h[:8], layer.down, weights),
        "w is bfloat16": lambda: layer.experts.dispatch_matmul(x, fits, layer.up[1:]),
        "call dispatch_matmul or dispatch first": lambda: Layer(8, 64).experts.matmul_combine(h, layer.down, weights),
        "experts 7 must be a multiple": lambda: ExpertParallel(8, 64, 1, 7),
        "hidden 12 must be a multiple of 8": lambda: ExpertParallel(8, 12, 1, 8),
        "topk 0 must be an int": lambda: ExpertParallel(8, 64, 0, 8),
        "give torch.bfloat16 or torch.float16": lambda: ExpertParallel(8, 64, 1, 8, dtype=torch.float32),
    }.items():
        says = said(call)
        assert rule in says, (rule, says)


CASES = {f.__name__: f for f in (tokens, skewed, topks, again, graph, plain, errors)}


def main(names):
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl", device_id=DEVICE)
    torch.manual_seed(RANK)
    for name in names or CASES:
        text = ""
        try:
            CASES[name]()
        except Exception:
            text = traceback.format_exc(limit=-6)
        every = [None] * WORLD
        dist.all_gather_object(every, text)
        if RANK == 0:
            wrong = {r: s for r, s in enumerate(every) if s}
            print(json.dumps({"case": name, "wrong": wrong, "measured": None}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
