# SPDX-License-Identifier: Apache-2.0
"""The types of the parts of tensors follow from what is parted, by the layouts of the instructions: one that is said
otherwise is refused, with both types."""

from __future__ import annotations

import re
from itertools import product as combined

import pytest

pytest.importorskip("xdsl")

from xdsl.parser import Parser  # noqa: E402

import numba_cute as cute  # noqa: E402
from numba_cute import layout  # noqa: E402
from numba_cute.atoms.copy_atom import retiled, thread_values  # noqa: E402
from numba_cute.ir.dialect import modules  # noqa: E402
from numba_cute.ir.dialect.checked import checked  # noqa: E402
from numba_cute.ir.dialect.meaning.atoms import bits_of, copy_traits, mma_traits  # noqa: E402
from numba_cute.ir.dialect.partitions import RULES  # noqa: E402
from numba_cute.ir.lift.objects import object_text  # noqa: E402
from tests import printed_ir  # noqa: E402

NVGPU = "!cute_nvgpu."
COPIES = [
    *(f"atom.universal_copy<{e}{b}>" for e, b in (("f32", ""), ("f16", ", 128 b"), ("f8E4M3FN", ", 32 b"))),
    "atom.simt_async_copy<f16, cache = global, 128 b>",
    *(f'atom.ldsm<val_type = f16, mode = <"(8,8)">, sz_pattern = u16, num_matrices = {n}, {w}>'
      for n, w in combined((1, 2, 4), "nt")),
    'atom.ldsm<val_type = i8, mode = <"(8,8)">, sz_pattern = u16, num_matrices = 4, n>',
    *(f'atom.stsm<bf16, mode = <"(8,8)">, num_matrices = {n}, {w}>' for n, w in combined((1, 2, 4), "nt")),
]  # fmt: skip
PRODUCTS = [
    "atom.universal_fma<1x1x1, (f32, f32) -> f32 >",
    *(f"sm80.mma<{e}, elem_type = ({a}, {a}, {c}) >" for e, a, c in (
        ("16x8x8", "f16", "f16"), ("16x8x16", "bf16", "f32"), ("16x8x4", "tf32", "f32"), ("16x8x8", "tf32", "f32"),
        ("16x8x32", "f8E5M2", "f32"), ("16x8x32", "si8", "i32"))),
    *(f"sm90.mma<64x{n}x{k}, ab_major = (k, k), elem_type = ({a}, {a}, f32), frag_kind = {kind}>"
      for n, (k, a), kind in combined((8, 128), ((16, "f16"), (8, "tf32"), (32, "f8E4M3FN")), ("ss", "rs"))),
    *(f"sm100.mma<{m}x64x16, num_cta = {ctas}, ab_major = (k, mn), elem_type = (f16, f16, f32), frag_kind = ss, "
      f"c_scale_exp = 0>" for m, ctas in ((64, 1), (128, 1), (128, 2), (256, 2))),
]  # fmt: skip


def parsed(text):
    return Parser(modules.context(), text).parse_type()


def table(lay):
    """What a layout of (thread, value) gives, thread by thread."""
    threads, values = (layout.size(lay, (i,)) for i in (0, 1))
    return [[lay((t, v)) for v in range(values)] for t in range(threads)]


@pytest.mark.parametrize("name", COPIES)
def test_copies_hold_what_this_library_copies(name):
    t = parsed(NVGPU + name)
    told, own = copy_traits(t.name.partition(".")[2], t.data), eval(object_text(t), {"cute": cute}).traits
    assert [table(x) for x in told] == [table(x) for x in (own.ref, own.src, own.dst)]


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_hold_what_this_library_multiplies(name):
    t = parsed(NVGPU + name)
    told, own = mma_traits(t.name.partition(".")[2], t.data), eval(object_text(t), {"cute": cute}).traits
    assert (told.extents, told.threads) == (own.shape_mnk, layout.size(own.thr_id))
    assert [table(told.layouts[p]) for p in "ABC"] == [table(x) for x in (own.a, own.b, own.c)]


