# SPDX-License-Identifier: Apache-2.0
"""Launches of the GEMM: what is made of arrays is made anew in machine code where others lie elsewhere. No GPU."""

from unittest import mock

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import kernels
from numba_cute.kernels import entry
from numba_cute.kernels.gemm import (
    Epilogue,
    Plan,
    Umma,
    bias,
    gelu,
    grouped,
    grouped_outer,
    mixed,
    residual,
    scale,
    total,
    umma_outer,
    umma_plan,
)
from numba_cute.kernels.gemm.operands import swapped, view
from numba_cute.kernels.gemm.plan import alone_of, arguments, clusters_of, plan, scratch_of
from numba_cute.kernels.gemm.shares import Shares, part_of_k, share_of

from ...compiler.casts import Array, Noting, casts
from ...native import Native

__all__ = ["casts"]


@pytest.mark.parametrize("cut", [Plan(64, 1), Plan(64, 1, 2, turned=True), Plan(64, 1, splits=2, tail=True)], ids=str)
def test_arguments_at_other_addresses_are_cast(casts, cut):
    form = (bias("v") | scale("w", "rows") | gelu() | residual("r") | scale(3.0) | total("s")).form

    @cute.runtime.remembered
    def made(a, b, c, sums, counts, *given):
        own = Epilogue.of(form, given)
        return arguments(a, swapped(view(b, 16)), c, cute.BFloat16, 66, cut, own, (sums, counts))

    def run(at):
        def array(i, shape, dtype="torch.bfloat16"):
            return Array(at + 0x10000 * i, shape, (shape[-1], 1)[-len(shape) :], dtype=dtype)

        a, b, c, r = (array(i, shape) for i, shape in enumerate(((64, 128), (128, 64), (64, 64), (64, 64))))
        sums, counts = (array(4 + i, (n,), "torch.float32") for i, n in enumerate(scratch_of(c, cut, 66)))
        v, w, s = (array(6 + i, (64,), "torch.float32") for i in range(3))
        return made(a, b, c, sums, counts, v, w, r, s)

    (first, grid), asked = run(0x1000000), Noting(made.function)
    made.templates._function = asked
    for at in (0x2000000, 0x3000000):
        other, same = run(at)
        assert same == grid and len(other) == len(first)
        for i in (2, 4, 6):
            assert other[i].tensor_map.address - first[i].tensor_map.address == at - 0x1000000
    assert not asked.gave


def test_an_epilogue_is_known_by_what_it_does_and_not_by_its_tensors():
    one, other = (bias(v) | gelu() | residual(r, 2.0) | total(s) for v, r, s in ("abc", "def"))
    assert one.form == other.form and hash(one.form) == hash(other.form)
    assert one.tensors == ["a", "b", "c"] and [x.tensor for x in other.given] == ["d", "e", "f"]
    assert one.matrix == "b" and (bias("a") | residual("b")).form != (residual("b") | bias("a")).form


@pytest.mark.parametrize(("arch", "cut"), [("sm_90a", Plan()), ("sm_90a", Plan(64, 1, 2)), ("sm_100a", Umma(256, 2))])
def test_a_cluster_that_a_gpu_has_no_room_for_is_refused_in_words_and_never_chosen(arch, cut):
    torch = pytest.importorskip("torch")
    a, b = torch.ones(256, 256).bfloat16(), torch.ones(256, 256).bfloat16()
    c, groups = torch.empty(256, 256).bfloat16(), torch.ones(1, 256, 256).bfloat16()
    few = "a cluster has 2 CTAs, one to an SM, and this GPU has no room for one"
    with cute.simulation(arch, sms=1):
        with pytest.raises(cute.CuteError, match=few):
            kernels.matmul(a, b, cut=cut)
        with pytest.raises(cute.CuteError, match=few):
            grouped.plan(a, groups, None, c, cut=grouped.Cut(128, (2, 1)) if arch == "sm_90a" else cut)
        if arch == "sm_100a":
            with pytest.raises(cute.CuteError, match=few):
                umma_outer.plan(a, b, None, groups, cut)
            assert umma_plan.plan(c, 256, cute.BFloat16, 1, cute.target(arch)).ctas == 1
        else:
            found = plan(view(c), 256, cute.BFloat16, 1)
            assert found.sharers * found.parts == 1


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_80"])
def test_groups_are_cut_for_a_gpu_without_room_for_a_cluster(arch):
    """Forward and the matrices' gradient, of so many rows that a larger GPU has clusters of two."""
    torch = pytest.importorskip("torch")
    rows, n = 8192, 512
    a, b, c = torch.ones(rows, 64).bfloat16(), torch.ones(2, n, 64).bfloat16(), torch.ones(rows, n).bfloat16()
    ends, db = torch.tensor([rows, rows], dtype=torch.int32), torch.empty(2, n, 64).bfloat16()
    found = {}
    for sms in (1, 132):
        with cute.simulation(arch, sms=sms):
            found[sms] = [grouped.plan(a, b, ends, c), grouped_outer.plan(c, a, ends, db)]
    assert all(work.cluster in (None, (1, 1, 1)) for work in found[1])
    assert arch == "sm_80" or found[132][0].cluster[0] == 2


