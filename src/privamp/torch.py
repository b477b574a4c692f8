"""Training torch modules with differential privacy: `PrivacyEngine`. Needs torch (pip install 'privamp[torch]')."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("privamp.torch needs PyTorch; install it with: pip install 'privamp[torch]'") from error

from .workloads.torch.dpis import DPISPlan
from .workloads.torch.engine import PrivacyEngine, Progress, device
from .workloads.torch.importance import ImportanceRule
from .workloads.torch.lstm import LSTM
from .workloads.torch.plan import Plan

__all__ = ["LSTM", "DPISPlan", "ImportanceRule", "Plan", "PrivacyEngine", "Progress", "device"]
