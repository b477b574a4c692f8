"""Engines: where the data is. One kernel (kernel.py) decides in all of them who is drawn. All of them need pyarrow."""

from ..extras import need

need("pyarrow", "drawing from files and frames")
