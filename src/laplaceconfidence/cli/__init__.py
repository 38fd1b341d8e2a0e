"""The command line: one package per command, and what commands share beside them."""
