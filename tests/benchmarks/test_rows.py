# SPDX-License-Identifier: Apache-2.0
"""The rows' benchmark calls entries with the arguments that they have: its launches are taken, and nothing runs."""

import pytest

from numba_cute.isa.form.targets import answering_for
from numba_cute.seam.marks.launches import launching

torch = pytest.importorskip("torch")

from benchmarks import rows  # noqa: E402


@pytest.mark.parametrize("op", rows.OPS)
def test_each_operation_is_launched(op, monkeypatch):
    monkeypatch.setattr(rows, "DEVICE", "cpu")
    monkeypatch.setattr(rows, "compiled", lambda function: function)
    found, n = [], 4096 if op == "rotary" else 64
    ours = rows.contenders(op, 4, n, False)["ours"]
    with answering_for("sm_90a"), launching(lambda kernel, *_: found.append(kernel.__name__)):
        ours()
    assert found and rows.matrices(op, n) >= 1
