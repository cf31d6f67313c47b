# SPDX-License-Identifier: Apache-2.0
"""Pointers, tensors, atoms, and what is done with them."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from ...atoms.op import Field
from ...layout.basis import ScaledBasis
from ...layout.int_tuple import product
from ..dialect.attributes import CuteType
from ..dialect.notation import RawLayout, read
from ..dialect.printed_types import PrintedType
from . import objects, vectors
from .patterns import layout_of
from .spelling import element, swizzle_text, tuple_text
from .tuples import attributes, give
from .values import PLUS, Expr, Object, Tree, Vector
from .writer import Lifter, lifts


def _type(value: SSAValue) -> Any:
    return value.type


# ------------------------------------------------------------------ pointers


@lifts("cute.get_iter")
def get_iter(w: Lifter, op: Any) -> None:
    """Write the iterator of a tensor."""
    source = w.expr(op.operands[0])
    text = Expr(f"{source.at(95)}.iterator")
    w.bind(op.results[0], text, tree=objects_name(op.results[0].type) == "cute.arith_tuple_iter")


def objects_name(t: Any) -> str:
    """Name a printed type with its dialect; "" for another."""
    return t.name if isinstance(t, PrintedType) else ""


@lifts("cute.get_layout")
def get_layout(w: Lifter, op: Any) -> None:
    """Write the layout of a tensor."""
    w.bind(op.results[0], Expr(f"{w.expr(op.operands[0]).at(95)}.layout"))


@lifts("cute.add_offset")
def add_offset(w: Lifter, op: Any) -> None:
    """A pointer, or coordinates, some elements further."""
    base, offset = op.operands
    if objects_name(base.type) == "cute.arith_tuple_iter":
        a, b = w.tree(base).flat(), w.tree(offset).flat()
        leaves = [x if y == "0" else y if x == "0" else Expr(f"{x.at(PLUS)} + {y.at(PLUS)}", PLUS)
                  for x, y in zip(a, b, strict=True)]  # fmt: skip
        w.bind_tree(op.results[0], Tree(tuple(leaves)))
        return
    step = w.expr(offset)
    if step == "0":
        w.values[w.root(op.results[0])] = w.get(base)
        return
    w.bind(op.results[0], Expr(f"{w.expr(base).at(PLUS)} + {step.at(PLUS)}", PLUS))


@lifts("cute.recast_iter")
def recast_iter(w: Lifter, op: Any) -> None:
    """A pointer to elements of another type, or swizzled."""
    old, new = _type(op.operands[0]), _type(op.results[0])
    widths = [getattr(element(t.data[0]), "width", 0) for t in (old, new)]
    if new.data[1] == "rmem" and widths[0] != widths[1]:
        if op not in w.values:
            w.refuse(op, f"registers of {old.data[0]} are not viewed as {new.data[0]}: they are not allocated here")
        w.values[w.root(op.results[0])] = Expr(f"{w.values[op][1]}.iterator")
        return
    more = []
    if new.data[3] is not None:
        more.append(f"swizzle_={swizzle_text(new.data[3])}")
    elif old.data[3] is not None:
        more.append("swizzle_=cute.make_swizzle(0, 4, 3)")
    if old.data[0] != new.data[0]:
        more.append(f"dtype={w.element(new.data[0])}")
    if not more:
        w.values[w.root(op.results[0])] = w.get(op.operands[0])
        return
    give(w, op, f"cute.recast_ptr({', '.join((str(w.expr(op.operands[0])), *more))})")


_SPACES = {"generic": "generic", "gmem": "gmem", "smem": "smem", "rmem": "rmem", "tmem": "tmem"}


@lifts("cute.inttoptr")
def inttoptr(w: Lifter, op: Any) -> None:
    """A pointer at an address."""
    elem, space, align, swizzle = _type(op.results[0]).data
    if space not in _SPACES or swizzle is not None:
        w.refuse(op, f"a pointer of '{op.results[0].type}' is not lifted")
    aligned = "" if align is None else f", assumed_align={align}"
    dtype = "cute.Uint8" if elem.startswith("!") else w.element(elem)  # a tensor map is 128 bytes
    text = f"cute.make_ptr({dtype}, {w.expr(op.operands[0])}, cute.AddressSpace.{space}{aligned})"
    give(w, op, text)


@lifts("cute.ptrtoint")
def ptrtoint(w: Lifter, op: Any) -> None:
    """The address of a pointer."""
    w.bind(op.results[0], Expr(f"{w.expr(op.operands[0]).at(95)}.toint()"))


@lifts("builtin.unrealized_conversion_cast")
def address(w: Lifter, op: Any) -> None:
    """A pointer as LLVM has it: this library's functions take pointers. Or the same vector, of another name for its
    elements."""
    if len(op.operands) == 1 and w.is_vector(op.operands[0]) and w.is_vector(op.results[0]):
        vectors.renamed(w, op)
        return
    if len(op.operands) != 1 or objects_name(op.operands[0].type) != "cute.ptr":
        w.refuse(op, f"a conversion of {', '.join(str(v.type) for v in op.operands)} is not lifted")
    w.values[w.root(op.results[0])] = w.get(op.operands[0])


# ------------------------------------------------------------------ tensors


@lifts("cute.make_view")
def make_view(w: Lifter, op: Any) -> None:
    """A tensor of a beginning and a layout."""
    iterator, layout = op.operands
    same = w.flow.patterns.tensor_of(iterator, layout)
    if same is not None:
        w.values[w.root(op.results[0])] = w.get(same)
        return
    found = w.get(iterator)
    begin = found.text() if isinstance(found, Tree) else w.expr(iterator)
    if getattr(layout.type, "kind", "") == "composed_layout" and _type(op.results[0]).data[1] == "smem":
        begin = Expr(f"cute.recast_ptr({begin}, reinterpret=True)")  # parts of it lie by strides alone
    give(w, op, f"cute.make_tensor({begin}, {w.expr(layout)})")


@lifts("cute.slice")
def slice_(w: Lifter, op: Any) -> None:
    """A part: the modes that a coordinate marks are kept."""
    source, coord = op.operands
    at = w.tree(coord)
    if isinstance(source.type, CuteType):
        give(w, op, f"cute.slice_({w.expr(source)}, {at.text()})")
        return
    index = at.text()
    text = str(index)[1:-1] if isinstance(at.leaves, tuple) and len(at.leaves) > 1 and at.whole is None else str(index)
    if None not in at.flat():  # an element, as a tensor of none
        give(w, op, f"cute.slice_({w.expr(source)}, {index})")
        return
    give(w, op, f"{w.expr(source).at(95)}[{text}]")


@lifts("cute.local_tile")
def local_tile(w: Lifter, op: Any) -> None:
    """A tile of a tensor."""
    proj = attributes(op).get("proj")
    more = "" if proj is None else f", proj={tuple_text(read('coord', proj))}"
    give(w, op, f"cute.local_tile({', '.join(str(w.expr(v)) for v in op.operands)}{more})")


@lifts("cute.memref.load")
def load(w: Lifter, op: Any) -> None:
    """An element."""
    coord = w.tree(op.operands[1])
    w.bind(op.results[0], Expr(f"{w.expr(op.operands[0]).at(95)}[{_index(coord)}]"), moves=False)


@lifts("cute.memref.store")
def store(w: Lifter, op: Any) -> None:
    """An element is set."""
    tensor, coord, value = op.operands
    w.line(f"{w.expr(tensor).at(95)}[{_index(w.tree(coord))}] = {w.expr(value)}")


def _index(coord: Tree) -> str:
    text = str(coord.text())
    return text[1:-1] if isinstance(coord.leaves, tuple) and len(coord.leaves) > 1 and coord.whole is None else text


@lifts("cute.memref.load_vec")
def load_vec(w: Lifter, op: Any) -> None:
    """All elements."""
    tensor = op.operands[0]
    shape = layout_of(tensor.type).shape
    text = f"{w.expr(tensor).at(95)}.load()"
    w.bind(op.results[0], Vector(text, shape=shape if isinstance(shape, tuple) else None), moves=False)


@lifts("cute.memref.store_vec")
def store_vec(w: Lifter, op: Any) -> None:
    """All elements are set."""
    value, tensor = op.operands
    target, source = w.expr(tensor).at(95), w.expr(value)
    if isinstance(source, Vector) and source.splat:
        w.line(f"{target}.fill({source.splat[0]})")
        return
    w.line(f"{target}.store({source})")


@lifts("cute.print", "cute.print_view")
def printing(w: Lifter, op: Any) -> None:
    """Write a print."""
    if op.name == "cute.print_view":
        w.line(f"cute.print_tensor({w.expr(op.operands[0])})")
        return
    text = attributes(op).get("format", "{} " * len(op.operands))
    args = ", ".join((repr(text.rstrip("\n") if w.host else text), *(str(w.expr(v)) for v in op.operands)))
    w.line(f"cute.printf({args})")


# ------------------------------------------------------------------ atoms


def _object(w: Lifter, op: Any) -> None:
    w.get(op.results[0])


@lifts("cute.make_atom")
def make_atom(w: Lifter, op: Any) -> None:
    """An atom is what its type says."""
    w.values[w.root(op.results[0])] = w.object_of(op.results[0].type)


@lifts("cute.make_tiled_copy", "cute.make_tiled_mma")
def make_tiled(w: Lifter, op: Any) -> None:
    """A tiled object is what its type says."""
    t = op.results[0].type
    if not objects.is_object(t):
        w.refuse(op, f"'{t}' does not say how this library tiles it")
    w.values[w.root(op.results[0])] = w.object_of(t)


@lifts("cute_nvgpu.atom.make_tmem_copy")
def make_tmem_copy(w: Lifter, op: Any) -> None:
    """A copy of tensor memory, tiled for a tensor."""
    give(w, op, f"cute.nvgpu.tcgen05.make_tmem_copy({w.expr(op.operands[0])}, {w.expr(op.operands[1])})")


@lifts("cute_nvgpu.atom.make_s2t_copy")
def make_s2t_copy(w: Lifter, op: Any) -> None:
    """A copy from shared to tensor memory, tiled for a tensor."""
    give(w, op, f"cute.nvgpu.tcgen05.make_s2t_copy({w.expr(op.operands[0])}, {w.expr(op.operands[1])})")


@lifts("cute_nvgpu.atom.get_copy_s2t_smem_desc_view")
def s2t_view(w: Lifter, op: Any) -> None:
    """Shared memory as descriptors, as such a copy takes it."""
    give(w, op, f"cute.nvgpu.tcgen05.get_s2t_smem_desc_tensor({w.expr(op.operands[0])}, {w.expr(op.operands[1])})")


@lifts("cute.tiled.copy.partition_S", "cute.tiled.copy.partition_D")
def partition_copy(w: Lifter, op: Any) -> None:
    """A thread's part of what is copied."""
    copy, tensor, thread = op.operands
    side = op.name[-1]
    give(w, op, f"{w.expr(copy).at(95)}.get_slice({w.expr(thread)}).partition_{side}({w.expr(tensor)})")


