"""``laplaceconfidence bench``: command -> request -> run; data, progress and summary beside it."""
