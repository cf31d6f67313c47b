# SPDX-License-Identifier: Apache-2.0
"""Where time goes inside examples/hopper_gemm.py: the producer, the consumers and the epilogue of one SM.

    python benchmarks/timeline.py                     4096^3 on a Hopper GPU, or a small problem in the simulator
    python benchmarks/timeline.py --m 8192 --n 8192 --k 8192 --out out/large

It writes OUT.json (all SMs, for ui.perfetto.dev) and OUT.svg (one SM), checks C, and says what
recording costs on a GPU.
"""

import argparse
import math
import statistics
import sys
from pathlib import Path

from numba import cuda

import numba_cute as cute

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402

PRODUCER, CONSUMERS = ("acquire", "load"), ("wait", "multiply", "drain", "epilogue")


def on_gpu(arrays, dtype):
    """The timeline of one launch, and what recording costs: seconds with it, and without."""
    a, b, c = arrays
    placed = [gemm_host.to_device(x) for x in arrays]
    hardware = cute.utils.HardwareInfo()
    cut = hopper_gemm.USUAL
    args, grid = hopper_gemm.arguments(*placed, dtype, hardware.get_max_active_clusters(cut.cluster_m), cut)
    launch = cute.launch(hopper_gemm.kernel_of(cut), grid=grid, block=hopper_gemm.THREADS)
    launch(*args)
    tiles = math.ceil(a.shape[0] / hopper_gemm.TILE_M) * math.ceil(b.shape[0] / cut.tile_n)
    most = 4 * math.ceil(a.shape[1] / 64) * math.ceil(tiles / math.prod(grid)) + 64  # 4 events for each K tile
    t = cute.timeline(launch, *args, events=most)
    c[...] = gemm_host.to_host(placed[2], c)
    plain = gemm_host.seconds_per_call(launch.prepare(*args))
    recorded = (max(t.time_of(e) for e in t) - min(t.time_of(e) for e in t)) * 1e-9
    print(f"recorded in {recorded * 1e6:.0f} us; without recording a launch takes {plain * 1e6:.0f} us")
    return t


def simulated(arrays, dtype):
    """The timeline of one cluster in the simulator."""
    args, grid = hopper_gemm.arguments(*arrays, dtype, 1)
    return cute.timeline(cute.simulate(hopper_gemm.gemm)[grid, hopper_gemm.THREADS], *args)


def told(t):
    """What the timeline of one SM says, in words: the share of each range in the time of the warps that tell it."""
    whole = max(r.stop for r in t.ranges) - min(r.start for r in t.ranges)
    for role, names in (("producer", PRODUCER), ("consumers", CONSUMERS)):
        for name in names:
            spans = [r for r in t.ranges if r.name == name]
            warps = len({r.row for r in spans})
            share = sum(r.stop - r.start for r in spans) / (whole * warps)
            middle = statistics.median(r.stop - r.start for r in spans)
            yield f"{role}: {name:9} {len(spans) // warps:5} times a warp, {middle:8.0f} {t.unit} each, {share:6.1%}"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in "mnk":
        options.add_argument(f"--{name}", type=int, help="default 4096 on a GPU; 256 x 512 x 512 in the simulator")
    options.add_argument("--simulate", action="store_true", help="use the simulator even if there is a GPU")
    options.add_argument("--out", default=str(ROOT / "out" / "hopper_gemm_timeline"), help="of the files")
    args = options.parse_args()
    gpu = not args.simulate and gemm_host.has_gpu((9, 0), (9, 0))
    m, n, k = (getattr(args, x) or (4096 if gpu else d) for x, d in zip("mnk", (256, 512, 512)))
    dtype = gemm_host.DTYPES["bf16"]
    arrays = gemm_host.problem(m, n, k, dtype)
    t = (on_gpu if gpu else simulated)(arrays, dtype)
    print(f"{m} x {n} x {k}: relative error against float64 {gemm_host.check(*arrays):.2e}")
    assert not t.lost, f"{t.lost} events were lost"
    one = t.only(sm=min(e.sm for e in t))
    print(*told(one), sep="\n")
    Path(args.out).parent.mkdir(parents=True, exist_ok=True)
    t.chrome(f"{args.out}.json")
    one.svg(f"{args.out}.svg")
    print(f"wrote {args.out}.json and {args.out}.svg: {len(t)} events, {len(one)} of SM {one.events[0].sm}")
    if gpu:
        cuda.synchronize()


if __name__ == "__main__":
    main()