@pytest.mark.parametrize(("element", "bits"), [("f16", 16), ("bf16", 16), ("tf32", 32), ("f8E4M3FN", 8), ("ui4", 4),
                                               ("!cute_nvgpu.tma_descriptor_tiled", 0)])  # fmt: skip
def test_bits_of_elements_are_told_by_their_names(element, bits):
    assert bits_of(element) == bits


TILED = {
    "elements": ('!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((32,4),(4,4)):((64,4),'
                 '(16,1))">, tiler_mn = <"[16:1;128:1]">>'),
    "matrices": ('!cute.tiled_copy<!cute_nvgpu.atom.ldsm<val_type = f16, mode = <"(8,8)">, sz_pattern = u16, '
                 'num_matrices = 4, n>, layout_copy_tv = <"((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0)))'
                 '">, tiler_mn = <"[32:1;16:1]">>'),
}  # fmt: skip


def shapes(n):
    """Tensors of n tiles along both modes, of either order."""
    return ["(R,C):(1,R)".replace("R", str(n * 64)).replace("C", str(n * 128)), f"({n * 64},{n * 128}):({n * 128},1)"]


@pytest.mark.parametrize("side", "SD")
@pytest.mark.parametrize("copy", TILED.values(), ids=TILED)
@pytest.mark.parametrize("shape", [*shapes(1), *shapes(3)])
def test_part_of_a_copy_is_this_librarys_part(copy, side, shape):
    t, tensor = parsed(copy), parsed(f'!cute.memref<f32, gmem, "{shape}">')
    own, lay = eval(object_text(t), {"cute": cute}), checked("layout", tensor.data[-1])
    parts = thread_values(layout.zipped_divide(lay, own.tiler_mn), own.layout_tv_tiled, own.atom.traits.ref,
                          own.atom.traits.src if side == "S" else own.atom.traits.dst)  # fmt: skip
    want = layout.slice_(parts, (0, None, (None, None)))
    (found,) = RULES[f"tiled.copy.partition_{side}"]([t, tensor, parsed('!cute.coord<"?">')], {})
    got = checked("layout", found.data[-1])
    assert layout.size(got) == layout.size(want)
    assert [got(i) for i in range(layout.size(got))] == [want(i) for i in range(layout.size(want))]


@pytest.mark.parametrize("held", ["((2,2,2),4,2):((1,2,4),8,32)", "((2,2,2),2,3):((1,2,4),24,8)"])
def test_view_of_registers_is_this_librarys_view(held):
    t, tensor = parsed(TILED["matrices"]), parsed(f'!cute.memref<f16, rmem, "{held}">')
    own, lay = eval(object_text(t), {"cute": cute}), checked("layout", tensor.data[-1])
    want = retiled(lay, own.layout_tv_tiled, own.tiler_mn, own.atom.traits.ref)
    got = checked("layout", RULES["tiled.copy.retile"]([t, tensor], {})[0].data[-1])
    assert [got(i) for i in range(layout.size(got))] == [want(i) for i in range(layout.size(want))]


FMA = ('!cute.tiled_mma<!cute_nvgpu.atom.universal_fma<1x1x1, (f32, f32) -> f32 >, atom_layout_MNK = <"(4,4,1):(4,1,0)'
       '">, permutation_MNK = <"[(4,2):(2,1);_;_]">>')  # fmt: skip
WARP = ('!cute.tiled_mma<!cute_nvgpu.sm80.mma<16x8x16, elem_type = (f16, f16, f32) >, atom_layout_MNK = <"(2,2,1):'
        '(1,2,0)">, permutation_MNK = <"[32:1;32:1;16:1]">>')  # fmt: skip
