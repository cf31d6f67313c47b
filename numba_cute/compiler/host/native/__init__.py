# SPDX-License-Identifier: Apache-2.0
"""Launches in machine code that is made here: arguments are checked and packed, and the driver called, with no Python
in between."""
