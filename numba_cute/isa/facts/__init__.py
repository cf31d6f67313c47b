# SPDX-License-Identifier: Apache-2.0
"""Facts of the PTX ISA that several rows share: descriptors, tensor maps, fragments, canonical layouts, rounding."""
