"""A trial on an H200, to be removed before the merge: python trial_dw.py. Contenders in turns, CUDA graphs of 5 calls."""
import time
import torch
from benchmarks import conv as bench
from numba_cute import kernels
from numba_cute.kernels.conv import gradients
from numba_cute.kernels.conv.plan import Groups
from numba_cute.kernels.conv.windows import Window
from numba_cute.kernels.gemm import Plan

torch.backends.cudnn.benchmark = True
BEGUN = time.time()

def graph_of(call, each=5):
    for _ in range(2): call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(each): call()
    return graph

def turns(calls, rounds=9, each=5, least=0.02):
    """Median microseconds of each, in turns that are as long."""
    graphs = {name: graph_of(call, each) for name, call in calls.items()}
    found = {name: [] for name in calls}
    for i in range(rounds):
        for name, graph in graphs.items():
            graph.replay()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            n = 12
            for _ in range(n): graph.replay()
            end.record(); end.synchronize()
            found[name].append(begin.elapsed_time(end) * 1e3 / each / n)
    return {name: sorted(x)[len(x) // 2] for name, x in found.items()}

def group(tile_n, sharers, parts, tail=False, each=64):
    return Groups(Plan(tile_n, sharers, splits=parts, tail=tail), parts, each)

CASES = {
    "ResNet 7, 3x3": {"default": None, "old": group(192, 2, 1, each=192), "w3": Window(3, 3, 2)},
    "ResNet 28, 3x3": {"default": None, "w1": Window(1, 3, 22), "w3": Window(3, 3, 33)},
    "ResNet 56, 3x3": {"default": None, "w3": Window(3, 3, 132)},
    "ResNet 14, 3x3": {"default": None, "w1": Window(1, 3, 5)},
    "dilated 64": {"default": None, "old": group(192, 2, 1, each=192), "w3": Window(3, 3, 2)},
    "U-Net 64": {"default": None, "w3": Window(3, 3, 5)},
    "VGG 56": {"default": None, "w1": Window(1, 3, 5)},
    "ResNet 14, 3x3, batch 32": {"default": None, "old": group(256, 2, 7)},
    "ResNet 7, 3x3, batch 32": {"default": None},
    "ResNet 56 to 28, 3x3": {"default": None},
    "VGG 224": {"default": None},
}
for case, cuts in CASES.items():
    x, w = bench.drawn(case)
    dy = torch.randn_like(torch.nn.functional.conv2d(x, w, **bench.CASES[case][-1]))
    walk = bench.walk_of(case, w)
    theirs = bench.backward(case, "filters")["cudnn"](x, w, dy)
    want, calls, off = theirs().double(), {"cudnn": theirs}, {}
    for name, cut in cuts.items():
        dw = torch.empty_like(w)
        call = lambda dw=dw, cut=cut: gradients.gradient_of_filters("conv2d", x, dy, dw, walk, cut)
        try:
            call(); torch.cuda.synchronize()
        except Exception as e:
            print(f"{case} {name}: {type(e).__name__} {str(e)[:200]}", flush=True)
            continue
        off[name] = ((dw.double() - want).abs().max() / want.abs().max()).item()
        calls[name] = call
    us = turns(calls)
    base = us["cudnn"]
    print(f"[{time.time()-BEGUN:.0f} s] {case}: cudnn {base:.1f};", "; ".join(f"{n} {us[n]:.1f} = {base/us[n]:.3f} (off {off[n]:.1g})" for n in us if n != "cudnn"), flush=True)

for m, n in ((8192, 4096), (8192, 1024), (1024, 4096), (128, 4096), (16, 4096)):
    x, w = (torch.randn(s, device="cuda").bfloat16() for s in ((32768, 4096), (4096, n)))
    index = torch.randperm(32768, device="cuda")[:m]
    index[3] = index[3]
    got = kernels.matmul(x, w, rows_of_a=index)
    good = not got.isnan().any()
    us = turns({"torch": lambda: x[index] @ w, "ours": lambda: kernels.matmul(x, w, rows_of_a=index), "plain": lambda: kernels.matmul(x[:m], w)})
    print(f"[{time.time()-BEGUN:.0f} s] rows {m}, n {n}: {({k: round(v, 1) for k, v in us.items()})} {us['torch']/us['ours']:.3f} right {good}", flush=True)
