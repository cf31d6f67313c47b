# SPDX-License-Identifier: Apache-2.0
"""Every Python that is promised: the suite on each of them (`python -m tests.pythons`), and what only differs there."""
