# SPDX-License-Identifier: Apache-2.0
"""What is done in less time than Numba does it gives what Numba's gives, and is done as seldom as it says."""

import functools
import gc
import inspect
import itertools
import pickle
import weakref
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types
from numba.cuda.compiler import run_frontend
from numba.cuda.core import base, event, ir, typeinfer
from numba.cuda.core.analysis import compute_use_defs
from numba.cuda.core.errors import NumbaNotImplementedError, NumbaTypeError
from numba.cuda.core.postproc import PostProcessor
from numba.cuda.core.ssa import reconstruct_ssa
from numba.cuda.lowering import CUDALower
from numba.cuda.typing.typeof import typeof

import numba_cute as cute
from numba_cute.compiler.bridge import contexts
from numba_cute.compiler.ground.building import building
from numba_cute.compiler.passes import lower, unroll
from numba_cute.compiler.passes.ssa import in_ssa_form
from numba_cute.compiler.passes.uses import uses_and_definitions
from numba_cute.seam import traced
from numba_cute.seam.ground import collecting
from numba_cute.seam.ground.collecting import YOUNG, aging, seldom


def straight(a, b):
    c = a + b
    a = c * 2
    return a, [c, b], (a, (b, c))


def branching(a, b):
    if a > b:
        c = a
        d = b.x[c]
    elif a:
        c, d = b, a
        b[c] = d
        b.x = c
    else:
        raise ValueError
    return c + d


def looping(a, b):
    total = 0
    for i in range(a):
        for j in range(i):
            if j == b:
                break
            total += i * j
            b = total
        else:
            i = total
    while total > 3:
        total -= a
        if total == b:
            continue
        a = total
    print(total, a)
    return total, a, b, i


def jumping(a, b):
    x = y = a
    while a:
        x, y = y, x
        a = x[y:b, 1]
        if a is None:
            return y
    del b
    assert x, y
    return x


FUNCTIONS = pytest.mark.parametrize("fn", (straight, branching, looping, jumping), ids=lambda f: f.__name__)


@FUNCTIONS
def test_which_variables_a_block_uses_and_sets_is_what_numba_finds(fn):
    func_ir = run_frontend(fn)
    for with_dels in (False, True):
        PostProcessor(func_ir).run(with_dels)
        assert uses_and_definitions(func_ir.blocks) == compute_use_defs(func_ir.blocks)


def parts(x):
    """The variables in a part of a statement, as Numba looks for them."""
    if isinstance(x, ir.Var):
        return [x]
    if isinstance(x, ir.Inst):
        return parts(x._kws if isinstance(x, ir.Expr) else x.__dict__)
    if isinstance(x, (list, tuple, dict)):
        return [v for y in (x.values() if isinstance(x, dict) else x) for v in parts(y)]
    return []


@FUNCTIONS
def test_the_variables_of_a_statement_are_listed_in_numbas_order(fn):
    for block in run_frontend(fn).blocks.values():
        for inst in block.body:
            assert [v.name for v in inst.list_vars()] == [v.name for v in parts(inst)]


@FUNCTIONS
def test_ssa_form_is_numbas(fn):
    def written(blocks):
        return {label: [str(inst) for inst in block.body] for label, block in blocks.items()}

    ours = in_ssa_form(run_frontend(fn).blocks)
    assert written(ours) == written(reconstruct_ssa(run_frontend(fn)).blocks)


def loops(out, n: int):
    x = cute.Int32(0)
    for i in range(n):
        for j in cute.range_constexpr(2):
            x += i * j
        y = x
        out[i] = y
    z = y = x
    out[n] = y + z


