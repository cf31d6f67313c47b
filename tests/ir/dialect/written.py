# SPDX-License-Identifier: Apache-2.0
"""Operations of the dialect as they are written, one line or more for each: the types of the operands, the line with
`%0`, `%1` for them, and the types of the results where the line does not show them."""

OPERATIONS = """
| %r = cute.static : !cute.tile<"[(2,4):(4,1);_]">
!cute.layout<"(?,8):(8,1)"> | cute.print(%0) : !cute.layout<"(?,8):(8,1)">
i32, i64 | %r = cute.make_int_tuple(%0, %1) : (i32, i64) -> !cute.int_tuple<"(?,(7,?{i64}))">
i32 | %r = cute.make_shape(%0) : (i32) -> !cute.shape<"(?{div=4},16)">
!cute.int_tuple<"?"> | %r = cute.make_stride(%0) : (!cute.int_tuple<"?">) -> !cute.stride<"(1@0,?@1)">
| %r = cute.make_coord() : () -> !cute.coord<"(_,3)">
i32 | %r = cute.make_tile(%0) : (i32) -> !cute.tile<"[?:1;_]">
!cute.shape<"(4,?)">, !cute.stride<"(1,4)"> | %r = cute.make_layout(%0, %1) : (!cute.shape<"(4,?)">, !cute.stride<"(1,4)">) -> !cute.layout<"(4,?):(1,4)">
!cute.swizzle<"S<2,4,3>">, !cute.int_tuple<"16">, !cute.layout<"(16,4):(1,16)"> | %r = cute.make_composed_layout(%0, %1, %2) : (!cute.swizzle<"S<2,4,3>">, <"16">, <"(16,4):(1,16)">) -> <"S<2,4,3> o 16 o (16,4):(1,16)">
!cute.layout<"(3,5):(10,2)"> | %r = cute.make_layout_like(%0) : !cute.layout<"(3,5):(10,2)"> -> !cute.layout<"(3,5):(5,1)">
!cute.shape<"(3,5)">, !cute.int_tuple<"(1,0)"> | %r = cute.make_ordered_layout(%0, %1) : (!cute.shape<"(3,5)">, !cute.int_tuple<"(1,0)">) -> !cute.layout<"(3,5):(5,1)">
!cute.shape<"(3,(5,?))"> | %r = cute.make_identity_layout(%0) : !cute.shape<"(3,(5,?))"> -> !cute.layout<"(3,(5,?)):(1@0,(1@0@1,1@1@1))">
!cute.tile<"[(2,3):(1,2);5:1]"> | %r = cute.get_shape(%0) : !cute.tile<"[(2,3):(1,2);5:1]"> -> !cute.shape<"((2,3),5)">
!cute.layout<"(3,?):(?,1)"> | %r = cute.get_stride(%0) : <"(3,?):(?,1)"> -> !cute.stride<"(?,1)">
!cute.composed_layout<"S<1,2,3> o 4 o 8:1"> | %r = cute.composed_get_inner(%0) : <"S<1,2,3> o 4 o 8:1"> -> !cute.swizzle<"S<1,2,3>">
!cute.composed_layout<"S<1,2,3> o 4 o 8:1"> | %r = cute.composed_get_offset(%0) : <"S<1,2,3> o 4 o 8:1"> -> !cute.int_tuple<"4">
!cute.composed_layout<"S<1,2,3> o 4 o 8:1"> | %r = cute.composed_get_outer(%0) : <"S<1,2,3> o 4 o 8:1"> -> <"8:1">
!cute.coord<"(1,(_,?))"> | %a, %b, %c = cute.get_leaves(%0) : !cute.coord<"(1,(_,?))"> | !cute.coord<"1">, !cute.coord<"_">, !cute.coord<"?">
!cute.stride<"(?{i64},0)"> | %a = cute.get_scalars<{only_dynamic}> (%0) : !cute.stride<"(?{i64},0)"> | i64
!cute.layout<"(4,(3,7)):(1,(4,12))"> | %r = cute.get<[1, 0]> (%0) : !cute.layout<"(4,(3,7)):(1,(4,12))"> -> !cute.layout<"3:4">
!cute.shape<"(4,3,7)"> | %r = cute.select<[2, 0]> (%0) : !cute.shape<"(4,3,7)"> -> !cute.shape<"(7,4)">
!cute.coord<"(1,?)"> | %r = cute.to_int_tuple(%0) : !cute.coord<"(1,?)"> -> !cute.int_tuple<"(1,?)">
!cute.int_tuple<"(1,?)"> | %r = cute.to_shape(%0) : !cute.int_tuple<"(1,?)"> -> !cute.shape<"(1,?)">
!cute.int_tuple<"(1,?)"> | %r = cute.to_stride(%0) : !cute.int_tuple<"(1,?)"> -> !cute.stride<"(1,?)">
!cute.int_tuple<"(1,?)"> | %r = cute.to_coord(%0) : !cute.int_tuple<"(1,?)"> -> !cute.coord<"(1,?)">
!cute.tile<"[2:1;[_;3:4]]"> | %a, %b = cute.get_layouts_from_tile(%0) : <"[2:1;[_;3:4]]"> | !cute.layout<"2:1">, !cute.layout<"3:4">
!cute.layout<"(6,4):(1,6)">, !cute.layout<"(3,2):(2,12)"> | %r = cute.composition(%0, %1) : (!cute.layout<"(6,4):(1,6)">, !cute.layout<"(3,2):(2,12)">) -> !cute.layout<"(3,2):(2,12)">
!cute.layout<"(2,(3,4)):(1,(2,6))">, !cute.coord<"(_,_)"> | %r = cute.coalesce(%0, %1) : (!cute.layout<"(2,(3,4)):(1,(2,6))">, !cute.coord<"(_,_)">) -> !cute.layout<"(2,12):(1,2)">
!cute.layout<"(2,(3,4)):(1,(2,6))"> | %r = cute.flatten(%0) : (!cute.layout<"(2,(3,4)):(1,(2,6))">) -> !cute.layout<"(2,3,4):(1,2,6)">
!cute.layout<"(4,3):(2,16)">, !cute.shape<"96"> | %r = cute.complement(%0, %1) : (!cute.layout<"(4,3):(2,16)">, !cute.shape<"96">) -> !cute.layout<"(2,2,2):(1,8,48)">
!cute.layout<"(2,3,4):(1,2,6)"> | %r = cute.group_modes<1, 3> (%0) : (!cute.layout<"(2,3,4):(1,2,6)">) -> !cute.layout<"(2,(3,4)):(1,(2,6))">
!cute.layout<"(8,4):(1,?)"> | %r = cute.recast_layout<16, 8> (%0) : !cute.layout<"(8,4):(1,?)"> -> !cute.layout<"(4,4):(1,?)">
!cute.layout<"(2,3,4):(1,2,6)">, !cute.coord<"(_,?,_)"> | %r = cute.slice(%0, %1) : !cute.layout<"(2,3,4):(1,2,6)">, !cute.coord<"(_,?,_)"> | !cute.layout<"(2,4):(1,6)">
!cute.layout<"(2,3,4):(1,2,6)">, !cute.coord<"(_,0,_)"> | %r = cute.dice(%0, %1) : !cute.layout<"(2,3,4):(1,2,6)">, !cute.coord<"(_,0,_)"> | !cute.layout<"(3):(2)">
!cute.layout<"(3,4):(4,1)"> | %r = cute.right_inverse(%0) : (!cute.layout<"(3,4):(4,1)">) -> !cute.layout<"(4,3):(3,1)">
!cute.layout<"(3,4):(4,1)"> | %r = cute.left_inverse(%0) : (!cute.layout<"(3,4):(4,1)">) -> !cute.layout<"(4,3):(3,1)">
!cute.layout<"(3,(4,?)):(1,(3,12))"> | %r = cute.size<[1]> (%0) : (!cute.layout<"(3,(4,?)):(1,(3,12))">) -> !cute.int_tuple<"?">
!cute.layout<"(3,4):(1,8)"> | %r = cute.cosize (%0) : (!cute.layout<"(3,4):(1,8)">) -> !cute.int_tuple<"27">
!cute.shape<"(3,(4,5))"> | %r = cute.tuple_product(%0) : (!cute.shape<"(3,(4,5))">) -> !cute.shape<"60">
!cute.shape<"(3,(4,5))"> | %r = cute.tuple_product_each(%0) : (!cute.shape<"(3,(4,5))">) -> !cute.shape<"(3,20)">
!cute.coord<"(2,?)">, !cute.layout<"(3,4):(1@0,1@1)"> | %r = cute.layout_eval(%0, %1) : (!cute.coord<"(2,?)">, !cute.layout<"(3,4):(1@0,1@1)">) -> !cute.int_tuple<"(2,?)">
!cute.coord<"(2,3)">, !cute.shape<"(5,7)"> | %r = cute.crd2idx(%0, %1) : (!cute.coord<"(2,3)">, !cute.shape<"(5,7)">) -> !cute.int_tuple<"17">
!cute.int_tuple<"17">, !cute.shape<"(5,7)"> | %r = cute.idx2crd(%0, %1) : (!cute.int_tuple<"17">, !cute.shape<"(5,7)">) -> !cute.coord<"(2,3)">
!cute.coord<"(4,3)">, !cute.shape<"(5,7)"> | %r = cute.increment_coord(%0, %1) : (!cute.coord<"(4,3)">, !cute.shape<"(5,7)">) -> !cute.coord<"(0,4)">
!cute.shape<"(2,3)">, !cute.shape<"1"> | %r = cute.append_to_rank<4> (%0, %1) : !cute.shape<"(2,3)">, !cute.shape<"1"> | !cute.shape<"(2,3,1,1)">
!cute.layout<"2:1">, !cute.layout<"1:0"> | %r = cute.prepend_to_rank<2> (%0, %1) : !cute.layout<"2:1">, !cute.layout<"1:0"> | !cute.layout<"(1,2):(0,1)">
!cute.int_tuple<"(1,2)">, !cute.int_tuple<"(?,3)"> | %r = cute.tuple_add(%0, %1) : (!cute.int_tuple<"(1,2)">, !cute.int_tuple<"(?,3)">) -> !cute.int_tuple<"(?,5)">
!cute.shape<"(9,8)">, !cute.shape<"(4,8)"> | %r = cute.tuple_sub(%0, %1) : (!cute.shape<"(9,8)">, !cute.shape<"(4,8)">) -> !cute.shape<"(5,0)">
!cute.shape<"(4,6)">, !cute.shape<"8"> | %r = cute.shape_div(%0, %1) : (!cute.shape<"(4,6)">, !cute.shape<"8">) -> !cute.shape<"(1,3)">
!cute.shape<"(10,?)">, !cute.tile<"[4:1]"> | %r = cute.ceil_div(%0, %1) : (!cute.shape<"(10,?)">, !cute.tile<"[4:1]">) -> !cute.shape<"(3,?)">
!cute.coord<"(1,?)">, !cute.shape<"(2,3)"> | %r = cute.elem_less(%0, %1) : (!cute.coord<"(1,?)">, !cute.shape<"(2,3)">) -> i1
!cute.layout<"2:1">, !cute.layout<"?:1"> | %r = cute.equal(%0, %1) : (!cute.layout<"2:1">, !cute.layout<"?:1">) -> i1
!cute.layout<"(2,2):(1,2)">, !cute.layout<"3:1"> | %r = cute.logical_product(%0, %1) : (!cute.layout<"(2,2):(1,2)">, !cute.layout<"3:1">) -> !cute.layout<"((2,2),3):((1,2),4)">
!cute.layout<"(2,2):(1,2)">, !cute.layout<"3:1"> | %r = cute.zipped_product(%0, %1) : (!cute.layout<"(2,2):(1,2)">, !cute.layout<"3:1">) -> !cute.layout<"((2,2),3):((1,2),4)">
!cute.layout<"2:1">, !cute.layout<"(3,5):(5,1)"> | %r = cute.tiled_product(%0, %1) : (!cute.layout<"2:1">, !cute.layout<"(3,5):(5,1)">) -> !cute.layout<"(2,3,5):(1,10,2)">
!cute.layout<"(2,2):(1,2)">, !cute.layout<"(3,5):(5,1)"> | %r = cute.flat_product(%0, %1) : (!cute.layout<"(2,2):(1,2)">, !cute.layout<"(3,5):(5,1)">) -> !cute.layout<"(2,2,3,5):(1,2,20,4)">
!cute.layout<"(2,5):(5,1)">, !cute.layout<"(3,4):(1,3)"> | %r = cute.raked_product(%0, %1) : (!cute.layout<"(2,5):(5,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((3,2),(4,5)):((10,5),(30,1))">
!cute.layout<"(2,5):(5,1)">, !cute.layout<"(3,4):(1,3)"> | %r = cute.blocked_product(%0, %1) : (!cute.layout<"(2,5):(5,1)">, !cute.layout<"(3,4):(1,3)">) -> !cute.layout<"((2,3),(5,4)):((5,10),(1,30))">
!cute.layout<"(9,(4,8)):(59,(13,1))">, !cute.tile<"[3:3;(2,4):(1,8)]"> | %r = cute.logical_divide(%0, %1) : (!cute.layout<"(9,(4,8)):(59,(13,1))">, !cute.tile<"[3:3;(2,4):(1,8)]">) -> !cute.layout<"((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))">
!cute.layout<"(9,(4,8)):(59,(13,1))">, !cute.tile<"[3:3;(2,4):(1,8)]"> | %r = cute.zipped_divide(%0, %1) : (!cute.layout<"(9,(4,8)):(59,(13,1))">, !cute.tile<"[3:3;(2,4):(1,8)]">) -> !cute.layout<"((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))">
!cute.layout<"(6,8):(1,6)">, !cute.shape<"(3,4)"> | %r = cute.tiled_divide(%0, %1) : (!cute.layout<"(6,8):(1,6)">, !cute.shape<"(3,4)">) -> !cute.layout<"((3,4),2,2):((1,6),3,24)">
!cute.layout<"(?,8):(1,?)">, !cute.shape<"(3,4)"> | %r = cute.flat_divide(%0, %1) : (!cute.layout<"(?,8):(1,?)">, !cute.shape<"(3,4)">) -> !cute.layout<"(3,4,?,2):(1,?,3,?)">
!cute.layout<"(4,2):(2,1)">, !cute.shape<"(8,6)">, !cute.int_tuple<"(1,0)"> | %r = cute.tile_to_shape(%0, %1, %2) : (!cute.layout<"(4,2):(2,1)">, !cute.shape<"(8,6)">, !cute.int_tuple<"(1,0)">) -> !cute.layout<"((4,2),(2,3)):((2,24),(1,8))">
"""  # noqa: E501

