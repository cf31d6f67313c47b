# SPDX-License-Identifier: Apache-2.0
"""How many kernels calls of an entry with 100 shapes compile: at most 10, forward and backward each; of rows there is
one for each length, and for each k of top-k. Nothing is compiled or run: launches are taken, and the types of their
arguments are what a kernel is compiled for. And `warmup`."""

import random

import pytest

import numba_cute as cute
from numba_cute import kernels
from numba_cute.compiler.ground.target import compiling_for
from numba_cute.compiler.host.offline import types_of
from numba_cute.isa.form.targets import answering_for
from numba_cute.seam.marks.launches import launching

torch = pytest.importorskip("torch")

BF16, F8, MOST = torch.bfloat16, torch.float8_e4m3fn, 10


def compiled(calls, arch="sm_90a"):
    """What is compiled for some calls: by the kernel's name, how often."""
    found = set()

    def take(kernel, args, options):
        with compiling_for(arch):
            types = types_of(kernel, args, arch)
        options = repr(sorted(kernel.targetoptions.items()))
        found.add((kernel.py_func, options, getattr(kernel.py_func, "__cute_cluster__", None), types))

    with answering_for(arch), launching(take):
        for call in calls:
            call()
    names = [key[0].__name__ for key in found]
    return {name: names.count(name) for name in names}


def empty(*shape, dtype=BF16, grad=False):
    return torch.zeros(shape, dtype=dtype).requires_grad_(grad)


def backwards(call):
    made = call()
    made = made[0] if isinstance(made, tuple) else made
    made.backward(torch.ones_like(made))


R = random.Random(0)


