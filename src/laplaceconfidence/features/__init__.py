"""Features made ready for a graph: scaled to unit length, optionally reduced by PCA."""
