"""python .probe2.py : which context is current around launches on a GPU that is not the current one (one process, two GPUs)."""
import sys, traceback
import torch, numba_cute as cute
from numba import cuda
from cuda.bindings import driver as d
import cuda.core, numba_cuda
from tests.several_gpus import kernels as k
print("cuda.core", cuda.core.__version__, "numba-cuda", numba_cuda.__version__, "torch", torch.__version__)
def now(what):
    e, c = d.cuCtxGetCurrent(); e2, dev = d.cuCtxGetDevice()
    print(f"{what}: current {int(c):#x} {e.name} device {int(dev) if not int(e2) else e2.name} torch {torch.cuda.current_device()}", flush=True)
main = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.cuda.set_device(main); torch.zeros(1, device="cuda"); now("start")
other = 1 - main
x = torch.zeros(k.ROWS, k.COLUMNS, 1, device=f"cuda:{other}"); x[:64] = 3
mine = torch.zeros(k.ROWS, k.COLUMNS, 1, device=f"cuda:{main}"); mine[:64] = 4
out = torch.zeros(64, 32, device=f"cuda:{other}"); own = torch.zeros(64, 32, device=f"cuda:{main}")
now("arrays")
P, H = (cute.runtime.from_dlpack(t, assumed_align=16) for t in (x, mine))
import numba_cute.compiler.host.tensormap as tm, numba_cute.compiler.host.launching as L
enc = tm.encode
def encode(r):
    now(f"  encode place {r.place}")
    return enc(r)
tm.encode = encode
import numba_cute.compiler.host.arguments as A
for i in range(4):
    for name, t, o in (("other", P, out), ("main", H, own)):
        try:
            args = k.tma_atoms(t); now(f"{i} {name} atoms")
            k.by_tma[1, k.THREADS](*args, o, 0); now(f"{i} {name} launched")
        except Exception as e:
            print("FAILED", type(e).__name__, str(e)[:200]); now("after failure")
torch.cuda.synchronize(0); torch.cuda.synchronize(1); now("synchronized")
print(out[0, 0].item(), own[0, 0].item(), "expect 3 4")
