"""What a run leaves on disk, and how it is read back."""

from laplaceconfidence.records.audit_run import AuditRecord, AuditRun, read_audit, write_audit

__all__ = ["AuditRecord", "AuditRun", "read_audit", "write_audit"]
