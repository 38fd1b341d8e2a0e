"""Which labels are probably wrong, why, and what they should be."""

from laplaceconfidence.auditing.explain import Explanation
from laplaceconfidence.auditing.issues import audit, find_label_issues
from laplaceconfidence.auditing.result import AuditResult

__all__ = ["AuditResult", "Explanation", "audit", "find_label_issues"]
