# SPDX-License-Identifier: Apache-2.0
"""The layout algebra: pure Python over ints, and over values known only at run time."""

from ..seam import is_static as is_static
from ..seam.guards import facade as _facade
from .algebra import *
from .algebra import (
    composition as composition,
)
from .basis import *
from .basis import (
    add_coord as add_coord,
    as_coord as as_coord,
    is_basis as is_basis,
)
from .coalescing import (
    coalesce as coalesce,
    filter as filter,
    filter_zeros as filter_zeros,
)
from .divides import *
from .divides import (
    flat_divide as flat_divide,
    local_partition as local_partition,
    local_tile as local_tile,
    logical_divide as logical_divide,
    tiled_divide as tiled_divide,
    zipped_divide as zipped_divide,
)
from .image import *
from .int_tuple import *
from .int_tuple import (
    IntTuple as IntTuple,
)
from .inverses import *
from .layout import *
from .layout import (
    cosize as cosize,
    depth as depth,
    domain_offset as domain_offset,
    front as front,
    leading_dim as leading_dim,
    rank as rank,
    shape as shape,
    size as size,
    size_in_bytes as size_in_bytes,
    stride as stride,
)
from .leaves import *
from .mapping import *
from .modes import *
from .modes import (
    flatten as flatten,
    group_modes as group_modes,
    select as select,
)
from .ordered import *
from .products import *
from .recast import *
from .show import *
from .slices import *
from .slices import (
    slice_ as slice_,
)
from .swizzle import *
from .tuples import *

_facade.publish(globals())