@lifts("cute.tiled.copy.retile")
def retile(w: Lifter, op: Any) -> None:
    """Registers as a copy takes them."""
    give(w, op, f"{w.expr(op.operands[0]).at(95)}.retile({w.expr(op.operands[1])})")


@lifts("cute.tiled.mma.partition")
def partition_mma(w: Lifter, op: Any) -> None:
    """A thread's part of an operand."""
    mma, tensor, thread = op.operands
    part = attributes(op)["part"]
    give(w, op, f"{w.expr(mma).at(95)}.get_slice({w.expr(thread)}).partition_{part}({w.expr(tensor)})")


@lifts("cute.tiled.mma.partition_shape")
def partition_shape(w: Lifter, op: Any) -> None:
    """The shape of a thread's part."""
    mma, shape = op.operands
    give(w, op, f"{w.expr(mma).at(95)}.partition_shape_{attributes(op)['part']}({w.expr(shape)})")


@lifts("cute.mma.make_fragment")
def make_fragment(w: Lifter, op: Any) -> None:
    """Write a matrix instruction's fragment: registers, descriptors, or tensor memory."""
    mma, tensor = op.operands
    part = attributes(op)["part"]
    moves = objects_name(op.results[0].type) != "cute.memref" or _type(op.results[0]).data[1] != "rmem"
    w.bind(op.results[0], Expr(f"{w.expr(mma).at(95)}.make_fragment_{part}({w.expr(tensor)})"), moves=moves)


