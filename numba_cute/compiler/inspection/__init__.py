# SPDX-License-Identifier: Apache-2.0
"""What a kernel became: its CuTe operations, layouts and the PTX of each line."""
