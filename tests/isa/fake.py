# SPDX-License-Identifier: Apache-2.0
"""The least machine that runs bodies: one CTA's shared memory, no hazards, asynchronous work done at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from numba_cute.isa.form.instr import Instr


class Barrier:
    def __init__(self) -> None:
        self.calls: list[tuple] = []
        self.done = False

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self.calls.append((name, *args, *kwargs.items()))

    def phase_done(self, parity: int) -> bool:
        return self.done


class TensorMap:
    """A one-dimensional map of bytes over `data`, boxes of 128."""

    rank, box, box_bytes, shared_bytes = 1, (128,), 128, 128

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def gather(self, at: tuple[int, ...], offsets: Any = None, line: int = 0) -> np.ndarray:
        return self.data[at[0] : at[0] + 128].copy()

    def prefetch(self, at: tuple[int, ...], offsets: Any, wide: Any) -> None:
        pass

    def scatter(
        self, at: tuple[int, ...], data: np.ndarray, reduce: str | None = None, offsets: Any = None, line: int = 0
    ) -> None:
        old = self.data[at[0] : at[0] + 128]
        old[...] = data if reduce is None else {"add": np.add}[reduce](old, data)


class TensorMemory:
    """The tensor memory of each CTA: (CTAs, 128, 512). issued: (reads, parts, sources) of what its unit was to do."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data
        self.issued: list[tuple] = []

    def read(self, lane: int, lanes: int, column: int, columns: int, cta: int | None = None) -> np.ndarray:
        assert lane + lanes <= 128 and column + columns <= 512
        return self.data[cta or 0, lane : lane + lanes, column : column + columns].copy()

    def write(self, lane: int, column: int, values: np.ndarray, cta: int | None = None) -> None:
        assert lane + values.shape[0] <= 128 and column + values.shape[1] <= 512
        self.data[cta or 0, lane : lane + values.shape[0], column : column + values.shape[1]] = values

    def multiply(
        self, effect: Any, reads: list, column: int, columns: int, ctas: list[int], *, accumulates: bool, parts: Any,
        sources: Any = (), uses: Any = (), what: str = "mma", after_shift: bool = False,
    ) -> None:  # fmt: skip
        self.issued.append((reads, parts, sources))
        effect()


CTA_STRIDE = 1 << 24


class Machine:
    """`lanes` threads; `ctas` shared memories; what a body asked for is in `log`."""

    cta_rank = 0

    def __init__(self, lanes: int = 1, ctas: int = 1) -> None:
        self.lanes, self.elected = lanes, 0
        self.shared = [np.zeros(1 << 17, np.uint8) for _ in range(ctas)]
        self.memory = np.zeros(4096, np.uint8)
        self.bars: dict[tuple[int, int], Barrier] = {}
        self.maps: dict[int, TensorMap] = {}
        self.log: list[tuple] = []

    def issue(self, row: Instr, *operands: Any, **more: Any) -> Any:
        """Run a row: operands in order or by name, static parameters by name."""
        values = dict(zip([o.name for o in row.operands if o.reads], operands))
        values |= {name: more.pop(name) for name in row.names if name in more}
        return row.perform(self, row.case(more), values)

    def uniform(self, operand: Any) -> Any:
        values = np.unique(operand)
        assert values.size == 1
        return values[0]

    def mbar(self, address: int, cta: int | None = None) -> Barrier:
        return self.bars.setdefault((cta or 0, address), Barrier())

    def mapa(self, address: int, cta: int) -> int:
        return address + CTA_STRIDE * cta

    def owner(self, address: int) -> tuple[int, int]:
        return divmod(address, CTA_STRIDE)

    def read(
        self,
        address: int,
        nbytes: int,
        *,
        cta: int | None = None,
        proxy: str | None = None,
        lay: tuple[int, int] | None = None,
    ) -> np.ndarray:
        return self.shared[cta or 0][address : address + nbytes].copy()

    def write(self, address: int, data: np.ndarray, *, cta: int | None = None, proxy: str | None = None) -> None:
        self.shared[cta or 0][address : address + data.size] = data

    def read_rows(self, addresses: np.ndarray, nbytes: int, *, lay: tuple[int, int] | None = None) -> np.ndarray:
        return self.shared[0][addresses[:, None] + np.arange(nbytes)]

    def write_rows(self, addresses: np.ndarray, data: np.ndarray) -> None:
        self.shared[0][addresses[:, None] + np.arange(data.shape[1])] = data

    def read_global(self, address: int, nbytes: int) -> np.ndarray:
        return self.memory[address : address + nbytes].copy()

    def atomic(self, address, nbytes, change, *, shared, cta=None, reads=True) -> np.ndarray:
        memory = self.shared[cta or 0] if shared else self.memory
        old = memory[address : address + nbytes].copy()
        if change is not None:
            memory[address : address + nbytes] = change(old)
        return old

    def write_global(self, address: int, data: np.ndarray) -> None:
        self.memory[address : address + data.size] = data

    def tensor_map(self, address: int) -> TensorMap:
        return self.maps[address]

    def later(self, effect: Any, *, bars: Any = (), reads: Any = (), writes: Any = ()) -> None:
        self.log.append(("later", bars, reads, writes))
        effect()
        for bar, nbytes in bars or ():
            bar.complete_tx(nbytes)

    def accumulate(self, registers: np.ndarray) -> np.ndarray:
        return registers

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self.log.append((name, *args, *kwargs.items()))
