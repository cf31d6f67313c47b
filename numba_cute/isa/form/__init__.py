# SPDX-License-Identifier: Apache-2.0
"""The rows of the instruction table, and the machine that their bodies run on."""
