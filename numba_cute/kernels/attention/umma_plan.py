# SPDX-License-Identifier: Apache-2.0
"""Launch attention on Blackwell: choose how many tiles a CTA has at once, the keys of a block, and the stages of shared
memory, and make the arguments and the grid."""

import numba_cute as cute
from numba_cute.seam import CuteError

from ..entry import element_type
from . import plan
from .plan import ALL, NO_SCALES
from .umma import kernel_of
from .umma_form import COLUMNS, ROWS, Form, atoms, lies

SMEM = cute.target("sm_100a").smem_per_block - 2560  # bytes for tiles; what rows are told, and barriers, have the rest
KEYS = (128, 64, 48, 32, 16)  # of a block: the most that fit
MOST_STAGES = 4

KNOWN = {
    "scale", "left", "right", "score", "most_queries", "tile", "pack", "splits", "mask", "block", "draws", "section",
    "stages", "q_stages",
}  # fmt: skip
"""The fields of `plan.Options` that this kernel has."""


def check(options, narrow=False):
    """Refuse options that this kernel has not, with CuteError. narrow: whether elements have 8 bits."""
    if narrow:
        raise CuteError("flash_attention: there is no kernel for float8 on Blackwell yet: convert q, k and v")
    unknown = [name for name, x in options._asdict().items() if x is not None and name not in KNOWN]
    if unknown:
        raise CuteError(
            f"flash_attention: {', '.join(unknown)} is given, which the kernel for Blackwell "
            "does not support: leave it out there"
        )
    if options.block is not None and options.block[0] % ROWS:
        raise CuteError(
            f"flash_attention: blocks is of {options.block[0]} queries a block; on Blackwell it must be a multiple of "
            f"{ROWS}"
        )


def fits(form):
    """Say whether a form's tiles fit shared memory, and its sums tensor memory."""
    return form.smem <= SMEM and form.columns <= COLUMNS


def staged(form):
    """Give a form as many stages of keys and values as there is room for, of values no more than of keys; None where
    nothing fits."""
    pairs = [(k, v) for k in range(1, MOST_STAGES + 1) for v in (k - 1, k) if v]
    fit = [f for f in (form._replace(stages_k=k, stages_v=v) for k, v in pairs) if fits(f)]
    return fit[-1] if fit else None


def form_of(q, k, v, queries, lengths, options):
    """The kernel's form for arrays, and `plan.Options`, of which `tile` may have (128 or 256, keys). queries: of the
    longest sequence."""
    check(options, element_type(q).width == 8)
    (heads, d), (kv_heads, dv) = q.shape[-2:], v.shape[-2:]
    if d % 32 or dv % 32:
        raise CuteError(f"flash_attention: the head dimension is {d} of q and {dv} of v; each must be a multiple of 32")
    group, page, block = heads // kv_heads, k.shape[1] if lengths.pages is not None else 0, options.block
    if block is not None:  # each tile, and head, has a list of its own
        options = options._replace(pack=1)
    form = Form(
        element_type(q), d, dv, group, 1, 0, options.left is not None, options.right is not None,
        draws=options.draws is not False, page=page, score=options.score, mask=options.mask, block=block,
        bounded=plan.bounded(options, lengths),
    )  # fmt: skip
    small = plan.pack_of(queries, group, ROWS) if options.pack is None else options.pack
    single = queries * small <= ROWS or (block is not None and block[0] % (2 * ROWS) != 0)
    among = block[1] if block is not None else 0
    choices = [(g, n) for g in ((1,) if single else (2, 1)) for n in KEYS if among % n == 0]
    if options.tile is not None:
        choices = [(options.tile[0] // ROWS, options.tile[1])]
    forms = [staged(form._replace(groups=g, tile_n=n)) for g, n in choices]
    found = next((f for f in forms if f is not None), None)
    if found is None:
        raise CuteError(
            f"flash_attention: no tile of {choices} (times {ROWS} queries, keys) fits shared and tensor memory: give a "
            "smaller one"
        )
    pack = plan.pack_of(queries, group, found.tile_m) if options.pack is None else options.pack
    if options.stages is not None:
        found = found._replace(stages_k=options.stages, stages_v=options.stages)
    return found._replace(pack=pack, q_stages=options.q_stages or 1)


def best_splits(q, k, v, options, lengths, sms):
    """Choose how many CTAs share a tile's keys, as `plan.best_splits` does."""
    form = form_of(q, k, v, plan.sizes(q, k, options, lengths)[1], lengths, options)
    return plan.splits_for(form, q, k, options, lengths, sms)


def arguments(
    q, k, v, o, lse, counter, sms, options, lengths=ALL, sink=None, aux=(), work=None, mask_aux=(), listed=None
):  # fmt: skip
    """The kernel, its arguments, grid and block, for arrays of the host (to simulate or compile) or of the device. All
    as of `plan.arguments`."""
    form = form_of(q, k, v, plan.sizes(q, k, options, lengths)[1], lengths, options)
    of_smem = plan.copies(form, lies(form)[0], atoms(form), q, k, v, None)
    return plan.launch_of(
        kernel_of(form), form, of_smem, q, k, v, o, lse, counter, sms, options, lengths, sink, aux, work, NO_SCALES,
        mask_aux, listed,
    )  # fmt: skip


@cute.runtime.remembered
def launches(
    q, k, v, o, lse, counter, cu_q, cu_k, used, pages, sink, work, counts, lists, sms, options, own, *aux
):  # fmt: skip
    """The launches of a call: of each the kernel, its arguments, grid and block. All as of `entry.launches`."""
    lengths = plan.Lengths(cu_q, cu_k, used, pages)
    numbers = tuple(x[0](x[1]) if type(x) is tuple else x for x in aux)
    listed = None if counts is None else (counts, lists)
    made = arguments(
        q, k, v, o, lse, counter, sms, options, lengths, sink, numbers[:own], work, numbers[own:], listed
    )  # fmt: skip
    after = () if work is None else (plan.joining(q, v, o, lse, options, lengths, sink, work),)
    return made, *after
