"""Find labels that are probably wrong, explain why, and suggest other ones."""

from laplaceconfidence.auditing.explain import Explanation
from laplaceconfidence.auditing.issues import audit, find_label_issues
from laplaceconfidence.auditing.result import AuditResult

__all__ = ["AuditResult", "Explanation", "audit", "find_label_issues"]
