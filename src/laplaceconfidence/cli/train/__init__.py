"""``laplaceconfidence train``: command -> run -> RobustClassifier; data, progress and summary beside it."""