def test_the_variables_without_slots_are_numbas(monkeypatch):
    found, ours = [], lower.Lower._find_singly_assigned_variable

    def both(self):
        ours(self)
        mine = set(self._singly_assigned_vars)
        CUDALower._find_singly_assigned_variable(self)
        found.append((mine, set(self._singly_assigned_vars)))

    monkeypatch.setattr(lower.Lower, "_find_singly_assigned_variable", both)
    cute.compile(cuda.jit(loops), (np.zeros(9, np.int32), 8))
    assert found and all(mine and mine == numbas for mine, numbas in found)


@cuda.jit
def nests(out):
    total = cute.Int32(0)
    for i in cute.range_constexpr(3):
        for j in cute.range_constexpr(i + 1):
            total += i * j
    for i in cute.range_constexpr(2):
        for j in cute.range_constexpr(2 * i):
            total += i + j
    for i in cute.range_constexpr(2):
        total += i
    out[0] = total


def test_loops_are_unrolled_in_as_many_rounds_as_they_lie_in_each_other(monkeypatch):
    rounds, unroll_all = [], unroll.unroll_all

    def counting(func_ir, found):
        rounds.append(len(found))
        unroll_all(func_ir, found)

    monkeypatch.setattr(unroll, "unroll_all", counting)
    cute.compile(nests, (np.zeros(1, np.int32),))
    assert [n for n in rounds if n] == [3, 5], rounds  # of the second three copies and two


@cuda.jit
def counts(out):
    n = 0
    for i in cute.range_constexpr(4):
        n += i
        for j in cute.range_constexpr(i):
            out[15 - j] = i
    for k in cute.range_constexpr(n):
        out[k] = k


def test_bounds_that_an_earlier_loop_sets_are_read_after_it():
    out = np.full(16, -1, np.int32)
    cute.simulate(counts)[1, 1](out)
    assert out.tolist() == [*range(6), *[-1] * 7, 3, 3, 3]
    assert cute.compile(counts, (out,)).resources.local == 0


@cuda.jit
def unknown_bound(out, n):
    for i in cute.range_constexpr(2):
        out[i] = i
    for j in cute.range_constexpr(n):
        out[j] = j


def test_a_bound_that_is_not_known_is_said_with_its_line():
    with pytest.raises(cute.CuteError) as said:
        cute.compile(unknown_bound, (np.zeros(4, np.int32), 3))
    assert f":{unknown_bound.py_func.__code__.co_firstlineno + 4}\n" in str(said.value)


# ---------------------------------------------------------------- garbage


@traced
def judging(x):
    assert gc.get_threshold()[0] == YOUNG
    return x


@cuda.jit
def noted(out):
    out[0] = judging(1)


def test_garbage_is_collected_seldom_while_a_kernel_is_compiled():
    before = gc.get_threshold()
    assert before[0] != YOUNG
    cute.compile(noted, (np.zeros(1),))
    assert gc.get_threshold() == before


@pytest.mark.parametrize(
    "off, frozen, made, done",
    [
        (False, 0, (600, 300), [["freeze", "unfreeze"]] * 2),
        (False, 0, (600, 600, 600), [["freeze", "unfreeze"], ["collect"], ["freeze", "unfreeze"]]),
        (True, 0, (600, 600), [[], []]),
        (False, 7, (600, 600), [[], []]),
    ],
    ids=["few", "many", "off", "the user's"],
)
def test_what_a_compilation_made_is_not_looked_through_at_its_end(off, frozen, made, done, monkeypatch):
    """But some compilations' together is, once."""
    asked = []
    acts = {name: functools.partial(asked.append, name) for name in ("freeze", "unfreeze", "collect")}
    numbers = {"get_count": lambda: (counts[-1], 0, 0), "get_freeze_count": lambda: frozen}
    told = {"get_threshold": gc.get_threshold, "set_threshold": lambda *_: None, "isenabled": lambda: not off}
    counts = [0]
    monkeypatch.setattr(collecting, "gc", SimpleNamespace(**acts, **numbers, **told))
    monkeypatch.setattr(collecting, "WAITING", 1000)
    monkeypatch.setattr(aging, "_waiting", 0)
    monkeypatch.setattr(collecting, "frozen", collecting._Frozen())
    for count, expected in zip(made, done):
        with building(loops), building(straight):
            counts.append(count)
        assert asked == expected
        asked.clear()


