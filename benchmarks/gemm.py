# SPDX-License-Identifier: Apache-2.0
"""The GEMMs against cuBLAS and Triton on one GPU, interleaved in one process, in two regimes.

burst: a second of rest, 3 launches to warm up, 10 timed. sustained: the GPU is kept busy for seconds first, and then
the contenders take turns of a quarter of a second without a pause; power limits the clock. Each round rotates the
order; what counts is the median of the per-round ratios to cuBLAS (docs/testing.md). "ours" is a launch prepared once,
"matmul" the call of `numba_cute.kernels.matmul`, with what it takes of the host, which is also timed alone: of calls
whose operand lies elsewhere each time.

    python -m benchmarks gemm                                   the table of docs/kernels.md: about two minutes
    python -m benchmarks gemm --sizes 4096 256x512x16384 --dtypes bf16 e4m3 --rounds 7 --regimes sustained
    python -m benchmarks gemm --sizes 8192 --dtypes bf16 --majors mnn --contenders
    python -m benchmarks gemm --sizes 8192 --dtypes s8*bf16 --contenders          weights A in 8 bits, B in bf16
    python -m benchmarks gemm --sizes 8192 --example ampere_gemm --contenders
    python -m benchmarks gemm --sizes 8192 --example warps          matmul's kernel for sm_80, as that GPU would cut it
    python -m benchmarks gemm --dtypes bf16 --sizes 8192 --epilogues amax --contenders      beside torch's kernels
"""

import argparse
import math
import os
import statistics
import sys
import time
from pathlib import Path

import torch
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
import numba_cute as cute  # noqa: E402
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402
from numba_cute.kernels.gemm import launches, warps_plan  # noqa: E402
from numba_cute.testing import Pace, compare  # noqa: E402

import ampere_gemm  # noqa: E402
import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402
import hopper_mixed_gemm  # noqa: E402

PACE = {"rest": 1.0, "burst_warm": 3, "burst": 10}
EPILOGUES = ("bias_gelu", "residual", "amax", "bias_gelu_residual")
L2_TIMES_TWO = 120e6  # bytes: two times the H200's L2


PROBLEMS = [((n, n, n), "bf16") for n in (2048, 3072, 4096, 8192)]
PROBLEMS += [((64, 4096, 4096), "bf16"), ((128, 8192, 8192), "bf16"), ((512, 4096, 4096), "bf16")]
PROBLEMS += [((256, 512, 16384), "bf16"), ((4096,) * 3, "e4m3"), ((8192,) * 3, "e4m3")]
PROBLEMS += [((2176, 2048, 4096), "bf16"), ((1536, 3072, 4096), "bf16")]  # a little more than a round of tiles
FUSED = ((4096,) * 3, "bf16")  # with epilogues too
CALLS = 2000  # of the host's time
OF_WARPS = ("ampere_gemm", "warps")  # examples that multiply with mma.sync


# ---------------------------------------------------------------- contenders: make(a, b, c) gives a launch


def maker(example, dtype):
    """Ours: makes launches of the example."""
    if "*" in dtype:
        return hopper_mixed_gemm.launcher
    if example == "ampere_gemm":
        return lambda a, b, c: ampere_gemm.launcher(a, b, c, dtype)
    if example == "warps":
        return lambda a, b, c: of_warps(a, b, c, gemm_host.DTYPES[dtype])
    return lambda a, b, c: hopper_gemm.launcher(a, b, c, gemm_host.DTYPES[dtype])


def of_warps(a, b, c, dtype):
    """A launch of the kernel that `matmul` has for sm_80, cut as for that GPU's shared memory, on this one's SMs."""
    target = cute.target("sm_80")
    cut = warps_plan.plan(c, a.shape[1], dtype, launches.sms_here(), target)
    args, grid = warps_plan.arguments(a, b, c, dtype, target, cut)
    return cute.launch(warps_plan.kernel_of(cut), grid=grid, block=cut.threads).prepare(*args)


def called(a, b, c):
    """A call of the entry, as a launch."""
    from numba_cute.kernels.gemm import matmul

    turned = b.mT
    return lambda: matmul(a, turned, out=c)


def triton_maker(a, b, c, example):
    """Triton's matmul with the best of a few tiles for this problem, as a maker of launches: with TMA and wgmma
    beside the Hopper example, with cp.async and mma.sync beside the Ampere one."""
    if example in OF_WARPS:
        os.environ["DISABLE_MMA_V3"] = "1"  # read when Triton compiles
    import triton

    from benchmarks.peers import triton_gemm

    configs, launcher = triton_gemm.CONFIGS, triton_gemm.launcher
    if example in OF_WARPS:
        configs, launcher = triton_gemm.ASYNC_CONFIGS, triton_gemm.async_launcher

    def seconds(config):
        try:
            launch = launcher(a, b, c, config)
            launch()
            return triton.testing.do_bench(launch, warmup=50, rep=100)
        except Exception as e:
            tqdm.write(f"triton {config}: {type(e).__name__}: {str(e).splitlines()[0][:100]}")
            return math.inf

    best = min(configs, key=seconds)
    tqdm.write(f"triton: best of {len(configs)} configurations is {best}")
    return lambda a, b, c: launcher(a, b, c, best)


