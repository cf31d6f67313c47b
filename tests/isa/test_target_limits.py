# SPDX-License-Identifier: Apache-2.0
"""Both engines take what a target has: each limit is accepted, and what is above it refused in the same words."""

from __future__ import annotations

import re
from dataclasses import replace

import numba
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import config, utils
from numba_cute.isa.form.limits import registers_for
from numba_cute.isa.form.targets import TARGETS, Target, named

from ..engines import NEEDS_GPU

USUAL = ("sm_80", "sm_86", "sm_90a", "sm_107a", "sm_120f")
"""One of each set of limits; the others are slow."""
RECORDS = [pytest.param(n, marks=() if n in USUAL else pytest.mark.slow) for n, t in TARGETS.items() if not t.renamed]
KIB = 1024


def simulated(kernel, arch, block=1, grid=1, smem=0):
    cute.simulate(kernel, arch=arch)[grid, block, 0, smem](np.zeros(1024, np.float32))


def compiled(kernel, arch):
    return cute.compile(kernel, np.zeros(1024, np.float32), arch=arch)


def said(run):
    """What is said of a kernel that is refused, without where it stands."""
    with pytest.raises(cute.CuteError) as e:
        run()
    return str(e.value).split("\n")[0]


def both(kernel, arch, **launch):
    """What both engines say of a kernel."""
    words, of_compiler = said(lambda: simulated(kernel, arch, **launch)), said(lambda: compiled(kernel, arch))
    if "has no such target" in of_compiler:
        pytest.skip(of_compiler)
    assert words == of_compiler
    return words


def storing(dynamic=0, static=0, **options):
    """A kernel that has so much shared memory."""

    @cuda.jit(**options)
    def kernel(x):
        if static:
            kept = cuda.shared.array(static, numba.uint8)
            kept[cuda.threadIdx.x] = 1
            x[cuda.threadIdx.x] = kept[cuda.threadIdx.x]
        if dynamic:
            first = utils.SmemAllocator().allocate(dynamic)
            if cuda.threadIdx.x == 0:
                first.store(cute.Uint8(1))

    return kernel


@pytest.mark.parametrize("arch", RECORDS)
def test_all_that_a_target_has_is_taken_at_once(arch):
    """All shared memory, as much of it static as there may be, and the most threads with all registers."""
    have = named(arch)
    room = registers_for(have, have.threads_per_block)
    whole = {"static": have.smem_static, "launch_bounds": (have.threads_per_block, 1), "max_registers": room}
    kernel = storing(have.smem_per_block - have.smem_static, **whole)
    simulated(kernel, arch)
    cute.simulate(kernel, arch=arch)[have.grid, have.threads_per_block]
    made = compiled(kernel, arch)
    assert made.resources.shared + made.resources.dynamic_shared == have.smem_per_block


@pytest.mark.gpu
@NEEDS_GPU
def test_the_gpu_at_hand_gives_a_block_all_that_its_record_has():
    major, minor = cuda.get_current_device().compute_capability
    have = named(f"sm_{major}{minor}")
    kernel = storing(have.smem_per_block - have.smem_static, have.smem_static)
    x = np.zeros(have.threads_per_block, np.float32)
    kernel[1, have.threads_per_block](x)
    assert (x == 1).all()


@pytest.mark.parametrize("arch", RECORDS)
def test_more_shared_memory_than_a_target_has_is_refused(arch):
    have = named(arch)
    most, least = have.smem_per_block, have.smem_static
    assert f"{most + 1} bytes dynamic and 0 static exceed the {most} bytes of a CTA on {arch}" in both(
        storing(most + 1), arch
    )
    assert f"{least + 1} bytes static (cuda.shared.array, alloc_smem) exceed the {least}" in both(
        storing(0, least + 1), arch
    )
    # Static memory comes first, and dynamic memory begins at a multiple of 1024.
    assert f"{most - KIB + 1} bytes dynamic and 100 static" in both(storing(most - KIB + 1, 100), arch)
    assert f"{most + 1} bytes dynamic" in said(lambda: simulated(storing(), arch, smem=most + 1))


