"""Per-record gradients of layer normalisations by one kernel: those of torch, in Triton's interpreter and compiled."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

INTERPRETED = """
import torch
from privamp.torch import normalised
assert normalised.agrees(torch.device("cpu"))
torch.manual_seed(1)
for records, places, width in ((3, 1, 7), (2, 9, 16), (2, 17, 40)):
    for dtype in (torch.float32, torch.bfloat16):
        x, back = (torch.randn(records, places, width).to(dtype) for _ in range(2))
        gains, biases = normalised.made(3.0 * x + 1.0, back, 1e-5)
        unit = torch.nn.functional.layer_norm((3.0 * x + 1.0).double(), (width,), None, None, 1e-5)
        assert torch.allclose(gains.double(), (unit * back.double()).sum(dim=1), rtol=1e-4, atol=1e-4)
        assert torch.allclose(biases.double(), back.double().sum(dim=1), rtol=1e-4, atol=1e-4)
from privamp.torch import norm_kernels  # a kernel that leaves something out is noticed
right = norm_kernels.fill
norm_kernels.fill = lambda x, back, found, eps: right(x[:, :-1].contiguous(), back[:, :-1].contiguous(), found, eps)
assert not normalised.agrees(torch.device("cpu"))
"""

COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from privamp.torch import norm_kernels as kernels

for kind in ("*fp32", "*bf16"):
    signature = {"x": "*fp32", "back": kind, "found": "*fp32", "places": "i32", "width": "i32",
                 "eps": "fp32", "columns": "constexpr", "together": "constexpr"}
    source = ASTSource(kernels._SUMS, signature, {"columns": 512, "together": 8})
    assert triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"]
"""


@pytest.mark.parametrize("script", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
def test_the_kernel_gives_what_torch_gives(script, monkeypatch):
    pytest.importorskip("triton", reason="Triton is not installed (it comes with torch for CUDA)")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    if script is INTERPRETED:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_layer_takes_its_gradients_from_the_kernel(monkeypatch):
    from privamp.torch import layers

    torch.manual_seed(2)
    layer, x, back = torch.nn.LayerNorm(6), torch.randn(4, 3, 6), torch.randn(4, 3, 6)
    usual = layers._normalised(layer, x, back)
    given = torch.ones(4, 6), torch.zeros(4, 6)
    monkeypatch.setattr(layers, "by_one_kernel", lambda *_: given)
    found = layers._normalised(layer, x, back)
    assert [part.parameter is other.parameter for part, other in zip(found, usual, strict=True)] == [True, True]
    assert [part.use.values for part in found] == list(given)
    layer.bias.requires_grad_(False)
    alone = layers._normalised(layer, x, back)
    assert len(alone) == 1
    assert torch.equal(alone[0].use.values, usual[0].use.values)


def test_the_kernel_is_for_gpus_alone():
    from privamp.torch import normalised

    x = torch.randn(2, 3, 4)
    assert normalised.by_one_kernel(torch.nn.LayerNorm(4), x, x) is None