GROUP = ("!cute.tiled_mma<!cute_nvgpu.sm90.mma<64x128x16, ab_major = (k, k), elem_type = (f16, f16, f32), frag_kind = "
         'ss>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>')  # fmt: skip
PAIR = ("!cute.tiled_mma<!cute_nvgpu.sm100.mma<256x128x16, num_cta = 2, ab_major = (k, k), elem_type = (f16, f16, f32),"
        ' frag_kind = FRAG, c_scale_exp = 0>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>')  # fmt: skip
LOADS = ('!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f16, copy_bits = 8192, tma_gbasis = <"(32,16):(1@1,1@0)">, '
         "tma_format = F16_RN>")  # fmt: skip
NAMES = {"FMA": FMA, "WARP": WARP, "GROUP": GROUP, "PAIR": PAIR.replace("FRAG", "ss"), "FROM_TMEM":
         PAIR.replace("FRAG", "ts"), "LOADS": LOADS}  # fmt: skip
NAMES |= {"ELEMENTS": TILED["elements"], "MATRICES": TILED["matrices"]}

TOLD = """
cute.local_tile(%a, %b, %c) : (!cute.memref<f32, gmem, "(?,96):(96,1)">, !cute.tile<"[8:1;32:1]">, !cute.coord<"(?,_)">) -> !cute.memref<f32, gmem, "(8,32,3):(96,1,32)">
cute.local_tile(%a, %b, %c, "(1,_,1)") : (!cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">, !cute.tile<"[8:1;16:1;32:1]">, !cute.coord<"(?,?,_)">) -> !cute.coord_tensor<"(?{div=8},0)", "(8,32,?):(1@0,1@1,32@1)">
cute.local_tile(%a, %b, %c, "(1,_)") : (!cute.memref<f32, gmem, "(64,4):(1,64)">, !cute.tile<"[8:1;16:1]">, !cute.coord<"(?,?,2)">) -> !cute.memref<f32, gmem, "(8):(1)">
cute.tiled.copy.partition_S(%a, %b, %c) : (ELEMENTS, !cute.memref<f32, gmem, "(16,128):(?{i64},1)">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?{i64})),0,0)">
cute.tiled.copy.partition_S(%a, %b, %c) : (MATRICES, !cute.memref<f16, smem, align<1024>, "S<2,3,3> o 0 o ((8,16),(32,1)):((32,256),(1,0))">, !cute.coord<"?">) -> !cute.memref<f16, smem, "((8,1),4,2):((1,0),1024,?{div=16})">
cute.tiled.copy.partition_D(%a, %b, %c) : (MATRICES, !cute.coord_tensor<"(0,0)", "(64,32):(1@0,1@1)">, !cute.coord<"?">) -> !cute.coord_tensor<"(?,?)", "(((2,2,2),1),2,2):(((1@1,8@0,8@1),0),32@0,16@1)">
cute.tiled.copy.retile(%a, %b) : (MATRICES, !cute.memref<f16, rmem, "((2,2,2),4,2):((1,2,4),8,32)">) -> !cute.memref<f16, rmem, "((8,1),4,2):((1,0),8,32)">
cute.tiled.mma.partition A (%a, %b, %c) : (WARP, !cute.memref<f16, gmem, "(64,?):(?{i64},1)">, !cute.coord<"?">) -> !cute.memref<f16, gmem, "((2,2,2),2,?):((1,?{i64},8),?{i64},16)">
cute.tiled.mma.partition C (%a, %b, %c) : (PAIR, !cute.coord_tensor<"(0,0)", "(256,128):(1@0,1@1)">, !cute.coord<"?">) -> !cute.coord_tensor<"(?,0)", "((128,128),1,1):((1@0,1@1),0,0)">
cute.tiled.mma.partition_shape C (%a, %b) : (FMA, !cute.shape<"(16,8)">) -> !cute.shape<"(1,4,2)">
cute.tiled.mma.partition_shape C (%a, %b) : (GROUP, !cute.shape<"(128,128)">) -> !cute.shape<"((2,2,16),2,1)">
cute.mma.make_fragment A (%a, %b) : (WARP, !cute.memref<f16, smem, "S<3,3,3> o ? o ((2,2,2),(2,2),2):((64,8,1024),(32,512),2048)">) -> !cute.memref<f16, rmem, "((2,2,2),(2,2),2):((1,2,4),(8,16),32)">
cute.mma.make_fragment B (%a, %b) : (WARP, !cute.memref<f16, smem, "((2,2),(2,4),2):((1,8),(?,1024),128)">) -> !cute.memref<f16, rmem, "((2,2),(2,4),2):((1,2),(32,8),4)">
cute.mma.make_fragment C (%a, %b) : (WARP, !cute.memref<f16, gmem, "((2,2),4,8):((1,?),?,16)">) -> !cute.memref<f32, rmem, "((2,2),4,8):((1,2),4,16)">
cute.mma.make_fragment A (%a, %b) : (GROUP, !cute.memref<f16, smem, align<128>, S<3,4,3>, "((64,16),2,4,3):((64,1),4096,16,8192)">) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,2,4,3):(0,512,2,1024)">
cute.mma.make_fragment C (%a, %b) : (PAIR, !cute.shape<"((128,128),1,1,2)">) -> !cute.memref<f32, tmem, align<1>, "((128,128),1,1,2):((65536,1),0,0,128)">
"""  # noqa: E501
"""What is told; a result of another layout is refused."""

