# SPDX-License-Identifier: Apache-2.0
"""Single instructions by their CuTe names: indices, barriers, fences, warp exchanges."""

from ..seam.guards import facade as _facade
from .access import *
from .atomic import *
from .bitwise import *
from .bulk import *
from .cache import *
from .carry import *
from .clc import *
from .convert import *
from .floats import *
from .index import *
from .inline import *
from .mbarrier import *
from .packed import *
from .smem import *
from .sync import *
from .tmem import *
from .warp import *

_facade.publish(globals())
