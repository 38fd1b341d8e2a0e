"""``laplaceconfidence predict``."""
