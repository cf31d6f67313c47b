# SPDX-License-Identifier: Apache-2.0
"""The attention forward of e4m3 beside this library's of bf16 and cuDNN's, which has none of 8 bits in torch.

python -m benchmarks attention_fp8                      16 heads
python -m benchmarks attention_fp8 --dims 128 --sizes 4x4096 --rounds 9

V is turned along keys by a kernel of its own in each call, which is timed with it.
"""

import torch

from benchmarks import attention, harness
from benchmarks.harness import Entry
from numba_cute.kernels import flash_attention


def measured(d, batch, rows, causal, options):
    q, k, v = (torch.randn(batch, rows, options.heads, d, device="cuda", dtype=torch.bfloat16) for _ in "qkv")
    narrow, out = [x.to(torch.float8_e4m3fn) for x in (q, k, v)], torch.empty_like(q)
    both = attention.contenders(q, k, v, causal)
    launches = {
        "e4m3": lambda: flash_attention(*narrow, causal=causal, out=out), "bf16": both["ours"], "cudnn": both["cudnn"]
    }  # fmt: skip
    found = attention.raced(launches, "bf16", options)
    name, work = (f(d, batch, rows, causal, options) for f in (attention.name_of, attention.flops))
    return attention.reported(name, found, "e4m3", "bf16", work)


def run(options):
    return attention.every(measured, options)


def arguments(parser):
    parser.add_argument("--dims", type=int, nargs="+", default=[128, 64, 256], help="head dimensions")
    parser.add_argument("--sizes", type=attention.size, nargs="+", default=[(4, 4096), (1, 16384)], help="BATCHxROWS")
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.15, help="seconds")


ENTRY = Entry("attention_fp8", "the attention forward of e4m3 against that of bf16", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
