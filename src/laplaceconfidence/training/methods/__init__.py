"""Training methods, one a file, behind one interface."""
