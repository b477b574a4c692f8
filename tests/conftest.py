"""Keys for tests of jobs."""

from zlib import crc32

import pytest

from privamp.testing import seeded_key


@pytest.fixture
def key(request):
    """key(i): seeded keys of this test alone, since one key draws one sample that answers once."""
    start = crc32(request.node.nodeid.encode()) * 1000
    return lambda i=0: seeded_key(start + i)
