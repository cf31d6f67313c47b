# SPDX-License-Identifier: Apache-2.0
"""One case of one entry, in a simulation; a process of `pool` that runs such."""

from __future__ import annotations

import re
import time
import traceback
from typing import Any

import numba_cute as cute

from ..pool import serve
from . import attention, conv, gemm, latent, rows
from .draw import Draw, Wrong

OWN = rf"({'|'.join(cute.kernels.__all__)}|Epilogue|gemm): "
"""How a refusal begins: with the entry. All else is what the kernel, or a plan, was not made for: a fault."""
CASES = {**rows.CASES, **gemm.CASES, **attention.CASES, **conv.CASES, **latent.CASES}
CASES |= {f"{name}@{target}": case for target in ("sm_86", "sm_100a") for name, case in tuple(CASES.items())}
CASES |= {f"{name}@sm_89": case for name, case in gemm.CASES.items() if "scaled" not in name}
"""The cases by entry; behind an @ stands the target, where an entry has other kernels."""


def run(name: str, label: str) -> dict[str, Any]:
    """Run the case that a label decides. Gives its kind: right, refused, wrong or error; what was drawn, and why."""
    d, why, kind, (_, _, arch) = Draw(label), "", "right", name.partition("@")
    began = time.process_time()
    checks = d.note("checks", d.one_in(60 if "attention" in name else 8))  # which there take eight times as long
    sms = d.note("sms", d.option(2, 4, 16, 132))
    try:
        with cute.simulation(arch or "sm_90a", checks=checks, sms=sms):
            CASES[name](d)
    except Wrong as e:
        kind, why = "wrong", str(e)
    except cute.CuteError as e:
        told = type(e) is cute.CuteError and re.match(OWN, str(e))
        kind, why = ("refused" if told else "error"), f"{type(e).__name__}: {e}"
    except Exception:
        kind, why = "error", traceback.format_exc()[-1500:]
    return {"kind": kind, "why": why, "notes": d.notes, "drawn": d.drawn, "seconds": time.process_time() - began}


if __name__ == "__main__":
    serve(lambda source: run(*source.split(" ", 1)))
