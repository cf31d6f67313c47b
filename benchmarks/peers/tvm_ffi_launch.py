# SPDX-License-Identifier: Apache-2.0
"""Launches through apache-tvm-ffi, as contenders for launch.py: a C++ function of tensors, which it calls with torch's.

Compiled here by the machine's C++ compiler: once doing nothing, which is the cost of the call alone, and once with the
driver's launch of a kernel in torch's current stream, with each tensor's address as a parameter.
"""

import subprocess
import tempfile
from pathlib import Path

SOURCE = """
#include <tvm/ffi/tvm_ffi.h>
#include <tvm/ffi/extra/c_env_api.h>
using tvm::ffi::TensorView;
typedef unsigned U;
typedef int (*Launch)(void*, U, U, U, U, U, U, U, void*, void**, void**);
static Launch launch;
static void* kernels[9];
void set(int64_t function, int64_t handle, int64_t n) { launch = (Launch)function; kernels[n] = (void*)handle; }
template <typename... T> int64_t run(T... t) {
  int64_t words[][7] = {{0, 0, t.size(0), 4, (int64_t)t.data_ptr(), t.size(0), 4}...};
  void* parameters[7 * sizeof...(T)];
  for (unsigned i = 0; i < 7 * sizeof...(T); ++i) parameters[i] = &words[i / 7][i % 7];
  DLDevice at[] = {t.device()...};
  void* stream = TVMFFIEnvGetStream(at[0].device_type, at[0].device_id);
  return launch(kernels[sizeof...(T)], 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr);
}
#define V TensorView
int64_t none1(V a) { return 0; }
int64_t none8(V a, V b, V c, V d, V e, V f, V g, V h) { return 0; }
int64_t launch1(V a) { return run(a); }
int64_t launch8(V a, V b, V c, V d, V e, V f, V g, V h) { return run(a, b, c, d, e, f, g, h); }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(set, set);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(none1, none1);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(none8, none8);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(launch1, launch1);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(launch8, launch8);
"""


def module(folder):
    """The functions, by name. folder: where the source and what is made of it lie."""
    import tvm_ffi

    here = Path(tvm_ffi.__file__).parent
    source, made = Path(folder) / "launch.cc", Path(folder) / "launch.so"
    source.write_text(SOURCE)
    command = ["g++", "-std=c++17", "-O2", "-shared", "-fPIC", "-w", f"-I{here / 'include'}", str(source),
               f"-L{here / 'lib'}", "-ltvm_ffi", f"-Wl,-rpath,{here / 'lib'}", "-o", str(made)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, text=True)
    return tvm_ffi.load_module(str(made))


def launches(tensors, kernel_of, address):
    """By what is called and of how many tensors: calls. kernel_of: gives the driver's handle of an empty kernel of so
    many tensors. address: of the driver's cuLaunchKernel."""
    folder = tempfile.mkdtemp()
    found = module(folder)
    out = {}
    for n in (1, 8):
        none, launch, args = found[f"none{n}"], found[f"launch{n}"], tensors[:n]
        found["set"](address, kernel_of(n), n)
        assert launch(*args) == 0
        out["tvm-ffi, a call that does nothing", n] = lambda none=none, args=args: none(*args)

        def call(launch=launch, args=args):
            launch(*args)

        out["tvm-ffi, cuLaunchKernel", n] = call
    return out
