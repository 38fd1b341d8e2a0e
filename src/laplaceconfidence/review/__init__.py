"""Deciding label by label in the browser, with nothing lost."""
