"""Review labels one by one in the browser; every decision is stored at once."""
