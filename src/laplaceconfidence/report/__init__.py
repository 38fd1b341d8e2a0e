"""Write a self-contained HTML report of an audit, a training run or a bench."""

from laplaceconfidence.report.writing import write_report

__all__ = ["write_report"]
