"""Private k-means: weighted Lloyd steps on one importance sample, every step accounted for."""
