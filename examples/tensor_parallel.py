# SPDX-License-Identifier: Apache-2.0
"""Attention and the MLP of a 70B model's layer, cut over the GPUs of a host (tensor parallel, between them rows of the
sequence). Each begins with a kernel that gathers the rows while it multiplies them, and ends with one that adds the
products up while it multiplies.

    torchrun --nproc-per-node 2 examples/tensor_parallel.py
    torchrun --nproc-per-node 2 examples/tensor_parallel.py --rows 2048 --model 1024 --hidden 2816 --heads 8 2

Checked against NCCL and torch's products; a CUDA graph of each is replayed. Needs Hopper GPUs.
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import torch.nn.functional as F

from numba_cute.kernels import flash_attention
from numba_cute.kernels.distributed import all_gather_matmul, matmul_reduce_scatter
from numba_cute.kernels.gemm import swiglu


class TensorParallel:
    """Two products, of which each rank has some columns of the first and as many rows of the second; in between is
    what a rank computes alone. Rows lie apart: each rank has some of x, and of the result.

    rows: of a rank. model: columns of x. between: columns of the first product, and rows of the second, of a rank.
    """

    epilogue = None
    """Of the first product: it changes the result before it is written."""

    def __init__(self, rows, model, between, group=None):
        self.group, self.world = group, dist.get_world_size(group)
        make = lambda *shape: torch.randn(shape, device="cuda", dtype=torch.bfloat16) * shape[1] ** -0.5  # noqa: E731
        self.first, self.second = make(between[0], model), make(model, between[1])  # as torch.nn.Linear has them
        self.x = symm_mem.empty((rows, model), dtype=torch.bfloat16, device="cuda")  # which the other ranks read

    def __call__(self, x):
        """Give this rank's rows of the result. x: this rank's rows."""
        self.x.copy_(x)
        between = all_gather_matmul(self.x, self.first.mT, self.group, epilogue=self.epilogue)
        return matmul_reduce_scatter(self.alone(between), self.second.mT, self.group)

    def reference(self, x):
        """Give the same by NCCL and torch."""
        rows = x.new_empty(self.world * x.shape[0], x.shape[1])
        dist.all_gather_into_tensor(rows, x, self.group)
        out = torch.empty_like(x)
        between = self.alone_by_torch(F.linear(rows, self.first))
        dist.reduce_scatter_tensor(out, F.linear(between, self.second), group=self.group)
        return out


class Attention(TensorParallel):
    """Causal attention over one sequence, of whose heads each rank has some. heads: of all ranks, those of queries and
    those of keys and values."""

    d = 128

    def __init__(self, rows, model, heads, group=None):
        self.heads, self.kv_heads = (n // dist.get_world_size(group) for n in heads)
        super().__init__(rows, model, ((self.heads + 2 * self.kv_heads) * self.d, self.heads * self.d), group)

    def parts(self, qkv):
        """Cut q, k and v out of the first product: (1, rows, heads, d)."""
        return qkv.view(1, qkv.shape[0], -1, self.d).split([self.heads, self.kv_heads, self.kv_heads], 2)

    def alone(self, qkv):
        return flash_attention(*self.parts(qkv), causal=True).flatten(2)[0]

    def alone_by_torch(self, qkv):
        q, k, v = (t.transpose(1, 2) for t in self.parts(qkv))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        return o.transpose(1, 2).flatten(2)[0]


class MLP(TensorParallel):
    """down(silu(gate(x)) * up(x)), of whose hidden columns each rank has some. The first kernel gates what it
    multiplied."""

    def __init__(self, rows, model, hidden, group=None):
        own = hidden // dist.get_world_size(group)
        super().__init__(rows, model, (2 * own, own), group)
        self.epilogue = swiglu()

    def alone(self, hidden):
        return hidden

    def alone_by_torch(self, gate_and_up):
        gate, up = gate_and_up.chunk(2, -1)
        return F.silu(gate) * up


def start():
    """Join the group that torchrun made, on this rank's GPU, which is returned."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(dist.get_rank())
    return device


def end():
    """Leave it, once all have come here."""
    dist.barrier()
    dist.destroy_process_group()


def off(got, want):
    """Give the distance of a result from another, of its size."""
    return float((got.double() - want.double()).norm() / want.double().norm())


def milliseconds(call, count=10):
    """Give the time of a call on the slowest rank."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3):  # the third launch of a kind is the first in machine code
        call()
    torch.cuda.synchronize()
    dist.barrier()
    begin.record()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    slowest = torch.tensor([begin.elapsed_time(end) / count], device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return float(slowest)


def check(name, layer, x):
    """Compare a layer with its reference, at once and in a CUDA graph, and time both."""
    first = off(layer(x), layer.reference(x))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = layer(x)
    replays = []
    for _ in range(3):
        x.normal_()
        graph.replay()
        replays.append(off(out, layer.reference(x)))
    assert max(first, *replays) < 1e-2, (name, first, replays)
    times = [milliseconds(call) for call in (graph.replay, lambda: layer.reference(x))]
    if dist.get_rank() == 0:
        print(f"{name}: off by {first:.1e}, replayed {max(replays):.1e}; {times[0]:.3f} ms, NCCL, torch {times[1]:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8192, help="of the sequence, of all ranks")
    parser.add_argument("--model", type=int, default=8192)
    parser.add_argument("--hidden", type=int, default=28672)
    parser.add_argument("--heads", type=int, nargs=2, default=(64, 8), help="of queries, of keys and values")
    args = parser.parse_args()
    start()

    rows = args.rows // dist.get_world_size()
    x = torch.randn(rows, args.model, device="cuda", dtype=torch.bfloat16)
    check("attention", Attention(rows, args.model, args.heads), x)
    check("MLP", MLP(rows, args.model, args.hidden), x)
    end()


if __name__ == "__main__":
    main()
