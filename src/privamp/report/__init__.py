"""Reports: self-contained pages, comparisons of designs, and their pictures."""
