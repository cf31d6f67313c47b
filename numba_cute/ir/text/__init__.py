# SPDX-License-Identifier: Apache-2.0
"""Types and attributes of this library in text: the scanner, the reader and the writer, and what they spell."""
