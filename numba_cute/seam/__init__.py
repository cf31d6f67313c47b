# SPDX-License-Identifier: Apache-2.0
"""The seam between library code and what runs it.

Library code is written once. It meets what runs it only here:

* `traced` functions are plain Python over static structure. They run at compile time, once on symbolic leaves
  (typing) and once on leaves that emit code (lowering); in the simulator and on the host they simply run.
* `frozen` classes are immutable values: their static part lies in the Numba type, their run-time leaves in
  registers. Methods and properties are traced.
* `struct` classes are mutable and held by reference. Their methods hold run-time control flow and are jitted by
  Numba as they stand; the simulator runs the same source. `traced` methods may stand beside them.

A `Backend` is what a traced function asks for anything that is not arithmetic on leaves. There are three: the
compiler's typing and lowering, and the simulator. `current()` is the one that runs now.
"""

from numba_cute.seam.ground.backend import (
    ARITHMETIC as ARITHMETIC,
    COMPARISONS as COMPARISONS,
    DIRECTED as DIRECTED,
    ELEMENTWISE as ELEMENTWISE,
    INTEGER as INTEGER,
    LOGICAL as LOGICAL,
    MATH as MATH,
    UNARY_MATH as UNARY_MATH,
    Backend as Backend,
    Regs as Regs,
    computed_by as computed_by,
    computes_on_host as computes_on_host,
    current as current,
    current_or as current_or,
    following as following,
    loses as loses,
    refused as refused,
    running as running,
    settled as settled,
    signalled as signalled,
    tries as tries,
    trying as trying,
)
from numba_cute.seam.ground.error import (
    CuteError as CuteError,
    InternalError as InternalError,
    PeerError as PeerError,
    Signal as Signal,
)
from numba_cute.seam.ground.leaf import (
    Int as Int,
    Leaf as Leaf,
    Number as Number,
    beyond as beyond,
    divisor as divisor,
    divisor_of as divisor_of,
    is_exact as is_exact,
    known as known,
    quotient as quotient,
    quotient_up as quotient_up,
    remainder as remainder,
)
from numba_cute.seam.ground.names import (
    UnknownName as UnknownName,
    WrongArguments as WrongArguments,
)
from numba_cute.seam.ground.packages import is_of_hook as is_of_hook
from numba_cute.seam.ground.records import dataclass_transform as dataclass_transform
from numba_cute.seam.marks.constexpr import Constexpr as Constexpr
from numba_cute.seam.marks.decorators import (
    ArrayView as ArrayView,
    StaticEnum as StaticEnum,
    after_set as after_set,
    bind_fields as bind_fields,
    const_expr as const_expr,
    field_names as field_names,
    for_result as for_result,
    frozen as frozen,
    is_for_result as is_for_result,
    is_frozen_class as is_frozen_class,
    is_made as is_made,
    is_static as is_static,
    is_struct_class as is_struct_class,
    is_traced as is_traced,
    known_as as known_as,
    part_of as part_of,
    range_constexpr as range_constexpr,
    static as static,
    struct as struct,
    tell_marked as tell_marked,
    traced as traced,
)
from numba_cute.seam.marks.prints import InIR as InIR
from numba_cute.seam.marks.ranges import (
    check_keywords as check_keywords,
    range as range,
)
