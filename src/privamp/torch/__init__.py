"""Training torch modules with differential privacy: `PrivacyEngine`. Needs torch (pip install 'privamp[torch]').

Torch is imported when a name below is used, so that plans can be made where it is not installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..extras import missing

if TYPE_CHECKING:
    from .bands import BandsPlan, plan_bands
    from .choosing import ChoicePrice, choice_price, private_choice
    from .dpis import DPISPlan
    from .engine import PrivacyEngine, Progress, device
    from .importance import ImportanceRule
    from .lstm import LSTM
    from .memory import BatchMemoryManager
    from .plan import Plan

__all__ = [
    "LSTM",
    "BandsPlan",
    "BatchMemoryManager",
    "ChoicePrice",
    "DPISPlan",
    "ImportanceRule",
    "Plan",
    "PrivacyEngine",
    "Progress",
    "choice_price",
    "device",
    "plan_bands",
    "private_choice",
]

_HOME = {
    "BandsPlan": "bands",
    "BatchMemoryManager": "memory",
    "LSTM": "lstm",
    "DPISPlan": "dpis",
    "ImportanceRule": "importance",
    "Plan": "plan",
    "PrivacyEngine": "engine",
    "Progress": "engine",
    "device": "engine",
    "ChoicePrice": "choosing",
    "choice_price": "choosing",
    "plan_bands": "bands",
    "private_choice": "choosing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        raise missing(error, f"privamp.torch.{name}") from None
