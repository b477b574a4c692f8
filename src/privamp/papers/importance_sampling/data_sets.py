"""The data sets of the k-means experiments, prepared as in the paper.

Rows are centred, those above the 97.5 percentile of the norm are dropped, and the rest are centred again.

Song, Pose, MiniBooNE and FMA are not available; of RNA, two thirds of the rows are.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...numerics.log_domain import FloatArray
from ..data import shared_file

# rows kept, columns, largest norm, mean squared norm, as printed in Table 1
PRINTED: Final = {
    "KDD-Protein": ("142107", "74", "8020.65", "7031359.55"),
    "RNA": ("476350", "8", "420.67", "24902.47"),
    "Song": ("502461", "90", "7507.16", "6769375.49"),
    "Covertype": ("566486", "54", "4489.17", "3839798.28"),
    "Ijcnn1": ("48740", "22", "1.51", "1.26"),
    "Pose": ("34936", "48", "2250.64", "1249739.50"),
    "MiniBooNE": ("126812", "50", "2213.05", "295947.13"),
    "FMA": ("103909", "518", "6020.23", "5838871.88"),
}
FILES: Final = {"KDD-Protein": "kdd_protein.npz", "RNA": "cod_rna_partial.npz", "Covertype": "covertype.npz",
                "Ijcnn1": "ijcnn1.npz"}  # fmt: skip
ABSENT: Final = tuple(name for name in PRINTED if name not in FILES)
PART = "157,413 of the 488,565 rows are missing from the file"
NOT_HERE = "the data set is not available"

Rows32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Rows:
    """Prepared rows (n, d); the ball around them is treated as public, as in the paper."""

    x: FloatArray
    norms: FloatArray = field(init=False)  # distances from the centre, (n,)
    single: Rows32 = field(init=False)  # x in single precision, for Lloyd's steps

    def __post_init__(self) -> None:
        object.__setattr__(self, "norms", np.linalg.norm(self.x, axis=1))
        object.__setattr__(self, "single", self.x.astype(np.float32))

    def in_the_unit_ball(self, most: int) -> "Rows":
        """At most this many rows, evenly thinned, divided by the largest norm of all rows."""
        step = -(-len(self.x) // most)
        return Rows(self.x[::step] / self.norms.max())


def prepared(raw: NDArray[np.generic]) -> Rows:
    """Centre, drop the rows whose norm is not below the 97.5 percentile, centre again."""
    x = np.ascontiguousarray(raw, dtype=np.float64)
    x = x - x.mean(axis=0)
    norms = np.linalg.norm(x, axis=1)
    x = x[norms < np.percentile(norms, 97.5)]
    return Rows(x - x.mean(axis=0))


def read(name: str) -> Rows:
    """Load one of the available data sets."""
    with np.load(shared_file(FILES[name])) as data:
        if name == "RNA":
            return prepared(np.concatenate([data["X_train"], data["X_test"]]))
        return prepared(data["X"] if "X" in data else data["X_train"])