def test_a_threshold_that_the_user_sets_stays():
    before = gc.get_threshold()
    try:
        with seldom, seldom:
            assert gc.get_threshold()[0] == YOUNG
            gc.set_threshold(1234, 5, 6)
        assert gc.get_threshold() == (1234, 5, 6)
        for own in (0, YOUNG + 1):  # off, and rarer already
            gc.set_threshold(own, 5, 6)
            with seldom:
                assert gc.get_threshold() == (own, 5, 6)
            assert gc.get_threshold() == (own, 5, 6)
    finally:
        gc.set_threshold(*before)


def test_an_error_in_a_kernel_gives_the_collector_back():
    before = gc.get_threshold()
    with pytest.raises(cute.CuteError):
        cute.compile(unknown_bound, (np.zeros(4, np.int32), 3))
    assert gc.get_threshold() == before


def test_what_was_tried_in_vain_keeps_nothing_of_its_caller():
    """While types are found, a call is tried that fails until a branch is left out: its frames hold the caller's."""

    @cuda.jit
    def kernel(x):
        if cute.const_expr(cute.rank(x) == 2):
            n = 1
        else:
            n = 2
        cute.arch.cp_async_bulk_wait_group(n)

    class Mine:
        pass

    def caller(x):
        mine = Mine()
        cute.compile(kernel, (x,))
        return weakref.ref(mine)

    before = gc.isenabled()
    gc.disable()
    try:
        assert caller(cute.runtime.from_dlpack(np.zeros((2, 2), np.float32)))() is None
    finally:
        if before:
            gc.enable()


# ---------------------------------------------------------------- what is remembered


def test_inference_remembers_while_functions_of_the_same_options_of_a_kernel_are_compiled():
    found, ty = [], cuda.types.int32

    def ask():
        return contexts._remembered("templates", (ty, (ty,), {"n": ty}), lambda: found.append(1) or len(found))

    assert (ask(), ask()) == (1, 2)  # no kernel is compiled
    with building(straight):
        assert (ask(), ask()) == (3, 3)
        contexts.begin(SimpleNamespace(values=dict))
        assert ask() == 3
        contexts.begin(SimpleNamespace(values=lambda: {"fastmath": True}))
        assert ask() == 4
        contexts.begin(SimpleNamespace(values=dict))
        assert ask() == 3
        with building(looping):
            assert ask() == 5
        assert ask() == 6
    assert ask() == 7


def test_kernels_of_one_process_are_inferred_in_one_context():
    assert contexts.typing_context() is contexts.typing_context()  # Numba's templates keep what each context asked


def test_a_statement_is_typed_again_only_where_a_type_changed(monkeypatch):
    typed = Counter()
    call = typeinfer.CallConstraint.__call__

    def counted(self, inferer):
        typed[self.loc.line, self.target] += 1
        return call(self, inferer)

    monkeypatch.setattr(typeinfer.CallConstraint, "__call__", counted)

    @cuda.jit
    def straight_on(out):
        layout = cute.make_layout((4, 8))
        out[0] = cute.size(layout) + cute.size(layout, mode=[1])

    @cuda.jit
    def around(out):
        n = 1
        for _ in range(3):
            n = n + abs(n) * 0.5
        out[0] = n + cute.size(cute.make_layout(4))

    cute.compile(straight_on, (np.zeros(1),))
    assert typed and set(typed.values()) == {1}
    typed.clear()
    cute.compile(around, (np.zeros(1),))
    assert max(typed.values()) > 1


