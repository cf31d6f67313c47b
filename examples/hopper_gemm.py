# SPDX-License-Identifier: Apache-2.0
"""A Hopper GEMM at the speed of cuBLAS, from the command line: C = A @ B.T, with A (M, K) and B (N, K).

The kernel is one plain @cuda.jit kernel, numba_cute/kernels/gemm/dense.py, to be read from top to bottom: persistent
and warp-specialised, of three warpgroups one feeds shared memory by TMA, and two multiply with wgmma and store by TMA.
CTAs of a cluster share each tile of B by multicast, or the products along K, whose sums they read from each other's
shared memory. plan.py beside it chooses how a problem is cut, by a model that `--tune` holds against measurements. What
becomes of the sums may be a function of yours (docs/kernels.md). `numba_cute.kernels.matmul` is all this for PyTorch.

    python examples/hopper_gemm.py                     4096^3 on a Hopper GPU, or a small problem in the simulator
    python examples/hopper_gemm.py --m 1000 --n 1048 --k 1016 --dtype f16 --majors mnn
    python examples/hopper_gemm.py --m 256 --n 512 --k 16384 --dtype e4m3
    python examples/hopper_gemm.py --m 512 --n 512 --k 8192 --tune   what `plan` chooses, beside what is measured
    python examples/hopper_gemm.py --arch sm_90a --compile-only      PTX and cubin into out/, with no GPU
"""

import sys

from numba_cute.kernels.gemm.dense import (  # noqa: F401 (for those who import this)
    CONSUMER_REGISTERS,
    K_BLOCKS,
    PRODUCER_REGISTERS,
    ROW,
    THREADS,
    TILE_M,
    gemm,
)  # fmt: skip
from numba_cute.kernels.gemm.launches import launch_of, launcher, simulate, sms_here  # noqa: F401
from numba_cute.kernels.gemm.plan import (  # noqa: F401
    USUAL,
    Plan,
    arguments,
    cuts,
    kernel_of,
    mma_op,
    modelled,
    plan,
    smem_layout,
    sums_of,
)  # fmt: skip
from numba_cute.kernels.gemm.tuned import tuned

import gemm_host
from gemm_host import DTYPES, check, cover, operand, problem  # noqa: F401

TILE_N, CLUSTER_M = USUAL.tile_n, USUAL.sharers
GROUP_M = 16  # tiles along M that are done side by side, so that they share B in L2
STAGES, STORE_STAGES = 4, 2  # of the Hopper examples that are cut in one way


def main():
    options = gemm_host.parser(__doc__, tuple(DTYPES), "sm_90a", "256 x 512 x 128")
    options.add_argument("--majors", default="kkn", help="the mode along which A, B and C are contiguous: kkn to mnm")
    options.add_argument("--tune", action="store_true", help="measure what `plan` would choose among")
    options.add_argument("--parts", type=int, help="into how many K is split; default: what `plan` finds best")
    args = options.parse_args()
    dtype = DTYPES[args.dtype]
    if args.majors not in {a + b + c for a in "km" for b in "kn" for c in "nm"}:
        options.error(f"--majors {args.majors}: a letter each for A (k or m), B (k or n) and C (n or m)")
    if dtype.width != 16 and args.majors[:2] != "kk":
        options.error(f"--majors {args.majors}: wgmma takes A and B of {dtype} contiguous along K alone: kkn or kkm")
    gpu = not (args.simulate or args.compile_only) and gemm_host.has_gpu((9, 0), (9, 0))
    small = (256, 512, 128)
    m, n, k = (getattr(args, x) or (4096 if gpu or args.compile_only else d) for x, d in zip("mnk", small, strict=True))
    need(options, "A", args.majors[0], {"m": m, "k": k}, dtype)
    need(options, "B", args.majors[1], {"n": n, "k": k}, dtype)
    need(options, "C", args.majors[2], {"n": n, "m": m}, gemm_host.RESULTS[dtype])
    arrays = problem(m, n, k, dtype, majors=args.majors)
    what = f"{args.dtype}, {args.majors}"
    if args.compile_only:
        gemm_host.compile_only(gemm, arguments(*arrays, dtype, 66)[0], f"hopper_gemm_{args.dtype}", args.arch)
    elif gpu and args.tune:
        on_device = [gemm_host.to_device(x) for x in arrays]
        found = tuned.tune(*on_device, dtype)
        chosen = plan(on_device[2], k, dtype, sms_here())
        print(f"{found}\n`plan` chooses {chosen}: {found.slower(chosen._asdict()):.1%} slower than the best")
    elif gpu:
        gemm_host.run_on_gpu(arrays, lambda a, b, c: launcher(a, b, c, dtype, parts=args.parts), what)
    else:
        cut = Plan(parts=args.parts or 1)
        run = lambda: simulate(*arrays, dtype, cut, progress=sys.stderr.isatty())  # noqa: E731
        gemm_host.simulate(arrays, run, what)


def need(options, name, mode, extents, dtype):
    """TMA's rule: rows of whole 16 bytes."""
    step = 128 // dtype.width
    if extents[mode] % step:
        options.error(f"--{mode} {extents[mode]}: TMA needs rows of {name} of 16-byte multiples: a multiple of {step}")


if __name__ == "__main__":
    main()
