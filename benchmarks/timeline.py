# SPDX-License-Identifier: Apache-2.0
"""Where time goes inside examples/hopper_gemm.py: the producer, the consumers and the epilogue of one SM.

    python -m benchmarks timeline                     4096^3 on a Hopper GPU, or a small problem in the simulator
    python -m benchmarks timeline --m 8192 --n 8192 --k 8192 --out out/large

It writes OUT.json (all SMs, for ui.perfetto.dev) and OUT.svg (one SM), checks C, and says what
recording costs on a GPU.
"""

import math
import statistics
import sys
from pathlib import Path

from numba import cuda

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
import numba_cute as cute  # noqa: E402
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402

import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402

PRODUCER, CONSUMERS = ("acquire", "load"), ("wait", "multiply", "drain", "epilogue")


def on_gpu(arrays, dtype):
    """The timeline of one launch, and what recording costs: seconds with it, and without."""
    a, b, c = arrays
    placed = [gemm_host.to_device(x) for x in arrays]
    hardware = cute.utils.HardwareInfo()
    cut = hopper_gemm.USUAL
    args, grid = hopper_gemm.arguments(*placed, dtype, hardware.get_max_active_clusters(cut.sharers), cut)
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


def shares(t):
    """Of the timeline of one SM: the share of each range in the time of the warps that tell it."""
    whole = max(r.stop for r in t.ranges) - min(r.start for r in t.ranges)
    for role, names in (("producer", PRODUCER), ("consumers", CONSUMERS)):
        for name in names:
            spans = [r for r in t.ranges if r.name == name]
            warps = len({r.row for r in spans})
            share = sum(r.stop - r.start for r in spans) / (whole * warps)
            middle = statistics.median(r.stop - r.start for r in spans)
            yield f"{role}: {name}", share, f"{len(spans) // warps} times a warp, {middle:.0f} {t.unit} each"


def arguments(parser):
    for name in "mnk":
        parser.add_argument(f"--{name}", type=int, help="default 4096 on a GPU; 256 x 512 x 512 in the simulator")
    parser.add_argument("--simulate", action="store_true", help="use the simulator even if there is a GPU")
    parser.add_argument("--out", default=str(ROOT / "out" / "hopper_gemm_timeline"), help="of the files")


def run(args):
    gpu = not args.simulate and gemm_host.has_gpu((9, 0), (9, 0))
    m, n, k = (getattr(args, x) or (4096 if gpu else d) for x, d in zip("mnk", (256, 512, 512)))
    dtype = gemm_host.DTYPES["bf16"]
    arrays = gemm_host.problem(m, n, k, dtype)
    t = (on_gpu if gpu else simulated)(arrays, dtype)
    print(f"{m} x {n} x {k}: relative error against float64 {gemm_host.check(*arrays):.2e}")
    assert not t.lost, f"{t.lost} events were lost"
    one = t.only(sm=min(e.sm for e in t))
    Path(args.out).parent.mkdir(parents=True, exist_ok=True)
    t.chrome(f"{args.out}.json")
    one.svg(f"{args.out}.svg")
    print(f"wrote {args.out}.json and {args.out}.svg: {len(t)} events, {len(one)} of SM {one.events[0].sm}")
    if gpu:
        cuda.synchronize()
    found = list(shares(one))
    where = "a GPU" if gpu else "the simulator"
    figures = {f"{name}, share of the time on {where}": Figure(share, "") for name, share, _ in found}
    return Result(figures, {"problem": [m, n, k], "ranges": {name: said for name, _, said in found}})


ENTRY = Entry("timeline", "where time goes inside of examples/hopper_gemm.py", run, arguments, gpu=None)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
