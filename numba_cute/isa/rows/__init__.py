# SPDX-License-Identifier: Apache-2.0
"""The rows, a file for each family of the PTX ISA. Importing a file declares its rows."""
