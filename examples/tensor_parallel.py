# SPDX-License-Identifier: Apache-2.0
"""The MLP of a 70B model, cut over the GPUs of a host (tensor parallel, between them rows of the sequence), in two
kernels: one gathers the rows while it multiplies and gates them, one adds the products up while it multiplies.

    torchrun --nproc-per-node 2 examples/tensor_parallel.py
    torchrun --nproc-per-node 2 examples/tensor_parallel.py --rows 2048 --model 1024 --hidden 2816

Checked against NCCL and torch's products; a CUDA graph of it is replayed. Needs Hopper GPUs.
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import torch.nn.functional as F

from numba_cute.kernels.distributed import all_gather_matmul, matmul_reduce_scatter
from numba_cute.kernels.gemm import swiglu


class TensorParallelMLP:
    """down(silu(gate(x)) * up(x)), of whose hidden columns each rank has some. Rows lie apart: each rank has some of x,
    and of the result. rows: of a rank. model, hidden: the model's extents."""

    def __init__(self, rows, model, hidden, group=None):
        self.group, self.world = group, dist.get_world_size(group)
        own = hidden // self.world
        make = lambda *shape: torch.randn(shape, device="cuda", dtype=torch.bfloat16) * shape[1] ** -0.5  # noqa: E731
        self.gate_and_up, self.down = make(2 * own, model), make(model, own)  # as torch.nn.Linear has them
        self.x = symm_mem.empty((rows, model), dtype=torch.bfloat16, device="cuda")  # which the other ranks read

    def __call__(self, x):
        """Give this rank's rows of the result. x: this rank's rows."""
        self.x.copy_(x)
        hidden = all_gather_matmul(self.x, self.gate_and_up.mT, self.group, epilogue=swiglu())
        return matmul_reduce_scatter(hidden, self.down.mT, self.group)

    def reference(self, x):
        """Give the same by NCCL and torch."""
        rows = x.new_empty(self.world * x.shape[0], x.shape[1])
        dist.all_gather_into_tensor(rows, x, self.group)
        gate, up = F.linear(rows, self.gate_and_up).chunk(2, -1)
        out = torch.empty_like(x)
        dist.reduce_scatter_tensor(out, F.linear(F.silu(gate) * up, self.down), group=self.group)
        return out


def off(got, want):
    """Give the distance of a result from another, of its size."""
    return float((got.double() - want.double()).norm() / want.double().norm())


def milliseconds(call, count=10):
    """Give the time of a call on the slowest rank."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8192, help="of the sequence, of all ranks")
    parser.add_argument("--model", type=int, default=8192)
    parser.add_argument("--hidden", type=int, default=28672)
    args = parser.parse_args()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(dist.get_rank())

    rows = args.rows // dist.get_world_size()
    layer = TensorParallelMLP(rows, args.model, args.hidden)
    x = torch.randn(rows, args.model, device="cuda", dtype=torch.bfloat16)
    first = off(layer(x), layer.reference(x))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = layer(x)
    replays = []
    for _ in range(3):
        x.normal_()
        graph.replay()
        replays.append(off(out, layer.reference(x)))
    assert max(first, *replays) < 1e-2, (first, replays)
    times = [milliseconds(call) for call in (graph.replay, lambda: layer.reference(x))]
    if dist.get_rank() == 0:
        print(
            f"off by {first:.1e}, replayed by {max(replays):.1e}; {times[0]:.3f} ms, NCCL and cuBLAS {times[1]:.3f} ms"
        )
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
