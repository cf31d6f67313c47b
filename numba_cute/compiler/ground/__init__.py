# SPDX-License-Identifier: Apache-2.0
"""Stand under every room of the compiler: whose a function is, its target, its launch, its errors."""