WRONG = """
i32 | %r = cute.make_shape(%0) : (i32) -> !cute.shape<"(?,?)"> | 2 dynamic operand(s)
i64 | %r = cute.make_shape(%0) : (i64) -> !cute.shape<"?"> | of 32 bits, but got 64
!cute.int_tuple<"6"> | %r = cute.make_shape(%0) : (!cute.int_tuple<"6">) -> !cute.shape<"?{div=4}"> | multiple of 4
i32 | %r = cute.size (%0) : (i32) -> !cute.int_tuple<"?"> | operand #0 must be
!cute.shape<"?"> | %r = cute.static : !cute.shape<"?"> | expects result to be static
!cute.layout<"(4,8):(1,4)"> | %r = cute.size (%0) : (!cute.layout<"(4,8):(1,4)">) -> !cute.int_tuple<"33"> | '!cute.int_tuple<"32">'
!cute.layout<"(4,8):(1,4)"> | %r = cute.get<[2]> (%0) : !cute.layout<"(4,8):(1,4)"> -> !cute.layout<"8:4"> | not in [0, 2)
!cute.layout<"(4,8):(1,4)"> | %r = cute.get<[0, 0, 0]> (%0) : !cute.layout<"(4,8):(1,4)"> -> !cute.layout<"8:4"> | must end at a leaf
!cute.layout<"(4,8):(8,1)">, !cute.layout<"3:6"> | %r = cute.composition(%0, %1) : (!cute.layout<"(4,8):(8,1)">, !cute.layout<"3:6">) -> !cute.layout<"3:3"> | does not divide
!cute.layout<"(4,8):(1,1)"> | %r = cute.complement(%0) : (!cute.layout<"(4,8):(1,1)">) -> !cute.layout<"1:1"> | reaches an offset twice
!cute.layout<"(4,?):(1,?)"> | %r = cute.complement(%0) : (!cute.layout<"(4,?):(1,?)">) -> !cute.layout<"1:1"> | must be static
!cute.shape<"(4,8)">, !cute.coord<"(_,1,2)"> | %r = cute.slice(%0, %1) : !cute.shape<"(4,8)">, !cute.coord<"(_,1,2)"> | not nested as
!cute.shape<"4">, !cute.shape<"6"> | %r = cute.shape_div(%0, %1) : (!cute.shape<"4">, !cute.shape<"6">) -> !cute.shape<"1"> | neither divides
!cute.shape<"4">, !cute.int_tuple<"4"> | %r = cute.equal(%0, %1) : (!cute.shape<"4">, !cute.int_tuple<"4">) -> i1 | of one kind
!cute.layout<"(2,3):(1,2)">, !cute.shape<"(4,6)">, !cute.int_tuple<"(0,2)"> | %r = cute.tile_to_shape(%0, %1, %2) : (!cute.layout<"(2,3):(1,2)">, !cute.shape<"(4,6)">, !cute.int_tuple<"(0,2)">) -> !cute.layout<"1:1"> | each of 0 to 1
"""  # noqa: E501


