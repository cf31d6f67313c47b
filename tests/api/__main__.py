# SPDX-License-Identifier: Apache-2.0
"""Print what differs from the recorded API, or record it."""

import sys

from . import differences, record

if __name__ == "__main__":
    if "--record" in sys.argv:
        record()
    else:
        print("\n".join(differences()))
