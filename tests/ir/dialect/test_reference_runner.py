# SPDX-License-Identifier: Apache-2.0
"""`tests.reference_ir` counts what holds and names what does not."""

import json

import pytest

pytest.importorskip("xdsl")
pytest.importorskip("filecheck")

from tests import reference_ir  # noqa: E402

RIGHT = """// RUN: cute-opt %s -split-input-file | cute-opt | FileCheck %s
// CHECK: func.func @f(%[[A:.+]]: !cute.shape<"4">)
// CHECK: cute.print(%[[A]])
func.func @f(%a: !cute.shape<"4">) {
  cute.print(%a) : !cute.shape<"4">
  return
}
"""
WRONG = """// RUN: cute-opt %s -split-input-file -verify-diagnostics
// expected-error@+1 {{in other words}}
func.func @f(%a: !cute.shape<"4,">) {
  return
}
"""
PROGRAM = """// RUN: env N=7 %cutlass-compiler-run-host %s | FileCheck %s
// CHECK: (4,2)
func.func @main() {
  %s = cute.static : !cute.shape<"(4,2)">
  cute.print(%s) : !cute.shape<"(4,2)">
  return
}
"""
PRINTED = """## Operations
### cuda.cast (1)
```
%5 = cuda.cast %4 : i64 -> i1
```
"""


def written(root, good):
    """Write a checkout of tests that hold, or of the same with a mistake each."""

    def put(name, text, old="", new=""):
        path = root / "cutlass_compiler" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if good else text.replace(old, new))

    put("cute_ir/test/Dialect/a.mlir", RIGHT, "@f(%[[A:.+]]", "@g(%[[A:.+]]")
    put("cute_ir/test/Dialect/b.mlir", RIGHT, 'shape<"4">', 'shape<"4,">')
    put("cute_ir/test/Dialect/c_errors.mlir", WRONG, '"4,"', '"4"')
    put(
        "cute_ir/test/Transforms/d.mlir",
        RIGHT.replace("-split-input-file", "-cute-fold-static"),
        "CHECK: cute",
        "CHECK-NOT: cute",
    )
    put("cute_ir/test/Conversion/e.mlir", RIGHT, "cute.print", "cute.prints")
    put("test/Integration/host/f.mlir", PROGRAM, "CHECK: (4,2)", "CHECK: (4,3)")
    put("test/Integration/nvgpu/g.mlir", PROGRAM, "@main", "@other")
    (root / "printed.md").write_text(PRINTED if good else PRINTED.replace("-> i1", "to i1"))


@pytest.mark.parametrize("good", [True, False])
def test_counts_are_of_what_holds(tmp_path, monkeypatch, capsys, good):
    written(tmp_path, good)
    record = tmp_path / "record.json"
    monkeypatch.setattr(reference_ir, "RESULTS", record)
    assert reference_ir.main([str(tmp_path), "-v", "--printed", str(tmp_path / "printed.md")]) == 0
    counts = {name: (c["good"], c["total"]) for name, c in json.loads(record.read_text()).items()}
    total = {"dialect_right": 2, "dialect_run_lines": 2}
    held = {name: (n, n) if good else (0, n) for name, n in ((k, total.get(k, 1)) for k in counts)}
    if not good:  # text `a` is right, its CHECK line is not
        held["dialect_right"] = (1, 2)
    assert counts == held
    assert ("CHECK" in capsys.readouterr().out) != good
