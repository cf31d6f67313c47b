# SPDX-License-Identifier: Apache-2.0
"""The GEMM examples against cuBLAS and Triton on one GPU, interleaved in one process, in two regimes.

burst: a second of rest, 3 launches to warm up, 10 timed. sustained: the GPU is kept busy for seconds first, and then
the contenders take turns of a quarter of a second without a pause; power limits the clock. Each round rotates the
order; what counts is the median of the per-round ratios to cuBLAS.

    python benchmarks/gemm.py                                   bf16 and f16 at 4096 and 8192: about three minutes
    python benchmarks/gemm.py --sizes 4096 256x512x16384 --dtypes bf16 e4m3 --rounds 7 --regimes sustained
    python benchmarks/gemm.py --sizes 8192 --dtypes bf16 --majors mnn --contenders
    python benchmarks/gemm.py --sizes 8192 --dtypes s8*bf16 --contenders          weights A in 8 bits, B in bf16
    python benchmarks/gemm.py --sizes 8192 --example ampere_gemm --contenders
"""

import argparse
import contextlib
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

import ampere_gemm  # noqa: E402
import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402
import hopper_mixed_gemm  # noqa: E402

BURST_REST, BURST_WARM, BURST_LAUNCHES = 1.0, 3, 10
SUSTAINED_WARM, TURN = 3.0, 0.25
L2_TIMES_TWO = 120e6  # bytes: two times the H200's L2


# ---------------------------------------------------------------- contenders: make(a, b, c) gives a launch


def maker(example, dtype):
    """Ours: makes launches of the example."""
    if "*" in dtype:
        return hopper_mixed_gemm.launcher
    if example == "ampere_gemm":
        return lambda a, b, c: ampere_gemm.launcher(a, b, c, dtype)
    return lambda a, b, c: hopper_gemm.launcher(a, b, c, gemm_host.DTYPES[dtype])


def triton_maker(a, b, c, example):
    """Triton's matmul with the best of a few tiles for this problem, as a maker of launches: with TMA and wgmma
    beside the Hopper example, with cp.async and mma.sync beside the Ampere one."""
    if example == "ampere_gemm":
        os.environ["DISABLE_MMA_V3"] = "1"  # read when Triton compiles
    import triton

    import triton_gemm

    configs, launcher = triton_gemm.CONFIGS, triton_gemm.launcher
    if example == "ampere_gemm":
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


# ---------------------------------------------------------------- the GPU's clock and power


class Monitor:
    """Samples of (time, SM clock in MHz, power in W), ten a second, from a running nvidia-smi."""

    def __init__(self):
        self.samples = []
        command = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits", "-lms", "100"]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        except OSError:
            self.process = None
            return
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                clock, power = (float(x) for x in line.split(","))
                self.samples.append((time.time(), clock, power))

    def between(self, start, end):
        """Mean clock and power of a span of time."""
        inside = [s for s in self.samples if start <= s[0] <= end]
        if not inside:
            return None
        return {"sm_mhz": statistics.mean(s[1] for s in inside), "watts": statistics.mean(s[2] for s in inside)}

    def close(self):
        if self.process is not None:
            self.process.terminate()


# ---------------------------------------------------------------- measuring


