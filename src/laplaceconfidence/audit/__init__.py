"""Which labels are probably wrong, why, and what they should be.

``laplaceconfidence.audit`` is this room and can be called: ``laplaceconfidence.audit(dataset)`` is
``laplaceconfidence.audit.audit(dataset)``. Python binds a package's name to its sub-package as soon as
anything in it is imported, so that a function of the same name would be there or not depending on what ran
before. A room that can be called is the same thing at all times (docs/decisions/0002).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from laplaceconfidence.audit.explain import Explanation
from laplaceconfidence.audit.issues import audit, find_label_issues
from laplaceconfidence.audit.result import AuditResult

__all__ = ["AuditResult", "Explanation", "audit", "find_label_issues"]


class _CallableRoom(ModuleType):
    __wrapped__ = staticmethod(audit)  # what help() and signature() show

    def __call__(self, *args: Any, **kwargs: Any) -> AuditResult:
        return audit(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableRoom
