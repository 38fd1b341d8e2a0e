"""Estimators of the probability that a given label is right, all behind one protocol."""
