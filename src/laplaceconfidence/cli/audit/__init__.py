"""``laplaceconfidence audit``: which labels are probably wrong."""
