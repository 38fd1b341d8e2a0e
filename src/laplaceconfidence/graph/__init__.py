"""The k-nearest-neighbour graph: who is close to whom, and how much each says to the other."""