@pytest.mark.parametrize("sms", [1, 2, 3])
def test_weights_of_four_bits_are_cut_for_few_sms(sms):
    def room(ctas):
        return sms // ctas

    found = mixed.cut_of(3, 1, 3, 1, room)
    assert found.sharers * found.parts <= sms
    w, x = kernels.int4_weights(np.zeros((8, 300), np.int8), np.ones((8, 3), np.float16)), np.ones((3, 304), np.float16)
    cut = mixed.Cut(256, sharers=4)
    with (
        mock.patch.object(mixed, "most_clusters", lambda x, ctas: room(ctas)),
        mock.patch.object(entry, "check_target", return_value=entry.WARPGROUPS),
        pytest.raises(cute.CuteError, match="a cluster has 4 CTAs, one to an SM, and this GPU has no room for one"),
    ):
        mixed.plan(x[:, :300], w.words, w.factors, np.ones((3, 8), np.float16), w.middle, 8, cut)


@cuda.jit
def places(order, out):
    i = cute.Int32(cuda.threadIdx.x)
    m, n, layer = order.decode(i)
    _, share = share_of(layer, 4)
    first, end = part_of_k(64, share, 4, 0, 1)
    out[i, 0], out[i, 1], out[i, 2], out[i, 3] = m, n, layer, order.place(i)
    out[i, 4], out[i, 5] = first, end


def compiled_places(order, like):
    """What compiled code finds, on this machine's processor."""
    out = np.full_like(like, -1)
    Native(places, (order, out)).run(len(out), order, out)
    return out


def test_every_tile_is_shared_alike_in_both_engines():
    order, out = Shares((17, 16, 1), (1, 1, 1), 16, False, 0, 4), np.full((32, 6), -1, np.int32)
    cute.simulate(places)[1, 32](order, out)
    assert out[:, 2].tolist() == [0, 1, 2, 3] * 8
    np.testing.assert_array_equal(compiled_places(order, out), out)


def test_the_last_round_alone_is_shared_where_it_would_keep_few_busy():
    """136 tiles on 132 SMs: the shares cover the tail's K once, and each tile before it is whole."""
    c, k = np.empty((2176, 2048), np.float16), 4096
    cut = plan(c, k, cute.BFloat16, 132)
    assert cut.tail and cut.splits > 1
    most = 132 // cut.sharers
    work = clusters_of(c, cut)
    alone = alone_of(work, most, cut)
    assert 0 < (work - alone) * cut.splits <= most
    out = np.full((296, 6), -1, np.int32)  # 264 tiles alone, and 8 of four shares each
    order = Shares((17, 16, 1), (1, 1, 1), 16, False, cute.Int32(264), 4)
    cute.simulate(places)[1, 296](order, out)
    assert len({tuple(x) for x in out[:, :2]}) == 272
    assert out[:, 2].tolist() == [4] * 264 + [0, 1, 2, 3] * 8
    assert out[264:, 3].tolist() == [i // 4 for i in range(32)]
    assert out[262:268, 4:].tolist() == [[0, 64], [0, 64], [0, 16], [16, 32], [32, 48], [48, 64]]
    np.testing.assert_array_equal(compiled_places(order, out), out)
    assert not plan(np.empty((4096, 4096), np.float16), k, cute.BFloat16, 132).tail