@pytest.mark.parametrize("arch", RECORDS)
def test_more_threads_or_registers_than_a_target_has_are_refused(arch):
    have = named(arch)
    threads, registers = have.threads_per_block, have.registers_per_thread
    words = both(storing(launch_bounds=threads + 1), arch)
    assert words == f"launch_bounds={threads + 1}: {threads + 1} threads; a CTA on {arch} has 1 to {threads}"
    assert f"a thread on {arch} has at most {registers}" in both(storing(max_registers=registers + 1), arch)
    room = registers_for(have, 512)
    words = both(storing(launch_bounds=512, max_registers=room + 1), arch)
    assert f"512 threads have {room} of the {have.registers_per_block} registers" in words


@pytest.mark.parametrize("arch", RECORDS)
def test_larger_clusters_than_a_target_has_are_refused(arch):
    most = named(arch).cluster_size
    alone = storing()
    cute.simulate(alone, arch=arch, cluster=most)
    shaped = cute.cluster_shape(min(2 * most, 16))(storing())
    if most == 1:
        assert both(shaped, arch) == f"cluster (2, 1, 1): {arch} has no clusters; launch without, or use sm_90 or later"
    elif most < 16:
        assert both(shaped, arch) == f"cluster (16, 1, 1): 16 CTAs exceed the {most} of {arch}"
    with pytest.raises(cute.CuteError, match=r"cluster \(17, 1, 1\)"):
        cute.simulate(alone, arch=arch, cluster=17)


@cute.kernel
def empty(x):
    pass


@pytest.mark.parametrize(
    "launch, words",
    [
        ({"grid": 1, "block": (1, 1, 65)}, "block (1, 1, 65): sm_86 takes at most (1024, 1024, 64) along x, y and z"),
        ({"grid": 1, "block": (32, 33)}, "1056 threads exceed the 1024 of a CTA on sm_86"),
        ({"grid": (1, 65536), "block": 1}, "sm_86 takes at most (2147483647, 65535, 65535) along x, y and z"),
        ({"grid": 2, "block": 1, "cluster": 2}, "sm_86 has no clusters"),
        ({"grid": 1, "block": 1, "smem": 100 * KIB}, "102400 bytes dynamic and 0 static exceed the 101376"),
    ],
    ids=lambda x: "" if isinstance(x, dict) else x[:20],
)
def test_launches_of_a_host_function_are_refused_by_both_engines(launch, words):
    @cute.jit
    def host(x):
        empty(x).launch(**launch)

    x = np.zeros(4, np.float32)
    for run in (lambda: cute.simulate(host, arch="sm_86")(x), lambda: cute.compile(host, x, arch="sm_86")):
        assert words in said(run).replace(", 1)", ")")


def test_a_block_larger_than_the_launch_bounds_is_refused():
    simulated(storing(launch_bounds=(64, 2)), "sm_90a", 64)
    words = said(lambda: simulated(storing(launch_bounds=(64, 2)), "sm_90a", 65))
    assert (
        "block (65, 1, 1): 65 threads exceed the 64 for which the kernel is compiled (launch_bounds=(64, 2))" in words
    )


def test_a_launch_has_registers_for_what_the_compiler_took():
    @cuda.jit
    def many(x):
        held = cute.make_rmem_tensor(80, cute.Float32)
        cute.autovec_copy(cute.make_tensor(x, 80), held)
        cuda.syncthreads()
        cute.autovec_copy(held, cute.make_tensor(x, 80))

    x = np.zeros(1024, np.float32)
    words = said(lambda: cute.simulate(many, compile=True)[1, 1024](x))
    assert "for each of 1024 threads, and the 65536 of a CTA on sm_90a are 64 each" in words


# ---------------------------------------------------------------- CTAs at once


@cute.kernel
def stored(x):
    x[0] = 1


@cute.kernel
def stored_with(x, size: cute.Constexpr):
    kept = cute.utils.SmemAllocator().allocate(size)
    if cuda.threadIdx.x == 0:
        kept.store(cute.Uint8(1))


COOPERATIVE = {
    "threads": (stored, {"grid": 8 * 132, "block": 256}, "8 on each of the 132 SMs of H100 SXM, since each has 256"),
    "number": (stored, {"grid": (132, 32), "block": 32}, "32 on each of the 132 SMs of H100 SXM, since an SM takes no"),
    "memory": (stored_with, {"grid": (66, 2), "block": 32, "smem": 120 * KIB}, "each has 122880 bytes of shared mem"),
    "allocated": (stored_with, {"grid": (66, 2), "block": 32}, "1 on each .* since each has 122880 bytes"),
}


