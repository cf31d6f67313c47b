# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, strategies as st

from numba_cute.isa.facts.bits import BitField, Record, WgmmaDescriptor, bits, encode_address
from numba_cute.seam import CuteError

sixteens = st.integers(0, (1 << 14) - 1).map(lambda x: 16 * x)


@given(sixteens, sixteens, sixteens, st.integers(0, 7), st.sampled_from([0, 32, 64, 128]))
def test_wgmma_descriptor_decodes_what_it_encoded(start, leading, stride, base_offset, swizzle):
    d = WgmmaDescriptor(start, leading, stride, base_offset, swizzle)
    assert WgmmaDescriptor.decode(d.encode()) == d


@pytest.mark.parametrize(
    "word, record",
    [
        # K-major 128-byte swizzle at 0x400: SBO 1024, LBO 16 (PTX ISA, "Matrix Descriptor Format").
        (1 << 62 | 64 << 32 | 1 << 16 | 0x40, WgmmaDescriptor(0x400, 16, 1024, 0, 128)),
        (2 << 62 | 32 << 32, WgmmaDescriptor(0, 0, 512, 0, 64)),
        (3 << 62 | 16 << 32, WgmmaDescriptor(0, 0, 256, 0, 32)),
        (5 << 49, WgmmaDescriptor(base_offset=5)),
    ],
)
def test_wgmma_descriptor_of_known_words(word, record):
    assert record.encode() == word
    assert WgmmaDescriptor.decode(word) == record


@pytest.mark.parametrize(
    "values, named",
    [
        ({"start": 8}, "start is 8: it must be a multiple of 16"),
        ({"start": 1 << 18}, "start is 262144: it must be from 0 to 262128"),
        ({"stride": -16}, "stride is -16"),
        ({"base_offset": 8}, "base_offset is 8: it must be from 0 to 7"),
        ({"swizzle": 16}, r"swizzle is 16: it must be one of \[0, 32, 64, 128\]"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(values, named):
    with pytest.raises(CuteError, match=named):
        WgmmaDescriptor(**values)


@pytest.mark.parametrize("word", [1 << 14, 1 << 46, 1 << 61, 1 << 64])
def test_a_word_with_reserved_bits_is_no_descriptor(word):
    with pytest.raises(CuteError, match="no WgmmaDescriptor"):
        WgmmaDescriptor.decode(word)


def test_a_code_that_no_value_has_is_refused():
    @dataclasses.dataclass(frozen=True)
    class Mode(Record):
        mode: int = bits(0, 2, codes={0: 0, 8: 1})

    assert Mode.decode(1) == Mode(8)
    with pytest.raises(CuteError, match="Mode.mode has code 3"):
        Mode.decode(3)


def test_records_are_immutable_and_hashable():
    d = WgmmaDescriptor(swizzle=128)
    assert hash(d) == hash(WgmmaDescriptor(swizzle=128))
    with pytest.raises(dataclasses.FrozenInstanceError):
        d.start = 16  # type: ignore[misc]


@given(sixteens, st.integers(0, 255))
def test_encoded_address_is_the_start_field_whatever_the_window(address, window):
    assert encode_address(address | window << 18) == WgmmaDescriptor(start=address).encode()


def test_fields_do_not_overlap():
    used = 0
    for field in WgmmaDescriptor.fields().values():
        assert isinstance(field, BitField)
        mask = ((1 << field.width) - 1) << field.lo
        assert not used & mask
        used |= mask
