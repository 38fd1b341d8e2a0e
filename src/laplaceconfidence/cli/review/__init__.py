"""``laplaceconfidence review``: decide label by label in the browser."""