@pytest.mark.parametrize("what", COOPERATIVE)
def test_more_ctas_at_once_than_any_gpu_of_a_target_holds_are_refused(what):
    kernel, launch, words = COOPERATIVE[what]
    more = {**launch, "grid": launch["grid"] + 1 if isinstance(launch["grid"], int) else (*launch["grid"], 2)}

    def engines(cooperative, **launch):
        @cute.jit
        def host(x):
            given = (x, cute.const_expr(120 * KIB)) if kernel is stored_with else (x,)
            kernel(*given).launch(cooperative=cooperative, **launch)

        x = np.zeros(4, np.float32)
        return lambda: cute.simulate(host, checks=False)(x), lambda: cute.compile(host, x)

    found = {said(run).split("\n")[0] for run in engines(True, **more)}
    assert len(found) == 1 and re.search(f"^cooperative launch: all .*{words}", *found), found
    for run in (engines(True, **launch)[1], engines(False, **more)[1]):
        run()


def test_registers_that_the_compiler_took_let_fewer_ctas_run_at_once():
    @cute.jit
    def host(x):
        holding(x).launch(grid=133, block=512, cooperative=True)

    x = np.zeros(4096, np.float32)
    words = "1 on each of the 132 SMs of H100 SXM, since each has [0-9]+ registers a thread"
    assert re.search(words, said(lambda: cute.compile(host, x)))
    assert re.search(words, said(lambda: cute.simulate(host, compile=True)(x)))


@cute.kernel
def holding(x):
    held = cute.make_rmem_tensor(80, cute.Float32)
    cute.autovec_copy(cute.make_tensor(x, 80), held)
    cuda.syncthreads()
    cute.autovec_copy(held, cute.make_tensor(x, 80))


@pytest.mark.parametrize("arch, most", [("sm_90a", 132), ("sm_86", 84), ("sm_120a", 188), ("sm_88", None)])
def test_a_kernel_that_meets_as_a_grid_has_all_of_it_at_once(arch, most):
    """cg.this_grid() makes the launch cooperative, as Numba's does; of sm_88 no GPU is known."""

    @cuda.jit
    def meets(x):
        cute.utils.SmemAllocator().allocate(60 * KIB)
        cuda.cg.this_grid().sync()

    each = 3 if arch == "sm_90a" else 1
    x = np.zeros(4, np.float32)
    run = cute.simulate(meets, arch=arch, checks=False)
    run[each * (most or 200), 1](x)
    if most is not None:
        assert f"holds more than {each * most} of them" in said(lambda: run[each * most + 1, 1](x))


# ---------------------------------------------------------------- setmaxnreg


def roles(producer, consumer, **options):
    """A kernel of one warpgroup that lowers its registers, and others that raise them."""

    @cuda.jit(**options)
    def kernel(x):
        if cuda.threadIdx.x < 128:
            cute.arch.setmaxregister_decrease(producer)
        else:
            cute.arch.setmaxregister_increase(consumer)
        x[cuda.threadIdx.x] = 1

    return kernel


def test_setmaxnreg_shares_out_what_the_launch_began_with():
    """168 for each of 384 threads: 24 and twice 240 are all of them; of the whole SM there would be more."""
    simulated(roles(24, 240, launch_bounds=(384, 1)), "sm_90a", 384)
    with pytest.raises(cute.sim.DeadlockError, match=r"setmaxnreg.inc to 240 registers \(of the block's 64512"):
        simulated(roles(32, 240, launch_bounds=(384, 1)), "sm_90a", 384)


def test_registers_that_a_warpgroup_never_gets_are_refused():
    """With two blocks on an SM a block of 384 threads begins with 80 for each."""
    words = both(roles(24, 200, launch_bounds=(384, 2)), "sm_90a", block=384)
    assert "200 registers a thread of one warpgroup, and 24 of 2 others, exceed the 30720" in words
    simulated(roles(24, 104, launch_bounds=(384, 2)), "sm_90a", 384)
    assert compiled(roles(24, 104, launch_bounds=(384, 2)), "sm_90a").resources.group_registers == (24, 104)


def test_registers_of_max_registers_are_what_a_kernel_without_launch_bounds_begins_with():
    simulated(roles(24, 240, max_registers=168), "sm_90a", 384)
    few = roles(24, 240, max_registers=128)
    with pytest.raises(cute.sim.DeadlockError, match=r"setmaxnreg.inc to 240 registers \(of the block's 49152"):
        simulated(few, "sm_90a", 384)


