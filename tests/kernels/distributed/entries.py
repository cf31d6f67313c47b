# SPDX-License-Identifier: Apache-2.0
"""Call the entries of several GPUs on one that is pretended, the second of two ranks, up to the driver: what each call
plans, and what is refused. For a process of its own: `python -m tests.kernels.distributed.entries` prints JSON."""

from __future__ import annotations

import gc
import json
import types
import weakref
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.kernels.distributed import (
    ExpertParallel,
    all_gather_matmul,
    attention,
    experts,
    experts_plan,
    keys_plan,
    launches,
    matmul_all_reduce,
    matmul_reduce_scatter,
    plan,
    ring_attention,
    spaces,
    zigzag,
)  # fmt: skip
from numba_cute.kernels.gemm import Epilogue, grouped, residual, rows, swiglu
from numba_cute.seam.hooks.driver import DRIVER
from numba_cute.utils.distributed import Signals

from ..pretended import pretended

RANKS, RANK = 2, 1


def symmetric(x: Any, group: Any = None, assumed_align: int | None = None) -> Any:
    """A tensor of as much memory on each rank."""
    peers = torch.zeros(RANKS, *x.shape, dtype=x.dtype)
    return cute.runtime.from_dlpack(peers.permute(*range(1, peers.ndim), 0), assumed_align=assumed_align)


def signals(slots: int, *_: Any) -> Signals:
    flags = torch.zeros(RANKS, slots + 1, RANKS, dtype=torch.int32).permute(1, 2, 0)
    return Signals(cute.runtime.from_dlpack(flags), RANK)


class Group:
    """The ranks of a group that is not there, which give all the same."""

    group, name, world, rank = None, "pretended", RANKS, RANK

    def gather(self, mine: Any) -> list[Any]:
        return [mine] * RANKS


def group(*_: Any) -> Any:
    return Group()


def calls(a: Any, b: Any) -> dict[str, Any]:
    """Calls of each entry, by name."""
    m = RANKS * a.shape[0]
    like = torch.zeros(m, b.shape[1], dtype=a.dtype)
    moe, x = ExpertParallel(64, 256, 2, 8, dtype=a.dtype), torch.zeros(50, 256, dtype=a.dtype)
    choices, weights = torch.zeros(50, 2, dtype=torch.int64), torch.zeros(50, 2)
    up, down = torch.zeros(4, 384, 256, dtype=a.dtype), torch.zeros(4, 256, 192, dtype=a.dtype)
    q, k, v = (torch.zeros(2, 128, heads, 64, dtype=a.dtype) for heads in (4, 2, 2))
    return {
        "experts": lambda: moe.matmul_combine(moe.dispatch_matmul(x, choices, up, epilogue=swiglu()), down, weights),
        "experts without a product": lambda: moe.combine(moe.dispatch(x, choices), weights),
        "ring": lambda: ring_attention(q, k, v),
        "ring, causal": lambda: ring_attention(q, k, v, causal=True, return_lse=True)[1],
        "ring, zigzag": lambda: ring_attention(q, k, v, causal=True, order="zigzag"),
        "gather": lambda: all_gather_matmul(a, b),
        "gather, pairs": lambda: all_gather_matmul(a, b, epilogue=swiglu()),
        "gather, a matrix": lambda: all_gather_matmul(a, b, epilogue=residual(like)),
        "gather to float32": lambda: all_gather_matmul(a, b, out_dtype=torch.float32),
        "scatter": lambda: matmul_reduce_scatter(a, b),
        "one shot": lambda: matmul_all_reduce(a, b, algorithm="one_shot"),
        "two shots": lambda: matmul_all_reduce(a, b, algorithm="two_shot"),
    }


