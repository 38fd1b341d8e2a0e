"""Training methods, one per file, behind one interface."""
