"""From confidences to decisions: a ranked table of doubtful labels, and why they are doubted."""
