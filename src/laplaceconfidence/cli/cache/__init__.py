"""``laplaceconfidence cache``."""
