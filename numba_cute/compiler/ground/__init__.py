# SPDX-License-Identifier: Apache-2.0
"""The ground of every room of the compiler: whose a function is, its target, its launch, its errors."""