UNTOLD = """
%r = cute.mma.make_fragment A (%a, %b) : (FROM_TMEM, !cute.shape<"((128,16),1,4)">) -> !cute.memref<f16, tmem, "((128,16),1,4):((131072,1),0,16)">
%r = cute.mma.make_fragment A (%a, %b) : (WARP, !cute.shape<"((2,2,2),2,2)">) -> !cute.memref<f16, rmem, "((2,2,2),2,2):((1,2,4),16,8)">
%r = cute.tiled.copy.partition_S(%a, %b, %c) : (!cute.tiled_copy<!cute_nvgpu.atom.tmem_load<f32, 16 DP, 64 bit, x2>, layout_copy_tv = <"(32,(4,16)):(0,(1,4))">, tiler_mn = <"[16:1;4:1]">>, !cute.memref<f32, tmem, "(16,4):(65536,1)">, !cute.coord<"?">) -> !cute.memref<f32, tmem, "(((4,16),1),1,1):(((1,65536),0),0,0)">
%r = cute.tiled.mma.partition A (%a, %b, %c) : (!cute.tiled_mma<!cute_nvgpu.atom.universal_copy<f32>>, !cute.memref<f32, gmem, "(64,4):(1,64)">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "(4,4):(1,64)">
%r = cute.mma.make_fragment C (%a, %b) : (!cute_nvgpu.sm80.mma<16x8x32, elem_type = (si8, si8, i32) >, !cute.shape<"((2,2),2,2)">) -> !cute.memref<i32, rmem, "((2,2),2,2):((1,2),4,8)">
%r = cute.local_tile(%a, %b, %c) : (!cute.coord_tensor<"(0,0,0)", "(((32,4),?),((16,4),?)):(((8@0,2@0),1@2),((0,1/2@0),1@1))">, !cute.tile<"[128:1;256:1]">, !cute.coord<"(_,_)">) -> !cute.coord_tensor<"(0,0,0)", "(((32,4),1),((16,4),4),?,?):(((8@0,2@0),0),((0,1/2@0),1@1),1@2,4@1)">
%r, %s = cute_nvgpu.atom.tma_partition(%a, %b, %c, %d, %e) : (LOADS, !cute.coord<"?">, !cute.layout<"2:1">, !cute.memref<f16, smem, "((32,16),3):((16,1),512)">, !cute.coord_tensor<"(0,0)", "((32,16),?):((1@1,1@0),32@1)">) -> (!cute.memref<f16, smem, "((256,2),3):((1,256),512)">, !cute.coord_tensor<"(0,0)", "(((16,16),2),?):(((1@0,1@1),16@1),32@1)">)
"""  # noqa: E501
"""What the types do not tell is taken as it is said."""

