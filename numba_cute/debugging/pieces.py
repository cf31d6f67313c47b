# SPDX-License-Identifier: Apache-2.0
"""Pieces of PTX that watch a kernel: they write records and end threads.

The kernel's module has two symbols that a launch sets: TABLE, with the addresses of the records and of the control
words, and RANGES, with the memory of the kernel's arguments. A record is RECORD bytes: its kind (32 bits, with ENDED
where another thread ended the wait), site, block x, y, z and the thread's number (32 bits each), three words of 64
bits, one of 32, and the timer. Control words: whether the kernel is to end, how many records were written; from GATES
on, 64 bytes for each block: its named barriers, each an age in the upper and arrivals in the lower 16 bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

TABLE, RANGES, POLLS, LAST = "numba_cute_debug", "numba_cute_ranges", "numba_cute_polls", "numba_cute_last"
RECORD, MOST, ENDED, GATES, MOST_RANGES = 64, 1 << 16, 1 << 8, 128, 64
PATIENCE = 8  # ms that a thread waits before it looks whether the kernel is to end
FILL = 0xFF83FF83
"""Fills shared memory when a block begins: a NaN as a float of 16, 32 or 64 bits."""
MEET = "bar.sync 0;"
_serial = itertools.count()

DYNAMIC = f".extern .shared .align 16 .b8 {LAST}[];\n"
"""The symbol of dynamic shared memory, for a module that has none."""
SYMBOLS = (
    f".visible .global .align 16 .b64 {TABLE}[4];\n.visible .const .align 16 .b64 {RANGES}[{2 + 4 * MOST_RANGES}];\n"
)


def fresh() -> str:
    """Return a suffix for names that no other piece has."""
    return f"_{next(_serial)}"


def report(kind: str | int, site: int, words: Sequence[str] = (), last: str = "0") -> str:
    """Write a record and end the thread. words: up to three registers of 64 bits. last: one of 32."""
    n = fresh()
    held = "".join(f"st.global.b64 [dr{n}+{24 + 8 * i}], {w}; " for i, w in enumerate(words))
    return (
        f"{{ .reg .b64 dc{n}, dr{n}; .reg .b32 di{n}, dx{n}, dy{n}; .reg .pred dp{n}; "
        f"ld.global.b64 dc{n}, [{TABLE}+8]; mov.b32 di{n}, 1; st.volatile.global.b32 [dc{n}], di{n}; "
        f"atom.global.add.u32 di{n}, [dc{n}+4], 1; setp.ge.u32 dp{n}, di{n}, {MOST}; @dp{n} exit; "
        f"ld.global.b64 dr{n}, [{TABLE}]; mad.wide.u32 dr{n}, di{n}, {RECORD}, dr{n}; {held}"
        f"st.global.b32 [dr{n}+48], {last}; mov.b32 dx{n}, {site}; st.global.b32 [dr{n}+4], dx{n}; "
        + "".join(f"mov.u32 dx{n}, %ctaid.{a}; st.global.b32 [dr{n}+{8 + 4 * i}], dx{n}; " for i, a in enumerate("xyz"))
        + f"{_number_of('tid', f'dx{n}', f'dy{n}')}st.global.b32 [dr{n}+20], dx{n}; "
        f"mov.u64 dc{n}, %globaltimer; st.global.b64 [dr{n}+56], dc{n}; fence.acq_rel.sys; "
        f"mov.b32 dx{n}, {kind}; st.volatile.global.b32 [dr{n}], dx{n}; exit; }}"
    )


def patience(since: str, told: str) -> str:
    """Watch one round of a wait: end the thread if the kernel is to end, or it has waited for too long. since: a
    register of 32 bits with the time at which it began to wait, 0 at first. told: what writes the record, of kind
    `dk`, a register of 32 bits that it may read."""
    n = fresh()
    return (
        f"{{ .reg .b64 dc{n}; .reg .b32 dt{n}, da{n}, dk; .reg .pred dp{n}, dq{n}; "
        f"mov.u64 dc{n}, %globaltimer; shr.u64 dc{n}, dc{n}, 20; cvt.u32.u64 dt{n}, dc{n}; "
        f"setp.eq.u32 dp{n}, {since}, 0; @dp{n} mov.b32 {since}, dt{n}; sub.u32 dt{n}, dt{n}, {since}; "
        f"setp.lt.u32 dp{n}, dt{n}, {PATIENCE}; @dp{n} bra $Lcute_on{n}; "
        f"ld.global.b64 dc{n}, [{TABLE}+8]; ld.volatile.global.b32 da{n}, [dc{n}]; setp.ne.u32 dq{n}, da{n}, 0; "
        f"ld.global.b32 da{n}, [{TABLE}+16]; setp.gt.u32 dp{n}, dt{n}, da{n}; or.pred dp{n}, dp{n}, dq{n}; "
        f"@!dp{n} bra $Lcute_on{n}; selp.b32 dk, {ENDED}, 0, dq{n}; {told} $Lcute_on{n}: }}"
    )


def at_mbarrier(site: int, bar: str, parity: str) -> str:
    """Write the record of a wait for an mbarrier: its address, the parity, its word and its pending count.

    A load may find what was there before: an H200 keeps the object in a cache of its own, which `mbarrier.inval` writes
    back (SYNCS.CCTL.IV). The kernel ends, so nobody needs the object any more."""
    n = fresh()
    return (
        f"{{ .reg .b64 dx{n}, dy{n}, dz{n}; .reg .b32 dw{n}; or.b32 dk, dk, 1; "
        f"mov.b32 dw{n}, {bar}; cvt.u64.u32 dx{n}, dw{n}; mbarrier.inval.shared.b64 [dw{n}]; "
        f"ld.volatile.shared.b64 dz{n}, [dw{n}]; "
        f"mov.b32 dw{n}, {parity}; cvt.u64.u32 dy{n}, dw{n}; mbarrier.pending_count.b64 dw{n}, dz{n}; "
        + report("dk", site, (f"dx{n}", f"dy{n}", f"dz{n}"), f"dw{n}")
        + " }"
    )


def at_flag(site: int, address: str) -> str:
    """Write the record of a wait for a flag in global memory: its address and what is there."""
    n = fresh()
    return (
        f"{{ .reg .b64 dx{n}, dy{n}; .reg .b32 dw{n}; or.b32 dk, dk, 2; mov.b64 dx{n}, {address}; "
        f"ld.volatile.global.b32 dw{n}, [dx{n}]; cvt.u64.u32 dy{n}, dw{n}; "
        + report("dk", site, (f"dx{n}", f"dy{n}"))
        + " }"
    )


def gate(site: int, id: str, threads: str, waits: bool) -> str:
    """Count arrivals at a named barrier, and, if it `waits`, wait until all have come: then the barrier itself, which
    comes behind it and cannot be left, waits no more."""
    n = fresh()
    arrive = (
        f"{{ .reg .b64 ga{n}; .reg .b32 gm{n}, gl{n}, gn{n}, go{n}, gg{n}, gi{n}, gt{n}, gs{n}; "
        f".reg .pred gp{n}, gq{n}; mov.b32 gi{n}, {id}; mov.b32 gt{n}, {threads}; mov.b32 gs{n}, 0; "
        f"activemask.b32 gm{n}; popc.b32 gn{n}, gm{n}; mov.u32 gl{n}, %lanemask_lt; and.b32 gl{n}, gl{n}, gm{n}; "
        f"setp.eq.u32 gp{n}, gl{n}, 0; brev.b32 gl{n}, gm{n}; clz.b32 gl{n}, gl{n}; "
        f"{_number_of('ctaid', f'go{n}', f'gg{n}')}mul.lo.u32 go{n}, go{n}, 16; add.u32 go{n}, go{n}, gi{n}; "
        f"ld.global.b64 ga{n}, [{TABLE}+8]; mad.wide.u32 ga{n}, go{n}, 4, ga{n}; mov.b32 go{n}, 0; "
        f"@gp{n} atom.global.add.u32 go{n}, [ga{n}+{GATES}], gn{n}; and.b32 gg{n}, go{n}, 0xffff; "
        f"add.u32 gg{n}, gg{n}, gn{n}; setp.ge.and.u32 gq{n}, gg{n}, gt{n}, gp{n}; sub.u32 gg{n}, 65536, gt{n}; "
        f"@gq{n} red.global.add.u32 [ga{n}+{GATES}], gg{n}; "
    )
    if not waits:
        return arrive + "}"
    told = (
        f"or.b32 dk, dk, 3; {{ .reg .b64 dx{n}, dy{n}, dz{n}; cvt.u64.u32 dx{n}, gi{n}; cvt.u64.u32 dy{n}, gt{n}; "
        f"and.b32 gn{n}, gn{n}, 0xffff; cvt.u64.u32 dz{n}, gn{n}; "
        + report("dk", site, (f"dx{n}", f"dy{n}", f"dz{n}"))
        + " }"
    )
    return (
        arrive + f"shfl.sync.idx.b32 go{n}, go{n}, gl{n}, 31, gm{n}; $Lcute_gate{n}: "
        f"ld.volatile.global.b32 gn{n}, [ga{n}+{GATES}]; xor.b32 gg{n}, gn{n}, go{n}; "
        f"setp.ge.u32 gq{n}, gg{n}, 65536; @gq{n} bra $Lcute_open{n}; "
        + patience(f"gs{n}", told)
        + f" bra $Lcute_gate{n}; $Lcute_open{n}: bar.warp.sync gm{n}; }}"
    )


def _number_of(what: str, number: str, spare: str) -> str:
    """Compute the number of the thread in its block ("tid"), or of the block in the grid ("ctaid")."""
    return (
        f"mov.u32 {number}, %{what}.z; mov.u32 {spare}, %n{what}.y; mul.lo.u32 {number}, {number}, {spare}; "
        f"mov.u32 {spare}, %{what}.y; add.u32 {number}, {number}, {spare}; mov.u32 {spare}, %n{what}.x; "
        f"mul.lo.u32 {number}, {number}, {spare}; mov.u32 {spare}, %{what}.x; add.u32 {number}, {number}, {spare}; "
    )


def around_barrier(statement: str, kind: int, site: int) -> str:
    """Put around a barrier that threads which end do not hold up what ends the thread behind it, if the kernel is to
    end and it waited for long. A barrier lets its warp go on up to the next access to memory (BAR.SYNC.DEFER_BLOCKING),
    so there is one before the clock is read again."""
    n = fresh()
    return (
        f"{{ .reg .b64 ba{n}, bb{n}; .reg .b32 bc{n}; .reg .pred bp{n}; mov.u64 ba{n}, %clock64; {statement}; "
        f"ld.volatile.global.b32 bc{n}, [{TABLE}+16]; mov.u64 bb{n}, %clock64; sub.s64 bb{n}, bb{n}, ba{n}; "
        f"setp.lt.s64 bp{n}, bb{n}, 4194304; @bp{n} bra $Lcute_past{n}; setp.eq.u32 bp{n}, bc{n}, 0; "
        f"@bp{n} bra $Lcute_past{n}; ld.global.b64 ba{n}, [{TABLE}+8]; ld.volatile.global.b32 bc{n}, [ba{n}]; "
        f"setp.eq.u32 bp{n}, bc{n}, 0; @bp{n} bra $Lcute_past{n}; {report(ENDED | kind, site)} $Lcute_past{n}: }}"
    )


def aligned(address: str, size: int, site: int) -> str:
    """Report an address, a register of 64 bits, that is not a multiple of `size`."""
    n = fresh()
    return (
        f"{{ .reg .b64 al{n}, as{n}; .reg .pred ap{n}; and.b64 al{n}, {address}, {size - 1}; mov.b64 as{n}, {size}; "
        f"setp.eq.u64 ap{n}, al{n}, 0; @ap{n} bra $Lcute_al{n}; "
        f"{report(11, site, (address, f'as{n}'))} $Lcute_al{n}: }}"
    )


def within(address: str, size: int, site: int, found: str) -> str:
    """Look up the argument that holds `size` bytes at `address`, a register of 64 bits, and do `found` with its entry,
    the register `dn`; report an address in none. It may be left by the label `$Lcute_in…` that its end is."""
    n = fresh()
    return (
        f"{{ .reg .b64 wl{n}, wh{n}, we{n}; .reg .b32 wi{n}, dn; .reg .pred wp{n}; ld.const.b32 wi{n}, [{RANGES}]; "
        f"add.u64 we{n}, {address}, {size}; mov.u32 dn, {RANGES}; add.u32 dn, dn, 16; "
        f"$Lcute_look{n}: setp.eq.u32 wp{n}, wi{n}, 0; @wp{n} bra $Lcute_none{n}; "
        f"ld.const.v2.b64 {{wl{n}, wh{n}}}, [dn]; setp.le.u64 wp{n}, wl{n}, {address}; "
        f"setp.ge.and.u64 wp{n}, wh{n}, we{n}, wp{n}; @wp{n} bra $Lcute_found{n}; "
        f"add.u32 dn, dn, 32; sub.u32 wi{n}, wi{n}, 1; bra $Lcute_look{n}; "
        f"$Lcute_none{n}: ld.const.b32 wi{n}, [{RANGES}+4]; setp.eq.u32 wp{n}, wi{n}, 0; @wp{n} bra $Lcute_in{n}; "
        f"mov.b64 we{n}, {size}; {report(10, site, (address, f'we{n}'))} $Lcute_found{n}: {found} $Lcute_in{n}: }}"
    )


def numbers(address: str, values: Sequence[tuple[str, str, int]], site: int) -> str:
    """Report values that are no number of the found argument's element type, or that nobody wrote. values: each its
    suffix in PTX, a register or number, and its bits. For `within`."""
    n = fresh()
    checks = "".join(_number(n, *value) for value in values if value[2] >= 16)
    return (
        f"{{ .reg .b64 nm{n}, nx{n}, nq{n}; .reg .b32 nw{n}, ni{n}; .reg .pred np{n}; ld.const.b64 nm{n}, [dn+16]; "
        f"ld.const.b32 nw{n}, [dn+24]; cvt.u32.u64 ni{n}, nm{n}; {checks}bra $Lcute_good{n}; "
        f"$Lcute_bad{n}: cvt.u64.u32 nq{n}, nw{n}; {report(13, site, (address, f'nx{n}', f'nq{n}'))} "
        f"$Lcute_good{n}: }}"
    )


def _number(of: str, suffix: str, value: str, bits: int) -> str:
    """Check one value of a store, for `numbers`."""
    n = fresh()
    bad = f"@np{of} bra $Lcute_bad{of}; "
    begin = f"{{ .reg .{suffix} nv{n}; .reg .b32 na{n}, nb{n}; mov.{suffix} nv{n}, {value}; "
    if bits == 16:
        wide = f"mov.b32 na{n}, {{nv{n}, nv{n}}}; " if suffix != "f16" else ""
        return (
            f"{begin}{wide}and.b32 na{n}, na{n}, 0x7fff; cvt.u64.u32 nx{of}, na{n}; setp.eq.u32 np{of}, nw{of}, 16; "
            f"setp.gt.and.u32 np{of}, na{n}, ni{of}, np{of}; {bad}}} "
        )
    if bits == 32:
        return f"{begin}mov.b32 na{n}, nv{n}; {_word(of, f'na{n}', bad)}}} "
    return (
        f"{begin}mov.b64 nx{of}, nv{n}; and.b64 nq{of}, nx{of}, 0x7fffffffffffffff; setp.eq.u32 np{of}, nw{of}, 64; "
        f"setp.gt.and.u64 np{of}, nq{of}, nm{of}, np{of}; {bad}mov.b64 {{na{n}, nb{n}}}, nv{n}; "
        f"{_word(of, f'na{n}', bad)}{_word(of, f'nb{n}', bad)}}} "
    )


def _word(of: str, w: str, bad: str) -> str:
    n = fresh()
    return (
        f"{{ .reg .b32 nh{n}; cvt.u64.u32 nx{of}, {w}; setp.eq.u32 np{of}, {w}, {FILL}; {bad}"
        f"setp.eq.u32 np{of}, nw{of}, 16; @np{of} bra $Lcute_half{n}; setp.ne.u32 np{of}, nw{of}, 32; "
        f"@np{of} bra $Lcute_next{n}; and.b32 nh{n}, {w}, 0x7fffffff; setp.gt.u32 np{of}, nh{n}, ni{of}; {bad}"
        f"bra $Lcute_next{n}; $Lcute_half{n}: and.b32 nh{n}, {w}, 0x7fff; setp.gt.u32 np{of}, nh{n}, ni{of}; {bad}"
        f"shr.u32 nh{n}, {w}, 16; and.b32 nh{n}, nh{n}, 0x7fff; setp.gt.u32 np{of}, nh{n}, ni{of}; {bad}"
        f"$Lcute_next{n}: }} "
    )


def within_shared(address: str, size: int, site: int, dynamic: str) -> str:
    """Report `size` bytes at `address`, a register of 64 bits, that are beyond the block's shared memory. dynamic: the
    symbol of dynamic shared memory, which lies last."""
    n = fresh()
    return (
        f"{{ .reg .b32 sl{n}, sr{n}; .reg .b64 se{n}, sw{n}; .reg .pred sp{n}; mov.u32 sl{n}, {dynamic}; "
        f"mov.u32 sr{n}, %dynamic_smem_size; add.u32 sl{n}, sl{n}, sr{n}; cvt.u64.u32 sw{n}, sl{n}; "
        f"and.b64 se{n}, {address}, 0xffffff; add.u64 se{n}, se{n}, {size}; setp.le.u64 sp{n}, se{n}, sw{n}; "
        f"@sp{n} bra $Lcute_sh{n}; mov.b64 se{n}, {size}; "
        f"{report(12, site, (address, f'se{n}', f'sw{n}'))} $Lcute_sh{n}: }}"
    )


def fill(symbol: str, size: str) -> str:
    """Fill `size` bytes of shared memory, a number or a register, from `symbol` on. All threads of the block."""
    n = fresh()
    return (
        f"{{ .reg .b32 fa{n}, fe{n}, ft{n}, fy{n}, fv{n}, fs{n}; .reg .pred fp{n}; mov.u32 fa{n}, {symbol}; "
        f"mov.u32 fe{n}, {size}; and.b32 fe{n}, fe{n}, 0xfffffffc; add.u32 fe{n}, fe{n}, fa{n}; "
        f"{_number_of('tid', f'ft{n}', f'fy{n}')}mov.u32 fs{n}, %ntid.x; "
        f"mad.lo.u32 fa{n}, ft{n}, 4, fa{n}; mov.u32 fy{n}, %ntid.y; "
        f"mul.lo.u32 fs{n}, fs{n}, fy{n}; mov.u32 fy{n}, %ntid.z; mul.lo.u32 fs{n}, fs{n}, fy{n}; "
        f"mul.lo.u32 fs{n}, fs{n}, 4; mov.b32 fv{n}, {FILL}; "
        f"$Lcute_fill{n}: setp.ge.u32 fp{n}, fa{n}, fe{n}; @fp{n} bra $Lcute_filled{n}; st.shared.b32 [fa{n}], fv{n}; "
        f"add.u32 fa{n}, fa{n}, fs{n}; bra $Lcute_fill{n}; $Lcute_filled{n}: }}"
    )
