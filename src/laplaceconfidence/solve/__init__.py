"""The minimum of the Laplacian energy, by conjugate gradients for all classes at once."""
