"""Papers' figures and tables, recomputed beside what is printed; one file per figure or table."""
