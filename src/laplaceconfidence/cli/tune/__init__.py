"""``laplaceconfidence tune``: command -> request -> the runs of a bench; summary beside it."""
