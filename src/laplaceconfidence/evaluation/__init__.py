"""Benchmarks on data with known true labels: metrics, grids of experiments and tables of their results."""
