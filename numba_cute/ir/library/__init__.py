# SPDX-License-Identifier: Apache-2.0
"""The dialects of this library alone: an operation is a call of it, a type what a kernel knows of a value."""