def timed(launches, count):
    """Seconds for each of `count` launches, taken in turn from `launches` (one for each set of buffers)."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for i in range(count):
        launches[i % len(launches)]()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / count


def rotated(names, round_):
    return names[round_ % len(names) :] + names[: round_ % len(names)]


def burst_round(contenders, order, bar):
    seconds = {}
    for name in order:
        time.sleep(BURST_REST)
        timed(contenders[name], BURST_WARM)
        seconds[name] = timed(contenders[name], BURST_LAUNCHES)
        bar.update()
    return seconds


def sustained_round(contenders, order, bar, counts):
    seconds = {}
    for name in order:
        seconds[name] = timed(contenders[name], counts[name])
        bar.update()
    return seconds


def measure(contenders, regime, rounds, monitor, flops, bar):
    """TFLOP/s of each contender in each round, ratios to cuBLAS, and the GPU's clock and power."""
    names = list(contenders)
    if regime == "sustained":
        per = {name: timed(launches, 20) for name, launches in contenders.items()}
        counts = {name: max(20, int(TURN / s)) for name, s in per.items()}
        until = time.time() + SUSTAINED_WARM
        while time.time() < until:
            for name in names:
                timed(contenders[name], counts[name])
    start, all_rounds = time.time(), []
    for r in range(rounds):
        order = rotated(names, r)
        if regime == "sustained":
            all_rounds.append(sustained_round(contenders, order, bar, counts))
        else:
            all_rounds.append(burst_round(contenders, order, bar))
    result = {"regime": regime, "gpu": monitor.between(start, time.time()), "contenders": {}}
    for name in names:
        rates = [flops / s[name] * 1e-12 for s in all_rounds]
        ratios = [s["cublas"] / s[name] for s in all_rounds]
        result["contenders"][name] = {
            "tflops": rates,
            "tflops_median": statistics.median(rates),
            "ratio_to_cublas_median": statistics.median(ratios),
            "ratio_to_cublas_spread": [min(ratios), max(ratios)],
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


def benchmark(shape, dtype, options, monitor, bar):
    one = arrays(shape, dtype, options.majors)
    sets = max(2, math.ceil(L2_TIMES_TWO / sum(x.nbytes for x in one)))
    buffers = [one] + [arrays(shape, dtype, options.majors) for _ in range(sets - 1)]
    make = maker(options.example, dtype)
    start = time.perf_counter()
    make(*one)()
    torch.cuda.synchronize()
    compile_seconds = time.perf_counter() - start
    makers = {"ours": make, "cublas": gemm_host.cublas}
    ampere = options.example == "ampere_gemm"
    if "triton" in options.contenders and options.majors == "kkn" and (ampere or dtype in ("bf16", "f16")):
        makers["triton"] = triton_maker(*one, options.example)
    contenders = {name: [make(*buffer) for buffer in buffers] for name, make in makers.items()}
    m, n, k = shape
    result = {"m": m, "n": n, "k": k, "dtype": dtype, "majors": options.majors, "example": options.example}
    result["first_call_seconds"] = compile_seconds
    result["relative_error"] = errors(makers, shape, dtype, options.majors)
    result["regimes"] = [
        measure(contenders, regime, options.rounds, monitor, 2 * m * n * k, bar) for regime in options.regimes
    ]
    return result


def machine():
    """The GPU, its driver, and the versions of everything that matters."""

    def installed(name):
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    packages = ("numba-cute", "numba", "numba-cuda", "llvmlite", "cuda-core", "nvidia-nvvm", "torch", "triton")
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": subprocess.run(query, capture_output=True, text=True).stdout.strip(),
        "cuda_of_torch": torch.version.cuda,
        "cublas_of_torch": installed("nvidia-cublas-cu12") or installed("nvidia-cublas"),
        "python": platform.python_version(),
        "versions": {p: installed(p) for p in packages},
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def report(result):
    for regime in result["regimes"]:
        gpu = regime["gpu"]
        state = f", {gpu['sm_mhz']:.0f} MHz, {gpu['watts']:.0f} W" if gpu else ""
        size = "{m} x {n} x {k}".format(**result)
        print(f"{result['dtype']} {result['majors']} {size}, {regime['regime']}{state}")
        for name, r in regime["contenders"].items():
            low, high = r["ratio_to_cublas_spread"]
            print(
                f"    {name:8} {r['tflops_median']:6.0f} TFLOP/s   {r['ratio_to_cublas_median']:.3f} of cuBLAS "
                f"({low:.3f} to {high:.3f})   error {result['relative_error'][name]:.2e}"
            )


def size(text):
    """M, N and K from "8192" or "256x512x16384"."""
    parts = [int(x) for x in text.split("x")]
    if len(parts) not in (1, 3):
        raise argparse.ArgumentTypeError(f"{text}: one number, or MxNxK")
    return tuple(parts * 3)[:3]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=size, nargs="+", default=[(4096,) * 3, (8192,) * 3], help="M = N = K, or MxNxK")
    parser.add_argument("--dtypes", nargs="+", default=["bf16", "f16"], help="bf16, s8*bf16, ...")
    parser.add_argument("--majors", default="kkn", help="the modes along which A, B and C are contiguous")
    parser.add_argument("--example", choices=("hopper_gemm", "ampere_gemm"), default="hopper_gemm")
    parser.add_argument("--regimes", nargs="+", choices=("burst", "sustained"), default=["burst", "sustained"])
    parser.add_argument("--contenders", nargs="*", choices=("triton",), default=["triton"], help="besides cuBLAS")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None, help="default: benchmarks/results/gemm_<gpu>.json")
    options = parser.parse_args()
    problems = [(shape, dtype) for shape in options.sizes for dtype in options.dtypes]
    turns = (2 + len(options.contenders)) * options.rounds * len(options.regimes) * len(problems)
    monitor, results = Monitor(), []
    with tqdm(total=turns, unit="turn", smoothing=0) as bar:
        for shape, dtype in problems:
            bar.set_description(f"{dtype} {shape}")
            results.append(benchmark(shape, dtype, options, monitor, bar))
            torch.cuda.empty_cache()
    monitor.close()
    for result in results:
        report(result)
    gpu = torch.cuda.get_device_name().lower().replace(" ", "_")
    out = options.out or ROOT / "benchmarks" / "results" / f"gemm_{gpu}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"machine": machine(), "results": results}, indent=1) + "\n")
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