def rows(text: str) -> list[list[str]]:
    """Split a table into rows of its cells."""
    return [[cell.strip() for cell in line.split(" | ")] for line in _lines(text)]


def _lines(text: str) -> list[str]:
    return [f" {line}" for line in text.strip().splitlines()]


def function(types: str, line: str, results: str | None = None) -> str:
    """Write a function of one operation."""
    given = [t.strip() for t in _split(types)]
    head = ", ".join(f"%{i}: {t}" for i, t in enumerate(given))
    names = line.partition(" = ")[0] if " = " in line and line.startswith("%") else ""
    if results is None and names:
        results = _result(line)
    end = f"  return {names} : {results}" if names else "  return"
    gives = f" -> ({results})" if names else ""
    return f"func.func @f({head}){gives} {{\n  {line}\n{end}\n}}\n"


def _result(line: str) -> str:
    """The type of an operation's result, as its line ends."""
    found = line.rpartition("-> ")[2] if "-> " in line else line.rpartition(" : ")[2]
    if not found.startswith("<"):
        return found
    kind = "composed_layout" if "make_composed" in line else "layout"
    return f"!cute.{kind}{found}"


def _split(types: str) -> list[str]:
    """Split a list of types at the commas between them."""
    out, quoted = [""], False
    for c in types:
        quoted ^= c == '"'
        if c == "," and not quoted:
            out.append("")
        else:
            out[-1] += c
    return out if types else []
