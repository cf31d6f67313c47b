# SPDX-License-Identifier: Apache-2.0
"""The typed form of a kernel, as neutral data: what the front end makes once, for both engines and the IR.

`descriptions` says what a kernel knows of a value, `form` has its statements and blocks; `structure`, with `graph`,
`rotation` and `iteration`, makes nested loops and conditions of them, and `liveness` tells what these read and write.
"""
