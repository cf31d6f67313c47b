"""A trial on an H200, to be removed before the merge: python trial_dw.py [dw|rows|parts]. Times are of CUDA graphs of 10 calls."""
import itertools, math, sys, time
import torch
from benchmarks import conv as bench
from numba_cute import kernels
from numba_cute.kernels import entry
from numba_cute.kernels.conv import gradients, plan, sums as sums_of, windows
from numba_cute.kernels.conv.windows import Window, pitch_of, places_of
from numba_cute.kernels.gemm import Plan

torch.backends.cudnn.benchmark = True

def timed(call, rounds=5, each=10):
    for _ in range(3): call()
    torch.cuda.synchronize()
    t = time.perf_counter()
    for _ in range(20): call()
    host = (time.perf_counter() - t) / 20 * 1e6
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(each): call()
    graph.replay(); torch.cuda.synchronize()
    found = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(4): graph.replay()
        end.record(); end.synchronize()
        found.append(begin.elapsed_time(end) * 1e3 / each / 4)
    return sorted(found)[len(found) // 2], host

def dw():
    for case in bench.CASES:
        x, w = bench.drawn(case)
        y = torch.nn.functional.conv2d(x, w, **bench.CASES[case][-1])
        dy = torch.randn_like(y)
        walk = bench.walk_of(case, w)
        theirs = bench.backward(case, "filters")["cudnn"](x, w, dy)
        want = theirs()
        outs, channels, taps = w.shape[0], w.shape[1], walk.taps
        flops = 2 * dy.numel() * w[0].numel()
        base, _ = timed(theirs)
        print(f"{case}: cudnn {base:.1f} us {flops/base*1e-6:.0f} TFLOP/s", flush=True)
        groups = plan.groups(entry.WARPGROUPS, outs, channels, taps[::-1], dy.numel() // outs, 64, 132)
        default = plan.chosen_parts(entry.WARPGROUPS, x, outs, walk, dy.numel() // outs)
        cuts = {"default": None, "groups": groups}
        pitch = pitch_of(walk, tuple(x.shape[2:]))
        if pitch is not None and taps[-1] > 1:
            depths = math.ceil(places_of(walk, x.shape[0], tuple(x.shape[2:]), pitch) / 64)
            for rows in (3, 2, 1):
                tiles = math.ceil(3 / rows) * math.ceil(outs / 64) * math.ceil(channels / 64)
                for n in (1, 2, 3) if rows > 1 else (1, 2, 4):
                    parts = min(depths, 132 * n // tiles)
                    if parts: cuts[f"windows {rows} {parts}"] = Window(rows, 3, parts)
        for name, cut in cuts.items():
            try:
                dw = torch.empty_like(w)
                call = lambda: gradients.gradient_of_filters("conv2d", x, dy, dw, walk, cut)
                call(); torch.cuda.synchronize()
                off = ((dw.double() - want.double()).abs().max() / want.double().abs().max()).item()
                us, host = timed(call)
                print(f"  {name} {cut if cut else default}: {us:.1f} us, {base/us:.3f} of cudnn, off {off:.2g}, host {host:.0f}", flush=True)
            except Exception as e:
                print(f"  {name}: {type(e).__name__} {str(e)[:300]}", flush=True)

def parts():
    """What the kernel takes without the sums, and the sums alone."""
    for case in ("ResNet 56, 3x3", "ResNet 28, 3x3", "ResNet 7, 3x3"):
        x, w = bench.drawn(case); walk = bench.walk_of(case, w)
        dy = torch.randn_like(torch.nn.functional.conv2d(x, w, **bench.CASES[case][-1]))
        outs = w.shape[0]; n = dy.numel() // outs
        for name, cut in (("windows", Window(3, 3, max(1, 132 // (outs // 64) ** 2))), ("groups", plan.groups(entry.WARPGROUPS, outs, outs, (3, 3), n, 64, 132))):
            f = lambda: gradients._by_tma(entry.WARPGROUPS, x, dy, outs, walk, cut)
            total = f(); us, _ = timed(f)
            part = total[0].view(outs, 3, 3, -1)[..., : x.shape[1]].movedim(-1, 1)
            add, _ = timed(lambda: sums_of.ADD_UP((total, w), (part.stride(),)))
            print(f"{case} {name} {cut}: main {us:.1f} us, sums {add:.1f} us of {total.nbytes/1e6:.1f} MB", flush=True)

def rows():
    for m, of, n, k in ((8192, 32768, 4096, 4096), (8192, 32768, 1024, 4096), (8192, 32768, 512, 4096), (1024, 32768, 4096, 4096), (128, 32768, 4096, 4096), (16, 32768, 4096, 4096)):
        x, w = (torch.randn(s, device="cuda").bfloat16() for s in ((of, k), (k, n)))
        index = torch.randperm(of, device="cuda")[:m]
        want = x[index] @ w
        base, _ = timed(lambda: x[index] @ w)
        plain, _ = timed(lambda: kernels.matmul(want if k == n else x[:m], w))
        forms = {"default": None, "inside": Plan(256, 2) if m > 128 else Plan(128, 1, 2)}
        for name, cut in forms.items():
            got = kernels.matmul(x, w, rows_of_a=index, cut=cut)
            off = ((got.double() - want.double()).abs().max() / want.double().abs().max()).item()
            us, host = timed(lambda: kernels.matmul(x, w, rows_of_a=index, cut=cut))
            print(f"rows {m} of {of}, n {n}, k {k}: torch {base:.1f} us, ours without an index {plain:.1f}, {name} {us:.1f}, {base/us:.3f} of torch, off {off:.2g}, host {host:.0f}", flush=True)
        from numba_cute.kernels.gemm import picked
        made = picked.rows_like(x, m)
        us, _ = timed(lambda: picked.PICK((x.view(torch.uint8), index, made.view(torch.uint8))))
        theirs, _ = timed(lambda: x.index_select(0, index))
        print(f"  pick alone {us:.1f}, index_select {theirs:.1f}", flush=True)

for name in sys.argv[1:] or ("rows", "parts", "dw"):
    globals()[name]()
