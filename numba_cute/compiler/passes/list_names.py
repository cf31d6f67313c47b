# SPDX-License-Identifier: Apache-2.0
"""The methods of lists, and the names of the lists that a function makes: one each, as far as can be."""

from __future__ import annotations

from typing import Any

from ..ground.numba_cuda import ir, replace_vars

GROWING = ("append", "extend", "insert", "pop", "remove", "clear")
CHANGING = (*GROWING, "reverse", "sort")
READING = ("count", "index", "copy")
METHODS = (*CHANGING, *READING)


def assigned(blocks: dict[int, Any]) -> dict[str, list[Any]]:
    """Return what the variables of a function are set to."""
    made: dict[str, list[Any]] = {}
    for label in sorted(blocks):
        for inst in blocks[label].body:
            if type(inst) is ir.Assign:
                made.setdefault(inst.target.name, []).append(inst.value)
    return made


def one_name_each(func_ir: Any) -> tuple[dict[str, list[Any]], bool]:
    """Give each list that is built one name alone, instead of the temporary ones that its comprehension or its loop
    holds it under, and of others that it is given where it is made; and each of its methods, which has another after
    a condition among the arguments. Return what variables are set to then, and whether one has another name."""
    made = assigned(func_ir.blocks)
    built = {n for n, vs in made.items() for v in vs if type(v) is ir.Expr and v.op == "build_list"}
    if not built:
        return made, False
    built |= {n for n, vs in made.items() if len(vs) == 1 and _is_method(vs[0])}
    own = set(func_ir.func_id.code.co_varnames) | set(func_ir.func_id.code.co_cellvars)
    names: dict[str, Any] = {}
    for name in made:
        root = _root(name, made, own, built)
        if root in built and root != name:
            names[name] = root
    if names:
        scope = next(iter(func_ir.blocks.values())).scope
        replace_vars(func_ir.blocks, {n: scope.get_exact(r) for n, r in names.items()})
        for block in func_ir.blocks.values():
            block.body = [i for i in block.body if not _is_to_itself(i)]
        made = assigned(func_ir.blocks)
    return made, bool(names)


def _is_method(value: Any) -> bool:
    return isinstance(value, ir.Expr) and value.op == "getattr" and value.attr in METHODS


def _root(name: str, made: dict[str, list[Any]], own: set[str], built: set[str]) -> str:
    """Return the name that all assignments of a temporary one copy, and that one's in turn; of a name of the source
    that is given once, to a list that is made once, that list's."""
    seen = {name}
    while True:
        sources = {v.name if isinstance(v, ir.Var) else "" for v in made.get(name, ())} - {name}
        if len(sources) != 1:
            break
        (source,) = sources
        if not source or source in seen or (name in own and not (len(made[name]) == len(made.get(source, ())) == 1)):
            break
        seen.add(source)
        name = source
    return name


def _is_to_itself(inst: Any) -> bool:
    return isinstance(inst, ir.Assign) and isinstance(inst.value, ir.Var) and inst.value.name == inst.target.name


def put_in_place(inst: Any, by: dict[str, Any]) -> None:
    """Put other variables in the place of some, by their names, that a statement hands on."""

    def new(v: Any) -> Any:
        return by.get(v.name, v) if isinstance(v, ir.Var) else v

    value = inst.value = new(inst.value)
    if isinstance(value, ir.Var):
        return
    if value.op == "cast":
        value._kws["value"] = new(value.value)
    elif value.op == "build_map":
        value._kws["items"] = [(new(k), new(v)) for k, v in value.items]
    elif value.op == "call":
        value._kws["args"] = [new(v) for v in value.args]
        value._kws["kws"] = [(n, new(v)) for n, v in value.kws]
        value._kws["vararg"] = new(value.vararg) if value.vararg is not None else None
    else:
        value._kws["items"] = [new(v) for v in value.items]
