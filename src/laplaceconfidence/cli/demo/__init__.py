"""``laplaceconfidence demo``: the whole package on handwritten digits, in about a minute."""
