"""Engines for different data sources. In all of them one kernel (kernel.py) decides who is drawn. All need pyarrow."""

from ..extras import need

need("pyarrow", "drawing from files and frames")
