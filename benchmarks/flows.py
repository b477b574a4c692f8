"""How many files and lines of privamp a call walks through, from the call to its answer, in one or more checkouts.

    python benchmarks/flows.py                                        this checkout
    python benchmarks/flows.py --source ../before --source .          several, side by side, and their ratio
    python benchmarks/flows.py --show "private sum"                   which files, and which functions of each

Every flow is run once untraced, with other numbers, so that modules are loaded and caches are warm, and once under
`sys.settrace`. Counted are the files of privamp in which a function is entered (`own`: those of the job and of the
command, outside the rooms of the nouns), the distinct lines that are executed, and the lines of the functions entered
(what somebody has to read who follows the call). Code of modules and of class bodies, which runs when they are
imported, does not count; nor do numpy, scipy, torch and the rest.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from importlib.util import find_spec
from inspect import signature
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

NOUNS = {  # rooms that every flow walks through: the nouns, and what they stand on
    "numerics", "chance", "core", "mechanisms", "designs", "schedules", "rules", "accounting", "tables",
    "amplification.py", "calibration.py", "validation.py", "spec.py", "errors.py",
}  # fmt: skip
FUNCTION = 0x2  # CO_NEWLOCALS: functions have it, modules and class bodies do not

Flow = Callable[[int], Any]  # called with 0 to warm up and with 1 to be traced


def lines_of(code: CodeType) -> set[int]:
    """The lines of a function, those of functions inside it, too."""
    found = {line for _, _, line in code.co_lines() if line}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            found |= lines_of(part)
    return set(range(code.co_firstlineno, max(found, default=code.co_firstlineno) + 1))


class Walk:
    """What is entered and executed below a folder while it is open."""

    def __init__(self, folder: Path) -> None:
        self.folder = f"{folder}/"
        self.executed: dict[str, set[int]] = defaultdict(set)
        self.entered: dict[str, dict[str, set[int]]] = defaultdict(dict)

    def __enter__(self) -> "Walk":
        threading.settrace(self._called)
        sys.settrace(self._called)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self.folder) or not code.co_flags & FUNCTION:
            return None
        file = code.co_filename[len(self.folder) :]
        self.entered[file].setdefault(code.co_qualname, lines_of(code))
        return self._executed

    def _executed(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self.executed[frame.f_code.co_filename[len(self.folder) :]].add(frame.f_lineno)
        return self._executed

    def counts(self) -> dict[str, Any]:
        read = sum(len(set().union(*functions.values())) for functions in self.entered.values())
        return {
            "files": len(self.entered),
            "own": sum(Path(file).parts[0] not in NOUNS for file in self.entered),
            "executed": sum(map(len, self.executed.values())),
            "read": read,
            "by_file": {file: sorted(functions) for file, functions in sorted(self.entered.items())},
        }


def private_sum(_: Path) -> Flow:
    import numpy as np

    from privamp import PrivateSum

    x = np.linspace(0, 1, 60).reshape(30, 2)
    name = "bounds" if "bounds" in signature(PrivateSum).parameters else "radius"  # as it was called before
    return lambda turn: PrivateSum(**{name: 1.0}, epsilon=0.5 + turn / 4).release(x)


def k_means(_: Path) -> Flow:
    import numpy as np

    from privamp import PrivateKMeans

    x = np.random.default_rng(0).normal(size=(500, 3))
    return lambda turn: PrivateKMeans(3, epsilon=1.0 + turn / 4, radius=4.0, n_iter=2, n_jobs=1).fit(x)


def survey_estimate(folder: Path) -> Flow:
    from typer.testing import CliRunner

    from privamp.cli.application import app

    file = folder / "people.csv"
    file.write_text("stratum,income\n" + "".join(f"{'ab'[i % 2]},{i / 200}\n" for i in range(200)))
    is_old = find_spec("privamp.cli.survey_estimate") is not None  # the file was an option before
    given = ["--population", str(file)] if is_old else [str(file)]
    asked = ["survey", "estimate", *given, "--strata", "stratum", "--size", "40"]
    asked += ["--value", "income", "--bounds", "0:1", "--epsilon"]

    def run(turn: int) -> None:
        done = CliRunner().invoke(app, [*asked, str(1 + turn / 4)])
        if done.exit_code:
            raise RuntimeError(done.output)

    return run


def guarantee(_: Path) -> Flow:
    from privamp import Gaussian, Poisson, amplify, compose

    return lambda turn: compose(amplify(Gaussian(2.0 + turn), Poisson(0.01)), 100).epsilon(1e-6)


def torch_step(_: Path) -> Flow:
    import torch
    from torch import nn
    from torch.utils.data import TensorDataset

    from privamp import Key
    from privamp.torch import PrivacyEngine

    torch.manual_seed(0)
    x, y = torch.randn(200, 5), torch.randint(0, 2, (200,))

    module, made = nn.Linear(5, 2), PrivacyEngine(key=Key.generate())
    known = signature(made.make_private).parameters
    made.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), 0.1), criterion=nn.CrossEntropyLoss(),
        data_loader=TensorDataset(x, y), sample_rate=0.2, steps=10, noise_multiplier=1.0, max_grad_norm=1.0,
        **{"population" if "population" in known else "public_size": 200},  # as it was called before
    )  # fmt: skip
    return lambda turn: made._one_step(made._run)


FLOWS: dict[str, Callable[[Path], Flow]] = {
    "private sum": private_sum,
    "k-means": k_means,
    "survey estimate": survey_estimate,
    "amplify, compose": guarantee,
    "torch step": torch_step,
}


def walked(source: Path, name: str) -> dict[str, Any] | None:
    """The counts of one flow in this process; None where a library is missing."""
    package = source / "src" / "privamp"
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        try:
            flow = FLOWS[name](Path(folder))
        except ImportError:
            return None
        flow(0)
        with Walk(package) as walk:
            flow(1)
    return walk.counts()


def report(source: Path, python: str) -> dict[str, dict[str, Any]]:
    """Every flow in a fresh interpreter that has this checkout first on its path."""
    found = {}
    for name in FLOWS:
        command = [python, __file__, "--one", name, "--source", str(source)]
        environment = {"PYTHONPATH": str(source / "src"), "PATH": "/usr/bin:/bin", "HOME": tempfile.gettempdir()}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            raise SystemExit(f"{name} in {source} failed:\n{done.stderr[-2000:]}")
        answer = json.loads(done.stdout)
        if answer is not None:
            found[name] = answer
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("--source", type=Path, action="append", help="a checkout; this one by default")
    parser.add_argument("--python", default=sys.executable, help="the interpreter")
    parser.add_argument("--show", choices=FLOWS, help="print the files and functions of one flow")
    parser.add_argument("--one", choices=FLOWS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sources = [path.resolve() for path in asked.source or [here]]
    if asked.one:
        print(json.dumps(walked(sources[0], asked.one)))
        return
    reports = [report(source, asked.python) for source in sources]
    print(f"{'flow':18s}{'':10s}" + "".join(f"{source.name[-14:]:>16s}" for source in sources))
    for name in FLOWS:
        for what in ("files", "own", "executed", "read"):
            with suppress(KeyError):
                row = [found[name][what] for found in reports]
                ratio = f"{row[-1] / row[0]:10.2f}" if len(row) > 1 and row[0] else ""
                print(f"{name if what == 'files' else '':18s}{what:10s}" + "".join(f"{n:16d}" for n in row) + ratio)
    if asked.show:
        for source, found in zip(sources, reports, strict=True):
            print(f"\n{asked.show} in {source.name}")
            for file, functions in found[asked.show]["by_file"].items():
                print(f"  {file}: {', '.join(functions)}")


if __name__ == "__main__":
    main()
