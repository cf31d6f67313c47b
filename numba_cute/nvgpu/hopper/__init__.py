# SPDX-License-Identifier: Apache-2.0
"""Operations that came with Hopper (sm_90): TMA, wgmma, stores to peers' shared memory."""
