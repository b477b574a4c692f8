"""Sampling and private jobs on Spark, with the same sample as every other engine (pip install 'privamp[spark]').

`sample` gives the drawn rows, `draw` a sample with its ledger, `release` a `PrivateSum` or `PrivateMean`,
`estimate_strata` one estimate per stratum, `fit` a `PrivateKMeans`. PySpark is imported when one of them is called.
"""

from ..engines.spark import sample, session
from ..engines.spark_sample import SparkSample, draw
from .kmeans import fit
from .strata import estimate_strata
from .sums import release

__all__ = ["SparkSample", "draw", "estimate_strata", "fit", "release", "sample", "session"]
