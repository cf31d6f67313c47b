# SPDX-License-Identifier: Apache-2.0
"""Each public name has an example in its docstring, or in that of another, and it gives what it shows."""

import doctest
import importlib.util
import inspect
import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, nvgpu, pipeline, testing, utils
from numba_cute.debugging.launches import Debugged
from tests import api
from tests.testing.fake import RealTime

TORCH = importlib.util.find_spec("torch")
XDSL = importlib.util.find_spec("xdsl") is not None  # Python 3.10 has none
NAMES = {"cute": cute, "arch": arch, "nvgpu": nvgpu, "pipeline": pipeline, "utils": utils, "np": np, "cuda": cuda}
OF_A_GPU = {
    "numba_cute.compare", "numba_cute.debug", "numba_cute.testing.benchmark", "numba_cute.testing.compare",
    "numba_cute.testing.do_bench", "numba_cute.testing.tune",
}  # fmt: skip
"""What runs on a GPU alone: without one, the simulator stands in for it here."""


def examined():
    """(name, docstring) of each public function and class once, by the module that it is made in."""
    found, seen = {}, set()
    for module, name, value in api.names():
        if id(value) not in seen and callable(value) and hasattr(value, "__name__"):
            seen.add(id(value))
            doc = inspect.getdoc(value) or ""
            found.setdefault(getattr(value, "__module__", module), []).append((f"{module}.{name}", doc))
    return found


FOUND = examined()
WITH = {m: [(n, d) for n, d in docs if ">>>" in d] for m, docs in FOUND.items()}
WITH = {m: docs for m, docs in WITH.items() if docs}


@pytest.mark.parametrize("module", sorted(WITH))
def test_examples_give_what_they_show(module, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CUTE_CACHE", "1")  # kernels.warmup compiles to it
    monkeypatch.setenv("NUMBA_CUTE_CACHE_DIR", str(tmp_path))
    importlib.import_module(module)
    docs = [(name, doc) for name, doc in WITH[module] if TORCH or "import torch" not in doc]
    docs = [(name, doc) for name, doc in docs if XDSL or "cute.inspect(" not in doc]
    if not docs:
        pytest.skip("its examples are of torch, or xDSL, which is not installed")
    run([d for d in docs if d[0] not in OF_A_GPU])
    if any(name in OF_A_GPU for name, _ in docs):
        with stand_in(monkeypatch):
            run([d for d in docs if d[0] in OF_A_GPU])


def run(docs):
    said = []
    for name, doc in docs:
        test = doctest.DocTestParser().get_doctest(doc, dict(NAMES), name, None, None)
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert not said, "".join(said)


class Watch(RealTime):
    def __init__(self, stream=None):
        super().__init__()


def stand_in(monkeypatch):
    """Simulate what launches, time it by the host's clock, and simulate what is debugged; gives the context for it."""

    def debugged(self, kernel, options, *args):
        cute.simulate(kernel)[options["grid"], options["block"]](*args)

    for module in (testing.measuring, testing.reference, testing.tuned):
        monkeypatch.setattr(module, "Stopwatch", Watch)
    monkeypatch.setattr(Debugged, "_launch", debugged)
    return cute.simulation()


@pytest.mark.gpu
def test_examples_of_a_gpu_on_one():
    run([d for docs in WITH.values() for d in docs if d[0] in OF_A_GPU])


SEE = re.compile(r"\n\nSee the example of `(\w+)`\.$")
REFERRING = {(m, n): see[1] for m, docs in FOUND.items() for n, doc in docs if (see := SEE.search(doc))}
"""Names that go together have one example: the name that has it, by the module and name of each other."""


def test_an_example_that_is_referred_to_uses_the_name():
    assert REFERRING
    for (module, name), other in REFERRING.items():
        beside = [
            *WITH.get(module, ()),
            *(d for docs in WITH.values() for d in docs),
        ]  # its own module's before others'
        examples = [doc for n, doc in beside if n.endswith(f".{other}")]
        assert examples and re.search(rf"\b{name.rpartition('.')[2]}\b", examples[0]), (name, other)


def test_each_name_has_an_example():
    """Of its own, or in that of another."""
    have = {name for docs in WITH.values() for name, _ in docs} | {name for _, name in REFERRING}
    assert not [name for docs in FOUND.values() for name, _ in docs if name not in have]
    assert have >= OF_A_GPU


def test_an_example_stands_at_the_end():
    """Behind an empty line, since the reference and people look for it there."""
    bad = [name for docs in WITH.values() for name, doc in docs if not re.search(r"\n\n>>> (?!.*\n\n)", doc, re.DOTALL)]
    assert not bad


def counts():
    """How many names have an example of their own, how many of the others a tutorial's script uses, and all."""
    from website import reference

    own = [*(n for docs in WITH.values() for n, _ in docs), *(n for _, n in REFERRING)]
    names = [n for docs in FOUND.values() for n, _ in docs]
    used = [n for n in names if n not in own and reference.lessons(n.rpartition(".")[2])]
    return len(own), len(used), len(names)


if __name__ == "__main__":
    for module, docs in FOUND.items():
        print(f"{len(WITH.get(module, []))} of {len(docs)} {module}")
    print("{} have an example, {} more are used by a tutorial, of {}".format(*counts()))