_TMA_FIELDS = {"tma_bar": "tma_bar_ptr", "mcast_mask": "mcast_mask", "tma_descriptor_ptr": "tma_desc_ptr",
               "cache_policy": "cache_policy"}  # fmt: skip
_MMA_FIELDS = {field.value: field.name for field in Field}


@lifts("cute_nvgpu.atom.set_value")
def set_value(w: Lifter, op: Any) -> None:
    """A field of an atom is set: what uses the atom is told."""
    atom, value = op.operands
    name = attributes(op)["field"]
    found = w.get(atom)
    if not isinstance(found, Object):
        found = Object(w.expr(atom), objects.kind(atom.type))
    known = _MMA_FIELDS if objects.is_mma(atom.type) else _TMA_FIELDS
    if name not in known:
        w.refuse(op, f"this library's atoms have no field {name}")
    w.values[w.root(op.results[0])] = found.with_field(name, w.expr(value))


@lifts("cute_nvgpu.atom.get_value")
def get_value(w: Lifter, op: Any) -> None:
    """A field that was set."""
    name = attributes(op)["field"]
    found = w.get(op.operands[0])
    if not isinstance(found, Object) or name not in found.fields:
        w.refuse(op, f"the field {name} is read before it is set")
    w.values[w.root(op.results[0])] = Expr(str(found.fields[name]))