def in_turn(x):
    """Three roles, each of which goes on until x says so, and one that is asked for by a function."""
    group = cute.arch.make_warp_uniform(cute.arch.warp_idx()) // 4
    if group == 0:
        cute.arch.setmaxregister_decrease(32)
        while x[0] > 0:
            cute.arch.nanosleep(8)
    else:
        for _ in range(2):
            cute.arch.sync_warp()
        raising(240)


@cuda.jit(device=True)
def raising(count):
    cute.arch.setmaxregister_increase(count)


def by_thread(x):
    i = cuda.threadIdx.x + cuda.blockDim.x * cuda.threadIdx.y
    if 128 <= i < 256:
        cute.arch.setmaxregister_decrease(32)
    elif i >= 256 or i < 128:
        cute.arch.setmaxregister_increase(240)


def twice(x):
    """What the first asks for last counts: it has too few for the others with 104, and enough with 24."""
    if cuda.threadIdx.x < 128:
        cute.arch.setmaxregister_decrease(40)
        cute.arch.barrier(barrier_id=1, number_of_threads=128)
        cute.arch.setmaxregister_increase(104)
    else:
        cute.arch.setmaxregister_increase(240)


def by_data(x):
    if x[0] == 0:
        cute.arch.setmaxregister_decrease(32)
    else:
        cute.arch.setmaxregister_increase(240)


def early(x):
    """A block that has nothing to do is no reason for anything."""
    if x[cuda.blockIdx.x] > 1:
        return
    if cuda.threadIdx.x < 128:
        cute.arch.setmaxregister_decrease(24)
    else:
        cute.arch.setmaxregister_increase(240)


ASKED = {in_turn: "32, 240 and 240", by_thread: "240, 32 and 240", twice: "104, 240 and 240", by_data: "", early: ""}


@pytest.mark.parametrize("options", [{}, {"lineinfo": True}], ids=str)
@pytest.mark.parametrize("kernel", ASKED, ids=lambda k: k.__name__)
def test_what_the_warpgroups_of_a_block_ask_for_is_summed_up(kernel, options):
    """It is refused when it is compiled; where only data tell, it is not; the deadlock says the same."""
    kernel, words = cuda.jit(launch_bounds=(384, 1), **options)(kernel), ASKED[kernel]
    if not words:
        assert compiled(kernel, "sm_90a").resources.registers == 168
        simulated(kernel, "sm_90a", 384)
        return
    words = said(lambda: compiled(kernel, "sm_90a"))
    assert words.startswith(f"setmaxnreg: the warpgroups ask for {ASKED[kernel.py_func]} registers a thread")
    with pytest.raises(cute.sim.DeadlockError) as e:
        simulated(kernel, "sm_90a", 384)
    assert words in str(e.value)


def lowering_too_high(x):
    cute.arch.setmaxregister_decrease(200)


def raising_too_low(x):
    cute.arch.setmaxregister_increase(104)
    cute.arch.barrier(barrier_id=1, number_of_threads=128)
    cute.arch.setmaxregister_increase(96)


@pytest.mark.parametrize(
    "kernel, threads, words",
    [(lowering_too_high, 384, "lowers its registers from 168 to 200"), (raising_too_low, 128, "raises .* 104 to 96")],
)
def test_registers_that_are_lowered_upwards_are_refused(kernel, threads, words):
    assert re.search(words, both(cuda.jit(launch_bounds=(threads, 1))(kernel), "sm_90a", block=threads))


def test_a_kernel_whose_registers_are_not_bounded_is_told_that_setmaxnreg_does_nothing():
    with pytest.warns(UserWarning, match="'setmaxnreg' ignored; unable to determine register count at entry"):
        compiled(roles(24, 240), "sm_90a")


# ---------------------------------------------------------------- who asks


@cute.dsl_user_op
def facts():
    gpu = utils.HardwareInfo()
    return utils.get_smem_capacity_in_bytes(), gpu.get_device_multiprocessor_count(), cute.target().tmem_columns


@cuda.jit
def asking(x):
    x[0], x[1], x[2] = facts()


