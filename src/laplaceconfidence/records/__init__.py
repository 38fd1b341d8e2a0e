"""The files of a run: written, and read again."""

from laplaceconfidence.records.audit_run import AuditRecord, AuditRun, read_audit, write_audit

__all__ = ["AuditRecord", "AuditRun", "read_audit", "write_audit"]
