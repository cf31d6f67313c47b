# SPDX-License-Identifier: Apache-2.0
"""Between this library's operations, which are calls, and the published ones that say the same."""
