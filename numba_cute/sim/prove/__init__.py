# SPDX-License-Identifier: Apache-2.0
"""Proofs that every order of a kernel's threads and copies does what one run did: `simulate(kernel).prove()`."""
