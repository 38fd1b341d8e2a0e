"""Training that survives wrong labels. Torch is imported in this room and nowhere else."""