def fused(name):
    """Ours with an epilogue, and torch's kernels for the same, as makers of launches."""
    from numba_cute.kernels.gemm import amax, bias, gelu, residual

    def ours(a, b, c):
        v, r, most = torch.randn(c.shape[1], device="cuda"), torch.randn_like(c), torch.zeros(1, device="cuda")
        v = v.to(c.dtype)
        made = {"bias_gelu": lambda: bias(v) | gelu(), "residual": lambda: residual(r), "amax": lambda: amax(most)}
        made["bias_gelu_residual"] = lambda: bias(v) | gelu() | residual(r)
        dtype = next(d for d in gemm_host.DTYPES.values() if gemm_host.torch_type(d) == a.dtype)
        return hopper_gemm.launcher(a, b, c, dtype, made[name]())

    def torchs(a, b, c):
        f, r = torch.nn.functional, torch.randn_like(c)
        v = torch.randn(c.shape[1], device="cuda").to(c.dtype)
        made = {"bias_gelu": lambda: f.gelu(f.linear(a, b, v), approximate="tanh")}
        made["residual"] = lambda: torch.matmul(a, b.T, out=c).add_(r)
        made["amax"] = lambda: torch.matmul(a, b.T, out=c).abs().max()
        made["bias_gelu_residual"] = lambda: f.gelu(f.linear(a, b, v), approximate="tanh").add_(r)
        return made[name]

    return {f"ours, {name}": ours, f"torch, {name}": torchs}


# ---------------------------------------------------------------- measuring


def measure(contenders, regime, options, flops):
    """TFLOP/s of each contender in each round, ratios to cuBLAS, and the GPU's clock and power."""
    pace = Pace(turn=options.turn, least=options.warm, most=2 * options.warm, **PACE)
    found = compare(contenders, baseline="cublas", regime=regime, rounds=options.rounds, pace=pace, progress=True)
    own = {name: t.clocks for name, t in found.timings.items() if t.clocks}
    mean = {k: statistics.fmean(c[k] for c in own.values()) for k in ("sm_mhz", "watts")} if own else None
    result = {"regime": regime, "gpu": mean, "settled": found.settled, "contenders": {}}
    for name, t in found.timings.items():
        rates = [flops / us * 1e-6 for us in t.samples]
        ratio, interval = found.speed(name)
        result["contenders"][name] = {
            "tflops": rates,
            "tflops_median": statistics.median(rates),
            "ratio_to_cublas_median": ratio,
            "ratio_to_cublas_spread": [interval.low, interval.high],
            "clocks": t.clocks,
        }
    return result


def random(shape, dtype, turned):
    """A random matrix of the device; turned: contiguous along its first mode."""
    if turned:
        return random(shape[::-1], dtype, False).T
    if dtype.is_integer:
        return torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8)
    return torch.randn(shape, device="cuda").to(gemm_host.torch_type(dtype))


def arrays(shape, dtype, majors):
    """A, B and a poisoned C. dtype: "bf16", or "s8*bf16" where A has another type than B."""
    m, n, k = shape
    a_type, b_type = (gemm_host.DTYPES[name] for name in (dtype.split("*") * 2)[:2])
    result = gemm_host.RESULTS[b_type]
    c = torch.full((n, m) if majors[2] == "m" else (m, n), -1, device="cuda").to(gemm_host.torch_type(result))
    a, b = random((m, k), a_type, majors[0] == "m"), random((n, k), b_type, majors[1] == "n")
    return a, b, c.T if majors[2] == "m" else c


def errors(makers, shape, dtype, majors):
    """Each contender's relative error against float64, on a poisoned output."""
    a, b, c = arrays(shape, dtype, majors)
    want = a.double() @ b.double().T
    found = {}
    for name, make in makers.items():
        c.fill_(-1)
        make(a, b, c)()
        found[name] = float(torch.linalg.norm(c.double() - want) / torch.linalg.norm(want))
    return found


