# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts that are spread over the GPUs of a host: a router chooses experts of each token, whose rows
travel while the grouped GEMMs multiply.

    torchrun --nproc-per-node 2 examples/expert_parallel.py
    torchrun --nproc-per-node 2 examples/expert_parallel.py --tokens 512 --model 1024 --inner 512 --experts 16 --topk 4

Checked against torch's products, with the matrices of all ranks; a CUDA graph of it is replayed. Needs Hopper GPUs.
"""

import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from tensor_parallel import check, end, start

from numba_cute.kernels.distributed import ExpertParallel
from numba_cute.kernels.gemm import swiglu


class MixtureOfExperts:
    """The sum over a token's experts e of weight_e * down_e(silu(gate_e(x)) * up_e(x)), of which each rank has some.
    tokens: of a rank, at most. model, inner: extents of an expert."""

    def __init__(self, tokens, model, inner, experts, topk, group=None):
        self.topk, self.group, own = topk, group, experts // dist.get_world_size(group)
        make = lambda *shape: torch.randn(shape, device="cuda", dtype=torch.bfloat16) * shape[-1] ** -0.5  # noqa: E731
        self.gate_and_up, self.down = make(own, 2 * inner, model), make(own, model, inner)
        self.router = make(experts, model)
        dist.broadcast(self.router, 0, group)
        self.experts = ExpertParallel(tokens, model, topk, experts, group)

    def route(self, x):
        """Choose the experts of each token, and weights."""
        scores = F.linear(x, self.router).float().softmax(-1)
        weights, indices = scores.topk(self.topk)
        return indices, weights / weights.sum(-1, keepdim=True)

    def __call__(self, x):
        """Give this rank's rows of the result. x: this rank's rows."""
        indices, weights = self.route(x)
        h = self.experts.dispatch_matmul(x, indices, self.gate_and_up, epilogue=swiglu())
        return self.experts.matmul_combine(h, self.down, weights)

    def reference(self, x):
        """Give the same by torch, with the matrices of all ranks."""
        every = []
        for w in (self.gate_and_up, self.down):
            whole = w.new_empty(dist.get_world_size(self.group) * w.shape[0], *w.shape[1:])
            dist.all_gather_into_tensor(whole, w, self.group)
            every.append(whole)
        indices, weights = self.route(x)
        out = torch.zeros(x.shape, device=x.device)
        for expert, (gate_and_up, down) in enumerate(zip(*every)):
            token, choice = (indices == expert).nonzero(as_tuple=True)
            gate, up = F.linear(x[token], gate_and_up).chunk(2, -1)
            out.index_add_(0, token, weights[token, choice, None] * F.linear(F.silu(gate) * up, down).float())
        return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=2048, help="of a rank")
    parser.add_argument("--model", type=int, default=4096)
    parser.add_argument("--inner", type=int, default=1536)
    parser.add_argument("--experts", type=int, default=64)
    parser.add_argument("--topk", type=int, default=8)
    args = parser.parse_args()
    start()

    layer = MixtureOfExperts(args.tokens, args.model, args.inner, args.experts, args.topk)
    x = torch.randn(args.tokens, args.model, device="cuda", dtype=torch.bfloat16)
    check("experts", layer, x)
    layer.experts.check()
    end()


if __name__ == "__main__":
    main()
