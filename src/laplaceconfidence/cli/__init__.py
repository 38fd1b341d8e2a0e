"""The command line: one command a file. Heavy imports wait until a command really runs."""
