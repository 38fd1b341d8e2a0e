"""Labels of several annotators: one likelihood of all their labels, with a noise matrix for each of them."""

from laplaceconfidence.confidence.annotators.estimator import AnnotatorConfidence

__all__ = ["AnnotatorConfidence"]
