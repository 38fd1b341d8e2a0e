"""Scores of confidence estimators where the truth is known: benchmarks only."""
