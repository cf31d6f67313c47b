# SPDX-License-Identifier: Apache-2.0
"""Files that are written for the CuTe DSL run as they stand, with `import cutlass` answered by this library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from numba_cute.__main__ import main
from numba_cute.compat import runs

from .texts import ran

FILE = Path(__file__).with_name("written_for_cutlass.py")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "numba_cute", "run", *words], capture_output=True, text=True, timeout=300, check=False
    )


def test_a_file_runs_in_the_simulator_and_is_compiled_and_finds_its_arguments():
    done = run("--simulate", "--arch", "sm_90a", "--compile", str(FILE), "--n", "33")
    assert (done.returncode, done.stdout) == (0, "PASS 33\n"), done.stderr
    assert "registers, 0 bytes spilled" in done.stderr


def refused(capsys, *words):
    """What the command says that it refuses."""
    assert main(["run", *words]) == 1
    return capsys.readouterr().err


def test_a_file_that_is_not_there_is_said(capsys):
    assert "run: 'no_such_file.py' is not a file" in refused(capsys, "no_such_file.py")


def test_what_a_file_raises_is_shown_as_python_shows_it(tmp_path):
    file = tmp_path / "raises.py"
    file.write_text("import cutlass.cute as cute\nassert cute.size((2, 3)) == 7\n")
    done = run("--simulate", str(file))
    assert done.returncode == 1
    assert "assert cute.size((2, 3)) == 7" in done.stderr and "AssertionError" in done.stderr


@pytest.mark.parametrize("word, said", [("--arch", "sm_91"), ("--checks", "no_such_check")])
def test_wrong_options_are_refused(word, said, capsys):
    assert said in refused(capsys, "--simulate", word, said, str(FILE))


def test_the_gpu_has_as_many_sms_as_are_asked_for(tmp_path, capsys):
    text = "import cutlass.utils as u\nprint(u.HardwareInfo().get_max_active_clusters(2))\n"
    ran(tmp_path, text, "sm_100a", sms=6)
    assert capsys.readouterr().out == "3\n"
    assert "sms 0 must be at least 1" in refused(capsys, "--simulate", "--sms", "0", str(FILE))


COOPERATIVE = """
import cutlass.cute as cute
from cuda.bindings import runtime
from cutlass.cutlass_dsl import DSLCudaRuntimeError

@cute.kernel
def kernel():
    pass

@cute.jit
def launch():
    kernel().launch(grid=(10000, 1, 1), block=(1024, 1, 1), cooperative=True)

try:
    launch()
except DSLCudaRuntimeError as e:
    assert e.error_code == runtime.cudaError_t.cudaErrorCooperativeLaunchTooLarge
    print("refused")
"""


def test_a_launch_that_has_no_room_raises_what_the_cuda_runtime_says(tmp_path, capsys):
    ran(tmp_path, COOPERATIVE)
    assert capsys.readouterr().out == "refused\n"


KINDS = """
import inspect
from inspect import isclass
import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass.cute.runtime import from_dlpack

@cute.jit
def number(dtype):
    if cutlass.const_expr(not isclass(dtype) or not issubclass(dtype, cutlass.Numeric)):
        raise TypeError(f"no element type: {dtype}")
    return dtype.width

class Kinds:
    def __init__(self, dtype):
        self.dtype = dtype

    @cute.kernel
    def kernel(self, out):
        out[0] = number(self.dtype)

out = np.zeros(1, np.int32)

@cute.jit
def launch(x: cute.Tensor):
    Kinds(cutlass.Float16).kernel(x).launch(grid=1, block=1)

launch(from_dlpack(out))
print(out[0], isclass(cutlass.Int8), isclass(3), inspect.isclass(int))
"""


def test_element_types_are_classes_to_a_file(tmp_path, capsys):
    ran(tmp_path, KINDS)
    assert capsys.readouterr().out == "16 True False True\n"


COMPILED = """
import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass.cute.runtime import from_dlpack, make_fake_compact_tensor, make_ptr

@cute.kernel
def kernel(x, out):
    r = cute.make_rmem_tensor(4, cutlass.Float32)
    cute.autovec_copy(cute.make_tensor(x.iterator, cute.make_layout(4)), r)
    out[0] = r[3] + cute.size(x)

@cute.jit
def of_tensors(x: cute.Tensor, out: cute.Tensor):
    print(x.iterator.alignment, x.layout)
    kernel(x, out).launch(grid=1, block=1)

@cute.jit
def of_pointers(x: cute.Pointer, out: cute.Tensor):
    print(x.alignment, x.memspace)
    kernel(cute.make_tensor(x, cute.make_layout(4)), out).launch(grid=1, block=1)

memory = np.zeros(16, np.float32)
skip = -memory.ctypes.data % 16 // 4
x, out = memory[skip : skip + 8], np.zeros(1, np.float32)
x[3] = 5
run = cute.compile(of_tensors, from_dlpack(x, assumed_align=16), from_dlpack(out))
run(x, out)
assert out[0] == 13
fake = make_fake_compact_tensor(cutlass.Float32, (cute.sym_int(divisibility=4),), assumed_align=16)
run_any = cute.compile(of_tensors, fake, from_dlpack(out))
run_any(x[:4], out)
assert out[0] == 9
ints = np.zeros(8, np.int32)
for wrong in (lambda: run(x[:4], out), lambda: run(x[1:], out), lambda: run_any(x[:6], out), lambda: run(ints, out)):
    try:
        wrong()
    except Exception as e:
        print(type(e).__name__, str(e).splitlines()[0][:60])
    else:
        raise AssertionError("it is not refused")
print("PASS")
"""


def test_what_was_compiled_is_called_with_what_it_was_compiled_for(tmp_path, capsys):
    ran(tmp_path, COMPILED)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "PASS", lines
    assert lines.count("16 (8):(1)") >= 1 and any(line.startswith("16 (?{div=4})") for line in lines), lines
    assert sum(line.startswith("CuteError") for line in lines) == 4, lines


COMPILED_ONCE = """
import cutlass.cute as cute
import numpy as np
from cutlass.cute.runtime import from_dlpack

@cute.kernel
def kernel(x):
    x[0] = 1.0

@cute.jit
def launch(x: cute.Tensor):
    kernel(x).launch(grid=1, block=1)

x = from_dlpack(np.zeros(1, np.float32))
run = cute.compile(launch, x)
for _ in range(3):
    run(x)
"""


def test_a_run_that_compiles_compiles_once_what_is_called_again(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(runs, "_noting", lambda run, make: made.append(make()) or made[-1])
    ran(tmp_path, COMPILED_ONCE, simulates=False, compiles=True)
    assert len(made) == 1
