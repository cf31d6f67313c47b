# SPDX-License-Identifier: Apache-2.0
"""Calls of entries in a CUDA graph: each replay computes of what the tensors hold then."""

import pytest

from numba_cute import kernels


def a(torch, *shape):
    return torch.randn(shape, device="cuda").bfloat16()


def entries(torch):
    w, square = a(torch, 256), a(torch, 256, 256)
    filters = a(torch, 64, 32, 3, 3).contiguous(memory_format=torch.channels_last)
    ends, target = torch.tensor([100, 512], device="cuda", dtype=torch.int32), torch.arange(512, device="cuda") % 256
    pair = a(torch, 2, 256, 256)
    index = torch.arange(512, device="cuda").flip(0)

    def last(x):
        return x.reshape(16, 16, 16, 32).permute(0, 3, 1, 2)

    def heads(x):
        return x.reshape(1, 512, 4, 64)

    return {
        "matmul": lambda x: kernels.matmul(x, square),
        "matmul of rows": lambda x: kernels.matmul(x, square, rows_of_a=index),
        "matmul with parts of K": lambda x: kernels.matmul(x.reshape(16, -1), x.reshape(16, -1).mT),
        "grouped_gemm": lambda x: kernels.grouped_gemm(x, pair, ends),
        "conv2d": lambda x: kernels.conv2d(last(x), filters, padding=1),
        "flash_attention": lambda x: kernels.flash_attention(heads(x), heads(x), heads(x), causal=True),
        "softmax": kernels.softmax,
        "rmsnorm": lambda x: kernels.rmsnorm(x, w),
        "layernorm": lambda x: kernels.layernorm(x, w),
        "cross_entropy": lambda x: kernels.cross_entropy(x, target),
        "topk": lambda x: kernels.topk(x, 8)[0],
        "permute": lambda x: kernels.permute(x.reshape(8, 64, 256), (2, 0, 1)),
        "transpose": kernels.transpose,
    }


NAMES = [
    "matmul", "matmul of rows", "matmul with parts of K", "grouped_gemm", "conv2d", "flash_attention", "softmax",
    "rmsnorm", "layernorm", "cross_entropy", "topk", "permute", "transpose",
]  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("own_stream", [False, True])
@pytest.mark.parametrize("before", [1, 5])
@pytest.mark.parametrize("name", NAMES)
def test_a_replay_computes_of_what_tensors_hold_then(name, before, own_stream):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    call, given = entries(torch)[name], [a(torch, 512, 256) for _ in range(5)]
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream if own_stream else torch.cuda.current_stream()):
        for _ in range(before):
            call(given[0])
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, **({"stream": stream} if own_stream else {})):
        made = [call(x) for x in given]
    for _ in range(3):
        for x in given:
            x.copy_(a(torch, 512, 256))
        for x in made:
            x.fill_(-7)
        graph.replay()
        torch.cuda.synchronize()
        for x, got in zip(given, made, strict=True):
            torch.testing.assert_close(got, call(x), rtol=0, atol=0)
