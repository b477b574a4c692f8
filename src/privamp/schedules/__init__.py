"""One file per schedule."""
