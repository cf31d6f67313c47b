# SPDX-License-Identifier: Apache-2.0
"""Modules of the IR as Python: what each operation means, written as the statements of a function."""
