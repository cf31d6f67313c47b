# SPDX-License-Identifier: Apache-2.0
"""Programs of the kernel's language, run three ways: by Python itself, by the simulator, and compiled for this
machine's processor."""
