"""Preparation of features for a graph: scaling to unit length and PCA."""
