"""Private sums and means of vectors, on all records or on a sample."""

from .estimates import Estimated as Estimated
from .private_mean import PrivateMean as PrivateMean
from .private_sum import PrivateSum as PrivateSum
