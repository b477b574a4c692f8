"""What docs/torch.md says about training on a GPU, in about three minutes of an H200.

    python benchmarks/on_gpu.py [--out FOLDER] [--part NAME ...] [--tiny]

Parts run one after the other, the most important first, each stopped after its own time; what they print goes to FOLDER
as well, and the lines to report come last. PRIVAMP_SHARED is the folder with `data/mnist.npz`. `--tiny` tries
everything on a CPU, with sizes that mean nothing.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SMALL = ("torch_step.py", "--models", "mlp", "cnn", "--only", "importance", "uniform", "plain", "opacus")
LARGE = ("torch_step.py", "--models", "vit-small", "encoder-128", "--only", "uniform", "plain")
TOP = ("--longest", "24")
FEW = ("torch_step.py", "--models", "vit", "encoder", *LARGE[4:])
WIDE = ("equal_accuracy.py", "--model", "wide-cnn", "--learning-rate", "0.4")
MANY = ("--records", "60000", "--batch", "4096")
Parts = dict[str, tuple[int, tuple[str, ...]]]
PARTS: Parts = {  # seconds at most, and the command
    "small": (60, (*SMALL, "--batch", "256", "2048", "--repeats", "40")),
    "large, bf16": (60, (*LARGE, "--batch", "4096", "--precision", "bf16", "--repeats", "8", *TOP)),
    "accuracy": (90, (*WIDE, "--device", "cuda", *MANY, "--epochs", "20", "--seeds", "3", "--times", "1", "1.1")),
    "noise": (25, ("training_noise.py", "--device", "cuda")),
    "large, float32": (45, (*LARGE[:2], "vit-small", *LARGE[4:], "--batch", "4096", "--repeats", "3")),
}  # fmt: skip
TINY: Parts = {
    "small": (60, (*SMALL, "--batch", "16", "32", "--repeats", "3")),
    "large, bf16": (90, (*FEW, "--batch", "2", "--precision", "bf16", "--repeats", "1", *TOP)),
    "accuracy": (120, ("equal_accuracy.py", "--records", "400", "--batch", "40", "--epochs", "2", "--seeds", "2")),
    "noise": (60, ("training_noise.py", "--count", "10000", "--rounds", "1")),
    "large, float32": (60, (*FEW, "--batch", "2", "--repeats", "1")),
}
TOLD = (" against ", "|", "ns a ", "makes its own", "does not fit", "Error")


def ran(name: str, limit: int, command: tuple[str, ...], folder: Path) -> list[str]:
    """The lines to report of one part."""
    log, began = folder / f"{name.replace(', ', '-')}.log", time.perf_counter()
    paths = [str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
    around = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    words = [sys.executable, str(HERE / command[0]), *command[1:]]
    with log.open("w", encoding="utf-8") as file:
        try:
            end = subprocess.run(words, stdout=file, stderr=subprocess.STDOUT, env=around, timeout=limit).returncode
        except subprocess.TimeoutExpired:
            end = -1
    text = log.read_text(encoding="utf-8", errors="replace")
    taken = time.perf_counter() - began
    print(f"\n== {name}: {taken:.0f} s, {'stopped' if end < 0 else f'exit {end}'}\n{text[-3000:]}", flush=True)
    return [
        f"-- {name} ({taken:.0f} s, exit {end})",
        *(line for line in text.splitlines() if any(w in line for w in TOLD)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "out")))
    parser.add_argument("--part", nargs="*", choices=list(PARTS))
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    parts = TINY if options.tiny else PARTS
    told = [line for name in options.part or parts for line in ran(name, *parts[name], options.out)]
    print("\n".join(["", "== to report", *told]))


if __name__ == "__main__":
    main()
