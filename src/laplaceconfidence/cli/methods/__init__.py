"""The command ``laplaceconfidence methods``."""
