"""The k-nearest-neighbor graph: neighbors, affinities and normalized weights."""
