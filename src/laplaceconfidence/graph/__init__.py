"""The k-nearest-neighbor graph: who is close to whom, and how much each says to the other."""
