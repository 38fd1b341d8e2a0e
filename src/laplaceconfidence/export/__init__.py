"""Write the corrected data set of a run, with a trail of every change. The original data is never changed."""

from laplaceconfidence.export.plan import ExportPlan, plan_export
from laplaceconfidence.export.writing import write_export

__all__ = ["ExportPlan", "plan_export", "write_export"]