REFUSED = """
%r = cute.local_tile(%a, %b, %c, "(1,_,1)") : (!cute.memref<f32, gmem, "(64,4):(1,64)">, !cute.tile<"[8:1;16:1]">, !cute.coord<"(?,?)">) -> !cute.memref<f32, gmem, "(8):(1)"> | has 3 modes, the tile 2
%r = cute.local_tile(%a, %b, %c) : (!cute.memref<f32, gmem, "(64,4):(1,64)">, !cute.tile<"[8:1;4:1]">, !cute.coord<"(?,?,?)">) -> !cute.memref<f32, gmem, "(8,4):(1,64)"> | is not nested as
%r = cute.tiled.mma.partition A (%a, %b, %c) : (WARP, !cute.memref<f16, gmem, "64:1">, !cute.coord<"?">) -> !cute.memref<f16, gmem, "64:1"> | modes
%r, %s = cute_nvgpu.atom.tma_partition(%a, %b, %c, %d, %e) : (LOADS, !cute.coord<"0">, !cute.layout<"1:0">, !cute.memref<f16, smem, "((32,16),3):((16,1),512)">, !cute.coord_tensor<"(0,0)", "((32,16),?):((1@1,1@0),32@1)">) -> (!cute.memref<f16, smem, "((256,2),3):((1,256),512)">, !cute.coord_tensor<"(0,0)", "(((16,16),2),?):(((1@0,1@1),16@1),32@1)">) | "((512,1),3):((1,0),512)"
"""  # noqa: E501


def lines(text):
    for name, type_ in NAMES.items():
        text = re.sub(rf"\b{name}\b", lambda _, t=type_: t, text)
    return text.strip().splitlines()


def name_of(line):
    return re.search(r"(?<!!)\b(cute|cute_nvgpu)\.[\w.]*\w", line)[0]


def problems(line):
    found = printed_ir.read(printed_ir.module_of(name_of(line), line))
    assert {d.line for d in found.problems} <= {3}
    return [d.message for d in found.problems]


@pytest.mark.parametrize("line", lines(TOLD), ids=lambda line: line.partition("(")[0])
def test_type_of_a_part_is_told_and_another_is_refused_with_both(line):
    assert problems(f"%r = {line}") == []
    head, _, last = line.rpartition('"')
    wrong = f'{head[:-1]},7)"{last}' if line.startswith("cute.tiled.mma.partition_shape") else f'{head},7"{last}'
    start, _, layout_text = wrong.rpartition('"')[0].rpartition('"')
    shape, _, stride = layout_text.partition(":")
    if stride:
        wrong = f'{start}"({shape},7):({stride.removesuffix(",7")},1)"{last}'
    (message, *_) = problems(f"%r = {wrong}")
    stated = wrong.rpartition("-> ")[2]
    told = line.rpartition('"')[0].rpartition('"')[2]
    assert "incompatible with return type" in message and stated in message
    assert re.sub(r"\{[^}]*\}", "", told) in re.sub(r"\{[^}]*\}", "", message.partition("incompatible")[0])


@pytest.mark.parametrize("line", lines(UNTOLD), ids=lambda line: line.partition("(")[0])
def test_what_the_types_do_not_tell_is_taken_as_said(line):
    assert problems(line) == []


@pytest.mark.parametrize("line", lines(REFUSED), ids=lambda line: line.rpartition(" | ")[2])
def test_part_that_there_is_not_is_refused(line):
    text, _, words = line.rpartition(" | ")
    assert words in problems(text)[0]