def benchmark(shape, dtype, options, epilogues):
    one = arrays(shape, dtype, options.majors)
    sets = max(2, math.ceil(L2_TIMES_TWO / sum(x.nbytes for x in one)))
    buffers = [one] + [arrays(shape, dtype, options.majors) for _ in range(sets - 1)]
    make = maker(options.example, dtype)
    start = time.perf_counter()
    make(*one)()
    torch.cuda.synchronize()
    compile_seconds = time.perf_counter() - start
    makers = {"ours": make, "cublas": gemm_host.cublas}
    ampere = options.example in OF_WARPS
    if "matmul" in options.contenders and options.example == "hopper_gemm" and "*" not in dtype:
        makers["matmul"] = called
    if "triton" in options.contenders and options.majors == "kkn" and (ampere or dtype in ("bf16", "f16")):
        makers["triton"] = triton_maker(*one, options.example)
    plain = dict(makers)  # those whose results are compared
    for name in epilogues:
        makers |= fused(name)
    contenders = {name: [make(*buffer) for buffer in buffers] for name, make in makers.items()}
    m, n, k = shape
    result = {"m": m, "n": n, "k": k, "dtype": dtype, "majors": options.majors, "example": options.example}
    result["first_call_seconds"] = compile_seconds
    result["relative_error"] = errors(plain, shape, dtype, options.majors)
    result["regimes"] = [measure(contenders, regime, options, 2 * m * n * k) for regime in options.regimes]
    return result


def figures(results):
    """The rate of each contender, by type, majors, size and regime."""
    out = {}
    for r in results:
        for regime in r["regimes"]:
            for name, c in regime["contenders"].items():
                what = "{dtype} {majors} {m} x {n} x {k}".format(**r)
                out[f"{what}, {regime['regime']}: {name}"] = Figure(
                    c["tflops_median"], "TFLOP/s", True, (min(c["tflops"]), max(c["tflops"])), not is_ours(name)
                )
    return out


def is_ours(name):
    """Whether a contender is of this library."""
    return name.split(",")[0] in ("ours", "matmul")


def host_times(n=256):
    """Microseconds of the host for a call, whose first operand lies elsewhere each time, and its result too."""
    from numba_cute.kernels.gemm import bias, gelu, matmul

    xs = [random((n, n), gemm_host.DTYPES["bf16"], False) for _ in range(CALLS)]
    w, v, kept = random((n, n), gemm_host.DTYPES["bf16"], False).mT, torch.randn(n, device="cuda").bfloat16(), []
    f = torch.nn.functional
    calls = {
        "matmul": lambda x: matmul(x, w),
        "torch.matmul": lambda x: torch.matmul(x, w),
        "matmul, bias and GELU": lambda x: matmul(x, w, epilogue=bias(v) | gelu()),
        "torch, bias and GELU": lambda x: f.gelu(f.linear(x, w.mT, v), approximate="tanh"),
    }
    out = {}
    for name, call in calls.items():
        times = []
        for _ in range(4):
            start = time.perf_counter()
            kept.extend(call(x) for x in xs)
            times.append((time.perf_counter() - start) / CALLS * 1e6)
            torch.cuda.synchronize()
            kept.clear()
        out[f"host: {name}"] = Figure(
            statistics.median(times[1:]), "us", False, (min(times[1:]), max(times[1:])), not is_ours(name)
        )
    return out


def size(text):
    """M, N and K from "8192" or "256x512x16384"."""
    parts = [int(x) for x in text.split("x")]
    if len(parts) not in (1, 3):
        raise argparse.ArgumentTypeError(f"{text}: one number, or MxNxK")
    return tuple(parts * 3)[:3]


def arguments(parser):
    parser.add_argument("--sizes", type=size, nargs="+", help="M = N = K, or MxNxK; by default those of the table")
    parser.add_argument("--dtypes", nargs="+", default=["bf16"], help="of `sizes`: bf16, s8*bf16, ...")
    parser.add_argument("--majors", default="kkn", help="the modes along which A, B and C are contiguous")
    parser.add_argument("--example", choices=("hopper_gemm", *OF_WARPS), default="hopper_gemm")
    parser.add_argument("--regimes", nargs="+", choices=("burst", "sustained"), default=["sustained"])
    parser.add_argument(
        "--contenders", nargs="*", choices=("triton", "matmul"), default=["triton", "matmul"], help="besides cuBLAS"
    )
    parser.add_argument(
        "--epilogues", nargs="*", choices=EPILOGUES, default=("bias_gelu", "residual"), help="beside torch's kernels"
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="no problem begins after so many")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.25, help="seconds of a turn")
    parser.add_argument("--warm", type=float, default=3.0, help="least seconds of the warm-up")


def run(options):
    host = host_times() if "matmul" in options.contenders else {}
    results, own = [], options.sizes and [(shape, dtype) for shape in options.sizes for dtype in options.dtypes]
    began = time.perf_counter()
    for shape, dtype in own or PROBLEMS:
        if time.perf_counter() - began > options.seconds:
            print(f"left out for want of time: {shape} {dtype}")
            continue
        epilogues = options.epilogues if own or (shape, dtype) == FUSED else ()
        results.append(benchmark(shape, dtype, options, epilogues))
        torch.cuda.empty_cache()
    return Result({**figures(results), **host}, {"results": results})


ENTRY = Entry("gemm", "the GEMMs against cuBLAS and Triton", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