@pytest.mark.parametrize("arch, known", [("sm_86", (99 * KIB, 72, 0)), ("sm_100a", (227 * KIB, 148, 512))])
def test_helpers_answer_for_the_target_and_not_for_the_gpu_at_hand(arch, known):
    """One after the other in a process: what was remembered of one target is not taken for another."""
    x = np.zeros(3, np.int32)
    cute.simulate(asking, arch=arch)[1, 1](x)
    assert tuple(x) == known
    ptx = cute.compile(asking, x, arch=arch).ptx
    assert all(re.search(rf"\b{number}\b", ptx) for number in known)

    seen = []

    @cute.jit
    def host(x):
        seen.append((*facts()[:2], utils.HardwareInfo().get_max_active_clusters(1)))

    cute.simulate(host, arch=arch)(x)
    cute.compile(host, x, arch=arch)
    assert seen == [(*known[:2], known[1])] * 2


def test_the_disk_cache_keeps_what_a_target_answers_for_each(tmp_path):
    @cuda.jit
    def sized(x):
        x[0] = utils.get_smem_capacity_in_bytes()
        x[1] = cute.target().threads_per_sm

    x = np.zeros(2, np.int32)
    with config.override(cache=True, cache_dir=str(tmp_path / "cache")):
        for arch, numbers in (("sm_86", (99 * KIB, 1536)), ("sm_90a", (227 * KIB, 2048))) * 2:
            made = cute.compile(sized, x, arch=arch)
            assert not made.notes and all(re.search(rf"\b{n}\b", made.ptx) for n in numbers)
        assert len(list((tmp_path / "cache").glob("??"))) == 2


def test_a_target_without_a_known_gpu_says_so():
    @cute.jit
    def host(x):
        utils.HardwareInfo().get_device_multiprocessor_count()

    with pytest.raises(cute.CuteError, match="no GPU of sm_88 is known"):
        cute.simulate(host, arch="sm_88")(np.zeros(1))
    with pytest.raises(cute.CuteError, match="sm_86 has no clusters"):
        cute.simulate(cute.jit(lambda x: utils.HardwareInfo().get_max_active_clusters(2)), arch="sm_86")(np.zeros(1))


# ---------------------------------------------------------------- a new target


@pytest.fixture
def records():
    """The records, which are afterwards as they were."""
    before = dict(TARGETS)
    yield TARGETS
    TARGETS.clear()
    TARGETS.update(before)


def test_a_new_target_is_one_record(records):
    """Of sm_88, which the toolkit knows: without its record nothing takes it, and with it everything does."""
    record = records.pop("sm_88")
    for run in (lambda: simulated(storing(), "sm_88"), lambda: compiled(storing(), "sm_88")):
        assert "arch 'sm_88': not a known target" in said(run)
    records["sm_88"] = replace(record, smem_per_sm=80 * KIB)
    kernel = storing(79 * KIB)
    simulated(kernel, "sm_88")
    assert ".target sm_88" in compiled(kernel, "sm_88").ptx
    assert f"exceed the {79 * KIB} bytes of a CTA on sm_88" in both(storing(79 * KIB + 1), "sm_88")
    assert utils.get_smem_capacity_in_bytes("88") == 79 * KIB


def test_a_target_that_no_toolkit_has_is_simulated_and_its_rows_are_known(records):
    new = Target("sm_130a", "10.0", 300 * KIB, 2048, 32, 16, 256, "sm_130")
    records.update(sm_130=replace(new, name="sm_130"), sm_130a=new)
    simulated(storing(), "sm_130a", smem=299 * KIB)
    assert cute.arch.get_max_tmem_alloc_cols("sm_130a") == 256
    assert "clusters" in new.features and "wgmma" not in new.features

    @cuda.jit
    def older(x):
        cute.nvgpu.warpgroup.fence()

    words = said(lambda: simulated(older, "sm_130a", block=128))
    assert "wgmma_fence needs sm_90a, and the target is sm_130a" in words
    words = said(lambda: compiled(storing(), "sm_130a"))
    assert "the installed CUDA compiler (libNVVM) has no such target, only sm_80" in words and "PTX 10.0" in words


def test_what_newer_toolkits_call_otherwise_is_said():
    simulated(storing(), "sm_101a")
    words = said(lambda: compiled(storing(), "sm_101a"))
    assert words.endswith("newer ones call it sm_110a: use arch='sm_110a'")
