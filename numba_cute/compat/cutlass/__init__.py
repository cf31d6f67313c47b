# SPDX-License-Identifier: Apache-2.0
"""What the CuTe DSL's modules have names for and this library has not: one file for each of their kinds."""