@lifts("cute_nvgpu.atom.make_exec_tma")
def make_exec_tma(w: Lifter, op: Any) -> None:
    """A TMA atom in a kernel: this library has one for host and kernel."""
    w.values[w.root(op.results[0])] = Object(w.expr(op.operands[0]), objects.kind(op.results[0].type))


@lifts("cute_nvgpu.atom.tma_partition")
def tma_partition(w: Lifter, op: Any) -> None:
    """Write the parts that TMA copies, of a tensor in shared memory and of one of coordinates."""
    names = [w.local(hint) for hint in ("tma_smem", "tma_gmem")]
    args = ", ".join(str(w.expr(v)) for v in op.operands)
    w.line(f"{', '.join(names)} = cute.nvgpu.cpasync.tma_partition({args})")
    for result, name in zip(op.results, names, strict=True):
        w.values[result] = Expr(name)


@lifts("cute_nvgpu.prefetch_tma_desc")
def prefetch(w: Lifter, op: Any) -> None:
    """A tensor map is fetched into the cache."""
    w.line(f"cute.nvgpu.cpasync.prefetch_descriptor({w.expr(op.operands[0])})")


@lifts("cute_nvgpu.copy_tma_desc")
def copy_descriptor(w: Lifter, op: Any) -> None:
    """A tensor map is copied to memory."""
    w.by_one_lane(op, f"cute.nvgpu.cpasync.copy_tensormap({w.expr(op.operands[0])}, {w.expr(op.operands[1])})")


@lifts("cute_nvgpu.update_tma_desc")
def update_descriptor(w: Lifter, op: Any) -> None:
    """A tensor map is changed to another tensor's, which lies side by side along the map's first dimension: where its
    type does not say so, the kernel asserts it."""
    atom, tensor, pointer = op.operands
    given, layout = w.expr(tensor), layout_of(tensor.type)
    first = next((x for x in _type(atom).data if isinstance(x, RawLayout)), None)
    along = Tree(first.stride).flat()[0] if first is not None else None
    if not isinstance(along, ScaledBasis) or len(along.mode) != 1 or any(isinstance(s, tuple) for s in layout.shape):
        w.refuse(op, "it is lifted for tensors of flat modes")
    (mode,) = along.mode
    if layout.stride[mode] != 1:
        name = w.temporary("laid")
        strides = ", ".join("1" if i == mode else f"{given.at(95)}.stride[{i}]" for i in range(len(layout.shape)))
        w.line(f"assert {given.at(95)}.stride[{mode}] == 1")
        lay = f"cute.make_layout({given.at(95)}.shape, stride=({strides}))"
        w.line(f"{name} = cute.make_tensor({given.at(95)}.iterator, {lay})")
        given = Expr(name)
    w.by_one_lane(op, f"cute.nvgpu.cpasync.update_tma_descriptor({w.expr(atom)}, {given}, {w.expr(pointer)})")


def copied(w: Lifter, value: SSAValue) -> Expr:
    """Return an operand of a copy."""
    return w.expr(w.flow.patterns.bare(value))


@lifts("cute.prefetch")
def prefetch_tile(w: Lifter, op: Any) -> None:
    """Fetch into the cache what a copy would load."""
    found = w.get(w.flow.patterns.prefetching(op.operands[0]))
    if isinstance(found, Object) and found.fields:
        w.refuse(op, f"a prefetch with {', '.join(found.fields)} is not lifted")
    atom = found.text if isinstance(found, Object) else found
    w.line(f"cute.prefetch({atom}, {copied(w, op.operands[1])})")


