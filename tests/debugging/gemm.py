# SPDX-License-Identifier: Apache-2.0
"""How much slower the Hopper GEMM is that is debugged, on a GPU with PyTorch."""

from typing import Any


def measure(size: int = 8192, rounds: int = 20) -> None:
    """Print the times of a launch, plain and debugged, with all checks and with those of waits alone."""
    import torch

    import numba_cute as cute
    from numba_cute.compiler.host.debugged import Board
    from numba_cute.compiler.host.launching import Launch, launched
    from numba_cute.compiler.host.mapped import mapped
    from numba_cute.debugging import pieces
    from numba_cute.debugging.instrument import CHECKS
    from numba_cute.debugging.launches import Debugged, _Run
    from numba_cute.debugging.memory import names_of
    from numba_cute.kernels.gemm.dense import THREADS
    from numba_cute.kernels.gemm.launches import clusters_here, sms_here
    from numba_cute.kernels.gemm.plan import RESULTS, arguments, kernel_of, plan

    a, b = (torch.randn(size, size, device="cuda").to(torch.bfloat16) for _ in range(2))
    c = torch.zeros(size, size, device="cuda", dtype=torch.bfloat16)
    dtype = cute.BFloat16
    cut = plan(c, size, dtype, sms_here(), None, RESULTS[dtype].width, 1)
    args, grid = arguments(a, b, c, dtype, clusters_here(cut), cut, None, None)
    kernel = kernel_of(cut)

    def timed(launch: Any) -> float:
        """Microseconds a launch. Python launches a twin in some 0.6 ms: a GEMM must take longer."""
        for _ in range(3):
            launch()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(rounds):
            launch()
        stop.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(stop) / rounds * 1000)

    plain = Launch(kernel, grid, THREADS, None, 0, 0)
    given = mapped(kernel, args)
    compiled = plain._compiled(given)
    usual = timed(lambda: launched(compiled, given, plain._setting))
    want = c.clone()
    print(f"{size}^3, {cut}: {usual:.1f} us")
    for checks in (CHECKS, ("waits",)):
        run = _Run(Debugged(kernel, 2.0, 60.0, checks, None, ()), Launch(kernel, grid, THREADS, None, 0, 0), given,
                   names_of(kernel, given))  # fmt: skip
        board = Board(pieces.RECORD * pieces.MOST, run.control_bytes)
        run.set(board.records, board.control)
        c.zero_()
        took = timed(lambda run=run: launched(run.twin, run.args, run.setting))
        same = torch.equal(c, want)
        print(f"  debugged, {', '.join(checks)}: {took:.1f} us, {took / usual:.2f} times; the same result: {same}")
