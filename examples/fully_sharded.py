# SPDX-License-Identifier: Apache-2.0
"""A linear layer with its weights spread over the GPUs of a host, as FSDP has them: forward is one kernel that brings
the others' rows of the weights while it multiplies by those that are there, and the gradient of the weights is one that
sends each tile to the rank that owns it while the next is multiplied. Each rank has its own rows of x.

    torchrun --nproc-per-node 2 examples/fully_sharded.py
    torchrun --nproc-per-node 2 examples/fully_sharded.py --rows 512 --columns 1024 --features 2048

Checked against NCCL and torch's products, and timed beside them. Needs Hopper GPUs.
"""

import argparse

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from tensor_parallel import end, milliseconds, off, start

from numba_cute.kernels.distributed import all_gather_matmul, matmul_reduce_scatter


class Linear(torch.autograd.Function):
    """x @ weight.mT, of whose weight each rank has some rows.

    Rows that all ranks give are rows of the first operand of `all_gather_matmul`, so it computes weight @ x.mT, and the
    result is seen transposed; so is the gradient of the next layer, and nothing is copied to turn it.
    """

    @staticmethod
    def forward(ctx, x, rows):
        """x: (tokens of this rank, columns). rows: (features / ranks, columns), in symmetric memory."""
        ctx.save_for_backward(x, rows)
        return all_gather_matmul(rows.detach(), x.detach().mT).mT

    @staticmethod
    def backward(ctx, grad):
        x, rows = ctx.saved_tensors
        of_x = of_rows = None
        if ctx.needs_input_grad[0]:  # sums over the rows of all ranks: NCCL brings the whole weight
            of_x = grad @ whole(rows)
        if ctx.needs_input_grad[1]:  # sums over the tokens of all ranks, whose products meet where the rows lie
            of_rows = matmul_reduce_scatter(grad.mT.contiguous(), x.contiguous())
        return of_x, of_rows


def whole(rows):
    """Gather all ranks' rows by NCCL."""
    every = rows.new_empty(dist.get_world_size() * rows.shape[0], rows.shape[1])
    dist.all_gather_into_tensor(every, rows)
    return every


class ByNCCL(torch.autograd.Function):
    """The same by NCCL and torch."""

    @staticmethod
    def forward(ctx, x, rows):
        ctx.save_for_backward(x, rows)
        return x @ whole(rows).mT

    @staticmethod
    def backward(ctx, grad):
        x, rows = ctx.saved_tensors
        of_rows = torch.empty_like(rows)
        dist.reduce_scatter_tensor(of_rows, grad.mT @ x)
        return grad @ whole(rows), of_rows


def step(layer, x, rows, grad):
    """Give the result, and the gradients of x and of this rank's rows."""
    out = layer.apply(x, rows)
    return out.detach(), *torch.autograd.grad(out, (x, rows), grad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4096, help="of x, of each rank")
    parser.add_argument("--columns", type=int, default=8192)
    parser.add_argument("--features", type=int, default=28672)
    args = parser.parse_args()
    device = start()

    rows = symm_mem.empty((args.features // dist.get_world_size(), args.columns), dtype=torch.bfloat16, device=device)
    rows.normal_(std=args.columns**-0.5).requires_grad_()
    x = torch.randn(args.rows, args.columns, device=device, dtype=torch.bfloat16, requires_grad=True)
    # Transposed, as the layer above gives it.
    grad = torch.randn(args.features, args.rows, device=device, dtype=torch.bfloat16).mT
    found = [off(a, b) for a, b in zip(step(Linear, x, rows, grad), step(ByNCCL, x, rows, grad))]
    assert max(found) < 1e-2, found
    times = [milliseconds(lambda layer=layer: step(layer, x, rows, grad)) for layer in (Linear, ByNCCL)]
    if dist.get_rank() == 0:
        print(f"off by {max(found):.1e}; forward and backward {times[0]:.3f} ms, by NCCL and torch {times[1]:.3f} ms")
    end()


if __name__ == "__main__":
    main()
