"""A small model on a few records, made private: what the tests of the engine share."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

from privamp.testing import seeded_key
from privamp.torch import PrivacyEngine

torch.set_num_threads(1)
N = 60


def data(n=N, classes=3):
    generator = torch.Generator().manual_seed(1)
    return TensorDataset(torch.randn(n, 5, generator=generator), torch.randint(0, classes, (n,), generator=generator))


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))


def private(module=None, optimizer=None, records=None, key=1, **options):
    module = module or model()
    engine = PrivacyEngine(key=seeded_key(key))
    settings = {
        "sample_rate": 0.3,
        "steps": 12,
        "noise_multiplier": 1.0,
        "max_grad_norm": 0.5,
        "population": 50,
    } | options
    parts = engine.make_private(
        module=module,
        optimizer=optimizer or torch.optim.SGD(module.parameters(), 0.5),
        criterion=nn.CrossEntropyLoss(),
        data_loader=data() if records is None else records,
        **settings,
    )
    return engine, parts


def weights_of(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def loop(parts):
    module, optimizer, criterion, batches = parts
    for x, y in batches:
        optimizer.zero_grad()
        loss = criterion(module(x), y)
        loss.backward()
        optimizer.step()
