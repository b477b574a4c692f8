"""A matplotlib figure that a notebook shows by itself.

Jupyter displays figures of pyplot, but prints a plain `Figure` as text.
"""

from matplotlib.figure import Figure

from .html import png_of


class NotebookFigure(Figure):
    """A figure with no window behind it. `savefig` writes it to a file, as for every other figure."""

    def _repr_png_(self) -> bytes:
        """The picture as notebooks show it."""
        return png_of(self, dpi=100)