def eights(most):
    return 8 * R.randint(1, most // 8)


def fp8(n, k):
    return empty(n, k, dtype=F8)


def scales(n, k, block):
    return torch.ones(-(-n // block), -(-k // 128))


def attended(q, k, heads, kv_heads, grad, **options):
    made = kernels.flash_attention(
        empty(2, q, heads, 64, grad=grad), *[empty(2, k, kv_heads, 64, grad=grad) for _ in range(2)], **options
    )
    return made


def convolved(name, modes, taps):
    x = empty(R.randint(1, 4), *[R.randint(8, 40) for _ in range(modes)], c := eights(160)).movedim(-1, 1)
    outs = eights(320)
    weight = empty(*((c,) if "transpose" in name else (outs,)), *[taps] * modes, outs if "transpose" in name else c)
    return getattr(kernels, name)(x, weight.movedim(-1, 1))


def ends(groups, rows):
    return torch.full((groups,), rows, dtype=torch.int32)


CALLS = {
    "softmax, rows": lambda: kernels.softmax(empty(R.randint(1, 5000), 4096)),
    "matmul, M": lambda: kernels.matmul(empty(R.randint(1, 8192), 512), empty(512, 1024)),
    "matmul, N and K": lambda: kernels.matmul(empty(512, k := eights(4096)), empty(k, eights(4096))),
    "grouped_gemm": lambda: kernels.grouped_gemm(
        empty(m := R.randint(1, 999), k := eights(4096)), empty(g := R.randint(1, 9), eights(2048), k), ends(g, m)
    ),
    "blockscaled_gemm": lambda: kernels.blockscaled_gemm(
        fp8(m := R.randint(1, 999), k := 2 * eights(2048)), fp8(n := eights(2048), k), scales(m, k, 1),
        scales(n, k, 128),
    ),
    "mixed_gemm, M": lambda w=[]: kernels.mixed_gemm(  # noqa: B006
        empty(R.randint(1, 2000), 512),
        w[0] if w else w.append(kernels.int4_weights(empty(2048, 512, dtype=torch.int8), empty(2048, 4))) or w[0],
    ),
    "flash_attention": lambda: attended(R.randint(1, 2000), R.randint(1, 2000), 8, 2, False, causal=True),
    "flash_attention, backward": lambda: backwards(
        lambda: attended(R.randint(1, 700), R.randint(1, 700), 4, 4, True)
    ),
    "latent_attention": lambda: kernels.latent_attention(
        empty(n := R.randint(1, 99), 1, 128, 576), empty(n, 8 * R.randint(1, 99), 576), scale=0.1
    ),
    "conv1d": lambda: convolved("conv1d", 1, 3),
    "conv2d": lambda: convolved("conv2d", 2, 3),
    "conv3d": lambda: convolved("conv3d", 3, 3),
    "conv_transpose1d": lambda: convolved("conv_transpose1d", 1, 3),
    "conv_transpose2d": lambda: convolved("conv_transpose2d", 2, 3),
    "conv_transpose3d": lambda: convolved("conv_transpose3d", 3, 3),
}  # fmt: skip


MORE = ("conv3d", "conv_transpose3d")
"""Of few pixels and long K: to share K in one way and no other gains more than a tenth there, and a kernel is compiled
for each number of tiles of channels."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_100_shapes_compile_few_kernels(name):
    R.seed(name)
    found = compiled([CALLS[name]] * 100)
    assert found and max(found.values()) <= (24 if name in MORE else MOST), found


ON_BLACKWELL = {
    "matmul": lambda: kernels.matmul(empty(eights(4096), k := eights(4096)), empty(eights(4096), k).mT),
    "grouped_gemm": lambda: kernels.grouped_gemm(
        empty(m := eights(2048), 256), empty(4, eights(2048), 256), ends(4, m // 4)
    ),
    "blockscaled_gemm": lambda: kernels.blockscaled_gemm(
        fp8(m := eights(4096), 256), fp8(n := eights(2048), 256), *(
            torch.zeros(x, 8, dtype=torch.uint8).view(torch.float8_e8m0fnu) for x in (m, n)
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ON_BLACKWELL)
def test_blackwell_compiles_few_kernels_too(name):
    R.seed(name)
    found = compiled([ON_BLACKWELL[name]] * 10, "sm_100a")
    assert found and max(found.values()) <= 6, found


def test_gpus_with_mma_sync_compile_few_kernels_of_4_bit_weights():
    R.seed(0)
    found = compiled([CALLS["mixed_gemm, M"]] * 40, "sm_80")
    assert found and max(found.values()) <= MOST, found


@pytest.fixture
def cached(tmp_path):
    """A disk cache of the test's own."""
    with cute.config.override(cache=True, cache_dir=str(tmp_path)):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("cached")
def test_warmup_compiles_what_calls_launch_and_says_so():
    made = kernels.warmup("softmax", [((range(1, 3), 64),)], grad=True)
    assert [(w.kernel, w.call, w.calls) for w in made] == [
        ("softmax_forward", ((1, 64),), 2), ("softmax_backward", ((1, 64),), 2),
    ]  # fmt: skip
    assert all(w.compiled.resources.registers and w.compiled.arch == "sm_90a" for w in made)


REFUSED = {
    "there is no entry 'softmaxx': give one of .*softmax, topk": lambda: kernels.warmup("softmaxx"),
    r"shape 3 must be a tuple of ints and ranges": lambda: kernels.warmup("softmax", [(3, 4)]),
    "2 dtypes, and a call has 1 tensors": lambda: kernels.warmup("softmax", [((3,),)], dtypes=["bfloat16"] * 2),
    "'bf16' is not an element type": lambda: kernels.warmup("softmax", [((3,),)], dtypes="bf16"),
    "no calls of softmax are named: give shapes": lambda: kernels.warmup("softmax"),
    "no calls of matmul are named": lambda: kernels.warmup("matmul", [], grad=True),
    "leave out shapes": lambda: kernels.warmup(print, [((3,),)]),
    "a has 0 modes|a is bfloat16 of shape": lambda: kernels.warmup("matmul", [((), ())]),
}


def test_warmup_wants_the_disk_cache():
    with cute.config.override(cache=False), pytest.raises(cute.CuteError, match="the disk cache is off"):
        kernels.warmup("softmax", [((3,),)])


@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize("words", REFUSED)
def test_warmup_refuses_by_name(words):
    with pytest.raises(cute.CuteError, match=words):
        REFUSED[words]()