def test_a_recursive_device_function_is_typed_to_its_end():
    @cuda.jit(device=True)
    def down(n):
        if n > 3.5:
            return down(n - 1) + cute.size(cute.make_layout((2, 1)))
        return 1

    @cuda.jit
    def kernel(out):
        out[0] = down(cuda.threadIdx.x)

    assert "call" in cute.compile(kernel, (np.zeros(1),)).ptx


@pytest.mark.parametrize("takes", [
    lambda a, loc: 0, lambda a, *, loc=None: 0, lambda *loc: 0, lambda **loc: 0, lambda a: 0, lambda *a, **b: 0,
    functools.wraps(lambda loc: 0)(lambda *a: 0), functools.partial(lambda a, loc: 0, loc=1), cute.size,
])  # fmt: skip
def test_whether_an_implementation_takes_a_place_is_what_its_signature_says(takes):
    assert base._has_loc(takes) == ("loc" in inspect.signature(takes).parameters)


def test_an_implementation_is_the_one_that_numba_finds_among_all_signatures():
    kinds = (types.Any, types.Integer, types.Number, types.BaseTuple, types.int64, types.intp, types.Literal)
    given = (
        types.int32, types.int64, types.uint8, types.float64, types.literal(3), types.literal(4), types.boolean,
        types.UniTuple(types.int32, 2), types.UniTuple(types.int32, 3), types.Tuple((types.int32, types.float32)),
        types.literal("x"), types.none, types.Integer,
    )  # fmt: skip
    checked = 0
    for chosen in itertools.combinations(kinds, 3):
        selector = base.OverloadSelector()
        for a in chosen:
            selector.append((a, None), (a,))
            selector.append((a, chosen[0]), (a, chosen[0]))
            selector.append((a, ...), (types.float64, types.VarArg(a)))
        for sig in [(), *((a,) for a in given), *itertools.product(given, repeat=2)]:
            fits = selector._select_compatible(sig)
            try:
                expected = fits[selector._best_signature(fits)] if fits else NumbaNotImplementedError
            except NumbaTypeError:  # several fit as well
                expected = NumbaTypeError
            for _ in range(2):
                try:
                    found = selector._find(sig)
                except (NumbaTypeError, NumbaNotImplementedError) as e:
                    found = type(e)
                assert found == expected
                checked += expected is not NumbaNotImplementedError
    assert checked > 1000


def compiled_functions(kernel, *args):
    """The names of the functions that compiling a kernel compiles."""
    names = []

    class Names(event.Listener):
        def on_start(self, e):
            names.append(e.data["name"])

        def on_end(self, e):
            pass

    with event.install_listener("numba-cuda:run_pass", Names()):
        made = cute.compile(kernel, args)
    return {n.rpartition(" ")[2] for n in names}, {n.rpartition(" ")[0] for n in names}, made


@cuda.jit
def of_items(out, tensor):
    shape = cute.shape(tensor)
    for i in cute.range_constexpr(shape[1]):
        out[i] = shape[0]


def test_an_item_of_a_constant_index_costs_no_function_of_numbas():
    from numba_cute.runtime import from_dlpack

    out, tensor = (from_dlpack(np.zeros(s, np.float32)) for s in ((8,), (2, 4)))
    functions, passes, made = compiled_functions(of_items, out, tensor)
    assert functions == {"[of_items]"} and "numba_cute_keep_constants" in passes
    assert made.ptx.count("st.global") >= 1
    assert cute.compile(of_items, (out, tensor)).ptx.count("st.global") == made.ptx.count("st.global")  # nobody listens


def test_a_type_s_number_in_dictionaries_is_its_key_s_and_stays_in_its_process():
    ty = typeof(cute.make_layout((2, 3)))
    assert type(ty).__name__ == "Value" and hash(ty) == hash(ty.key) == hash(ty)
    again = pickle.loads(pickle.dumps(types.UniTuple(types.int32, 2)))
    assert again is types.UniTuple(types.int32, 2)
    assert "_hashed" in vars(ty) and "_hashed" not in ty.__reduce__()[1][2]
