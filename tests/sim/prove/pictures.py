# SPDX-License-Identifier: Apache-2.0
"""Draw what the docs show: `python -m tests.sim.prove.pictures [FOLDER]` writes the pictures of a proof of
examples/blackwell_attention.py on small tiles, of the README's kernel, and of a deadlock of tests/bugs, to
docs/pictures."""

import re
import sys
import tempfile
from pathlib import Path

import pytest

from numba_cute.sim import DeadlockError
from numba_cute.sim.orders import PROOFS

ROOT = Path(__file__).resolve().parents[3]


def proof_of(name):
    """The proof of a kernel of tests/mutation."""
    from ...mutation.kernels import KERNELS

    kernel, proofs = next(k for k in KERNELS if k.name == name), []
    token = PROOFS.set(proofs)
    try:
        kernel.run(vars(kernel.module), {})
    finally:
        PROOFS.reset(token)
    return proofs[0]


def proof_of_the_readme(folder):
    """The proof of the README's kernel, which is written to a file, so that errors and pictures have its lines."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    file, scope, proofs = folder / "readme.py", {"__name__": "readme"}, []
    file.write_text(code)
    token = PROOFS.set(proofs)
    try:
        exec(compile(code, str(file), "exec"), scope)
    finally:
        PROOFS.reset(token)
    return proofs[0]


def graph_of(name):
    """The wait-for graph of a bug of tests/bugs that hangs."""
    from ...bugs import barriers, pipelines, zoo

    assert barriers and pipelines
    with pytest.raises(DeadlockError) as caught:
        next(bug for bug in zoo.BUGS if bug.name == name).run(False)
    return caught.value.graph


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    proof = proof_of("Blackwell attention")
    proof.memory.svg(folder / "memory.svg")
    proof_of("PipelineTmaAsync").roles.svg(folder / "roles.svg")
    with tempfile.TemporaryDirectory() as place:
        proof_of_the_readme(Path(place)).roles.svg(folder / "total.svg")
    graph_of("consumer group that counts the producers warp").svg(folder / "deadlock.svg")


if __name__ == "__main__":
    main()
