# SPDX-License-Identifier: Apache-2.0
"""The PTX of debugged twins assembles, and watches what it is to watch."""

import pytest

from numba_cute.compiler.host import ptxas
from numba_cute.compiler.host.debugged import twin_ptx
from numba_cute.debugging.instrument import instrument

from .cases import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_cases_assemble_with_all_that_is_watched(case):
    made = instrument(twin_ptx(case.make(True), case.arguments(), "sm_90a"))
    cubin, _ = ptxas.assemble(made.ptx, "sm_90a")
    assert cubin and any(s.file == __file__.replace("test_ptx", "cases") for s in made.sites)
