"""``laplaceconfidence diff``: what changed between two audits."""