@lifts("cute.copy")
def copy(w: Lifter, op: Any) -> None:
    """A copy."""
    atom, *tensors = op.operands
    found = w.get(atom)
    if len(tensors) == 2 and objects.kind(atom.type) == "universal_copy" and _more_than_one(atom.type, tensors[0].type):
        given = [str(copied(w, t)) for t in tensors]
        priority = _type(atom).data[2]
        if priority:
            given.append(f"l1c_evict_priority=cute.CacheEvictionPriority.{priority.upper()}")
        w.line(f"cute.{'autovec_copy' if priority else 'basic_copy'}({', '.join(given)})")
        return
    args = [str(found.text if isinstance(found, Object) else w.expr(atom)), *(str(copied(w, t)) for t in tensors[:2])]
    if len(tensors) > 2:
        args.append(f"pred={copied(w, tensors[2])}")
    fields = found.fields if isinstance(found, Object) else {}
    way = objects.tmem_way(op)
    if way:
        w.access_tmem()
    args += [f"{_TMA_FIELDS[name]}={value}" for name, value in fields.items()]
    w.line(f"cute.copy({', '.join(args)})")
    if way in ("load", "store") and not _waits(w, op, way):
        w.line(f"cute.arch.fence_view_async_tmem_{way}()")


def _more_than_one(atom: Any, t: Any) -> bool:
    """Say whether the first mode of a tensor has more values than one plain copy moves, so that several are needed."""
    shape = layout_of(t).shape
    for _ in range(2):
        shape = shape[0] if isinstance(shape, tuple) else shape
    width = getattr(element(atom.data[0]), "width", 0)
    return atom.data[1] is not None and product(shape) * width > atom.data[1]


def _waits(w: Lifter, op: Any, way: str) -> bool:
    """Say whether the module waits after a copy, or another copy of its kind comes first: if it does not wait, the CuTe
    DSL's own compiler does."""
    at = op.next_op
    while at is not None:
        if at in w.flow.needed:
            if at.name == "nvvm.tcgen05.wait":
                return str(attributes(at).get("kind")) == way
            return objects.tmem_way(at) == way
        at = at.next_op
    return False


@lifts("cute.gemm")
def gemm(w: Lifter, op: Any) -> None:
    """A product of matrices is added."""
    mma, *tensors = op.operands
    found = w.get(mma)
    text = str(found.text)
    room = "warpgroup" if "sm90" in str(mma.type) else "tcgen05"
    if "sm100" in str(mma.type):
        w.access_tmem(holds=False)
    for name, value in found.fields.items():
        text += f".set(cute.nvgpu.{room}.Field.{_MMA_FIELDS[name]}, {value})"
    d, *factors, c = tensors
    given = [_registers(w, x) for x in factors]
    if len(given) == 4:  # each with its scale factors
        given = [f"[{given[0]}, {given[1]}]", f"[{given[2]}, {given[3]}]"]
    if len(given) != 2:
        w.refuse(op, f"a product of {len(given)} tensors is not lifted")
    w.line(f"cute.gemm({', '.join((text, str(w.expr(d)), *given, str(w.expr(c))))})")


def _registers(w: Lifter, value: SSAValue) -> str:
    """Write a factor of a product: registers that do not lie one after the other, for one instruction, are put so."""
    t, text = _type(value), str(w.expr(value))
    if objects_name(t) != "cute.memref" or t.data[1] != "rmem" or _lies_together(layout_of(t)):
        return text
    name = w.temporary("packed")
    w.line(f"{name} = cute.make_rmem_tensor({tuple_text(layout_of(t).shape)}, {w.element(t.data[0])})")
    w.line(f"{name}.store({w.expr(value).at(95)}.load())")
    return name


def _lies_together(layout: Any) -> bool:
    """Say whether the elements of the first mode lie one after the other."""
    shape, stride = (x[0] if isinstance(x, tuple) else x for x in (layout.shape, layout.stride))
    step = 1
    for s, d in zip(Tree(shape).flat(), Tree(stride).flat(), strict=True):
        if s != 1 and d != step:
            return False
        step *= s
    return True


__all__ = ["copied"]