def refused(a: Any, b: Any) -> dict[str, Any]:
    """Calls that are refused, by what is said."""
    like, heads = torch.zeros(RANKS * a.shape[0], b.shape[1], dtype=a.dtype), torch.zeros(3, 2, 128, 4, 64)
    odd, even = (torch.zeros(1, rows, 2, 64, dtype=a.dtype) for rows in (17, 48))
    return {
        "ring_attention: order 'striped' must be": lambda: ring_attention(even, even, even, order="striped"),
        "q has 17 rows, and zigzag order needs two chunks": lambda: ring_attention(
            odd, odd, odd, causal=True, order="zigzag"
        ),
        "zigzag: mode 1 of x has 17 rows, and 2 ranks need 4 chunks .*: pad it": lambda: zigzag(odd),
        "zigzag: x is .* give a tensor that has a mode 4": lambda: zigzag(odd, dim=4),
        "zigzag: x is int 3; give a tensor": lambda: zigzag(3, dim=0),
        "same on all ranks; by rank it is: .'causal, zigzag', 'causal, contiguous'.": lambda: differs(
            lambda: ring_attention(even, even, even, causal=True, order="zigzag"), "causal, contiguous"
        ),
        "all_gather_matmul: a is float32 .*; its elements must be bfloat16 or float16": lambda: all_gather_matmul(
            a.float(), b.float()
        ),
        "all_gather_matmul: a is None; give a tensor": lambda: all_gather_matmul(None, b),
        "all_gather_matmul: a begins at no multiple of 16 bytes": lambda: all_gather_matmul(
            torch.zeros(a.numel() + 1, dtype=a.dtype)[1:].view(a.shape), b
        ),
        "all_gather_matmul: a is .* and b .*; both must have one element type": lambda: all_gather_matmul(a, b[:8]),
        "all_gather_matmul: the result has 3 columns .*: pad b": lambda: all_gather_matmul(a, b[:, :3]),
        "all_gather_matmul: cut is 3; give a Plan": lambda: all_gather_matmul(a, b, cut=3),
        "all_gather_matmul: epilogue is int 3; give an Epilogue": lambda: all_gather_matmul(a, b, epilogue=3),
        "all_gather_matmul: out is .*; its shape must be": lambda: all_gather_matmul(a, b, out=like[:4]),
        "all_gather_matmul: out_dtype torch.int8: give one of": lambda: all_gather_matmul(a, b, out_dtype=torch.int8),
        "the epilogue's .* along 'both' must have the shape": lambda: all_gather_matmul(
            a, b, epilogue=residual(like[:8])
        ),
        "along 'rows': its shape must be": lambda: all_gather_matmul(
            a, b, epilogue=Epilogue(lambda x, y: x + y, rows(torch.zeros(8)))
        ),
        "matmul_reduce_scatter: a has 255 rows, and each of 2 ranks owns": lambda: matmul_reduce_scatter(a[:255], b),
        "algorithm 'ring' must be": lambda: matmul_all_reduce(a, b, algorithm="ring"),
        "requires a gradient.*for gradients call it in a torch.autograd.Function": lambda: matmul_all_reduce(
            a.detach().requires_grad_(), b
        ),
        "requires a gradient.*for gradients gather k and v": lambda: ring_attention(*heads.requires_grad_().unbind()),
    }  # fmt: skip


def differs(call: Any, other: str) -> Any:
    """Make a call in which another rank gives something else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Group, "gather", lambda self, mine: [mine, other])
        return call()


def said(call: Any) -> str:
    try:
        call()
    except CuteError as e:
        return str(e)
    return ""


def main() -> None:
    found: dict[str, Any] = {"planned": {}, "refused": {}, "shapes": {}}
    with pretended() as gpu, pytest.MonkeyPatch.context() as patch:
        for module in (launches, attention, experts):
            patch.setattr(module, "group_of", group)
        for module in (launches, attention):
            patch.setattr(module, "from_symmetric", symmetric)
        patch.setattr(DRIVER, "pinned", lambda words: np.zeros(words, np.uint32))
        patch.setattr(spaces, "from_symmetric", symmetric)
        patch.setattr(spaces, "Signals", types.SimpleNamespace(create=signals))
        memory = types.SimpleNamespace(empty=lambda *shape, **how: torch.empty(*shape, **how))
        patch.setattr(dist, "_symmetric_memory", memory, raising=False)
        patch.setitem(__import__("sys").modules, "torch.distributed._symmetric_memory", memory)
        planned = [0]

        def counted(made: Any) -> Any:
            def call(*args: Any, **named: Any) -> Any:
                planned[0] += 1
                return made(*args, **named)

            return call

        planners = (experts_plan, "route"), (experts_plan, "dispatch"), (experts_plan, "combine")
        for owner, name in (
            (plan.plan, "arguments"), (grouped, "arguments_of"), (keys_plan, "ring_attention"), *planners
        ):  # fmt: skip
            patch.setattr(owner, name, counted(getattr(owner, name)))
        a, b = torch.zeros(256, 512, dtype=torch.bfloat16), torch.zeros(384, 512, dtype=torch.bfloat16).mT
        for name, call in calls(a, b).items():
            for _ in range(6):  # what is remembered is told from what is not by a few calls
                found["shapes"][name] = list(call().shape)
            before, launched = planned[0], len(gpu.seen)
            for _ in range(10):
                call()
            found["planned"][name] = [planned[0] - before, len(gpu.seen) - launched]
        before, given = planned[0], weakref.ref(next(iter(spaces._spaces.values())))
        spaces.forget()
        gc.collect()
        found["held after forget"] = given() is not None
        calls(a, b)["gather"]()
        found["planned after forget"] = planned[0] - before
        for rule, call in refused(a, b).items():
            found["refused"][rule] = said(call)
        found["zigzag"] = [zigzag(torch.arange(16).view(2, 8), dim=dim).tolist() for dim in (1, -1)]
        found["zigzag, rows"] = zigzag(torch.arange(16), dim=0).tolist()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
