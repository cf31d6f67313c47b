# SPDX-License-Identifier: Apache-2.0
"""What a facade module shows: it lists no names; each stands once, in the `__all__` of the module that defines it."""

from types import ModuleType
from typing import Any


def publish(namespace: dict[str, Any], *modules: ModuleType) -> None:
    """Set `__all__` of the facade whose globals are `namespace`: all its public names, and of its modules `modules`.

    Type checkers see no assignment to `__all__`, and so take the facade's star imports for what it exports."""
    shown = {n for n, v in namespace.items() if not n.startswith("_") and not isinstance(v, ModuleType)}
    namespace["__all__"] = sorted(shown | {m.__name__.rpartition(".")[2] for m in modules})
