"""``laplaceconfidence export``: the corrected data set."""
