"""What the torch tests share. Files that need torch skip themselves where it is missing."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Opacus and torch warn about their own insides; everything else stays an error."""
    for item in items:
        if "tests/torch" in str(item.path).replace("\\", "/"):
            item.add_marker(pytest.mark.filterwarnings("ignore:.*:DeprecationWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore:.*:FutureWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning"))
