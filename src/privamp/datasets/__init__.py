"""Example data: small, synthetic, the same on every machine, in the public domain (CC0).

    >>> from privamp import datasets
    >>> schools = datasets.load("schools")
    >>> list(schools), len(schools["enroll"])
    (['school', 'level', 'district', 'enroll'], 300)

`privamp example schools > schools.csv` writes the same table from the command line.
"""

from .examples import Example, find, load, names, write

__all__ = ["Example", "find", "load", "names", "write"]
