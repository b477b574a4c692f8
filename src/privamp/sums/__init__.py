"""Private sums and means of vectors, on all records or on a sample."""

from .estimates import Estimated
from .private_mean import PrivateMean
from .private_sum import PrivateSum

__all__ = ["Estimated", "PrivateMean", "PrivateSum"]
