"""Keys from the operating system, a cryptographic stream, no shared noise, and seeds only where they are marked."""

import ast
import os
import secrets
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import privamp
from privamp import Gaussian, Key, Laplace, Poisson, PureFilter, WithoutReplacement, compose
from privamp.chance.keys import derive
from privamp.chance.stream import Stream
from privamp.testing import seeded_key

PACKAGE = Path(privamp.__file__).parent
PEOPLE = 30
ONES = np.ones(PEOPLE)
THREE = np.zeros((PEOPLE, 3))
JOBS = ("sums", "kmeans", "survey", "bootstrap", "sgd", "torch", "spark")
DRAWING_ROOMS = ("chance", "core", "mechanisms", "designs", "accounting", *JOBS)
HOW = ("nothing", "one", "many", "plan", "limit", "run")
# Files that may name a seed, each with its reason.
EXCUSED = {
    "accounting/budget_file.py": "how long to wait for another program's turn",
    "torch/made_up.py": "made-up records, which hold no record's value",
    "torch/records.py": "seeds derived from the key, for reading records the same way after a crash",
    "torch/seeding.py": "sets a data set's generators from the key, for reading records the same way",
    "chance/seeds.py": "the seeds of privamp.testing themselves, marked there",
    "kmeans/estimator.py": "random_state is refused outside privamp.testing.seeds_allowed()",
    "kmeans/starts.py": "starting centres are public points that do not depend on the data",
}
SEEDED = {"seed", "seeds", "rng", "random_state", "generator"}


def test_keys_and_noise_start_from_the_operating_system(monkeypatch):
    asked = []

    def from_system(size):
        asked.append(size)
        return os.urandom(size)

    monkeypatch.setattr(secrets, "token_bytes", from_system)
    Key.generate()
    Stream.from_os()
    sample = Poisson(0.5).draw(PEOPLE)
    assert asked == [32, 32, 32]
    sample.release(Laplace(1.0), ONES)
    sample.release(Laplace(1.0), ONES)
    assert asked == [32] * 5  # noise does not come from the key that drew the sample


def test_the_stream_is_aes_256_in_counter_mode():
    key = Key.from_bytes(bytes(range(32)))
    secret = derive(key, b"stream")
    assert len(secret) == 32
    cipher = Cipher(algorithms.AES(secret), modes.CTR(bytes(16))).encryptor()
    expected = np.frombuffer(cipher.update(bytes(8 * 5000)), "<u8")
    assert np.array_equal(Stream(key).words(5000), expected)


def in_child(work):
    """Fork; what work() -> bytes returns in the child, read from a pipe."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork with threads, meant here
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(theirs, work())
            code = 0
        finally:
            os._exit(code)
    os.close(theirs)
    return child, ours


def collect(child, ours):
    with os.fdopen(ours, "rb") as pipe:
        data = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return np.frombuffer(data, np.float64).tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_children_never_share_released_noise():
    key, stream = Key.generate(), Stream.from_os()

    def noises(stream_for):
        def work():
            sample = Poisson(0.0).draw(PEOPLE, key)  # an empty sample: the answer is the noise
            answers = [sample.release(Gaussian(1.0), ONES) for _ in range(3)]
            answers += [float(Gaussian(1.0).release(0.0, stream_for())) for _ in range(3)]
            return np.asarray(answers).tobytes()

        return [x for child in [in_child(work) for _ in range(4)] for x in collect(*child)]

    seen = noises(lambda: stream)  # one stream, inherited by all
    assert len(set(seen)) == len(seen) == 24
    shared = noises(lambda: Stream(key.subkey("noise")))  # the broken twin: noise from a key that all of them have
    assert len(set(shared)) < len(shared)


def test_threads_never_share_released_noise():
    stream, noise = Stream.from_os(), []

    def work():
        for _ in range(50):
            noise.append(tuple(Gaussian(1.0).release(np.zeros(3), stream)))  # one number may come twice by chance
            noise.append(tuple(Poisson(0.0).draw(PEOPLE).release(Gaussian(1.0), THREE)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(noise)) == len(noise) == 400


@pytest.mark.parametrize("design", [Poisson(0.1), WithoutReplacement(3, PEOPLE)], ids=str)
@pytest.mark.parametrize("how", HOW)
def test_every_guarantee_made_under_a_seed_says_so(design, how):
    sample = design.draw(PEOPLE, seeded_key(11), round=HOW.index(how))
    match how:
        case "one":
            sample.release(Laplace(2.0), ONES)
        case "many":
            for _ in range(3):
                sample.release(Laplace(2.0), ONES)
        case "plan":
            sample.declare([Laplace(2.0)] * 2)
        case "limit":
            sample.limit(PureFilter(1.0))
        case "run":
            sample.run(Laplace(2.0), lambda drawn, stream: None)
    guarantee = sample.guarantee()
    for marked in (guarantee, guarantee.at(0), compose(guarantee.fresh(), 3)):
        assert not marked.is_private
        assert "NOT PRIVATE" in repr(marked)
        assert marked.to_json()["private"] is False
    assert design.draw(PEOPLE, Key.generate()).guarantee().is_private


def drawing_files():
    return [path for room in DRAWING_ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]


def seeds_in(source):
    """Parameters that take a seed, and imports of generators that are not ours."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            arguments = node.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if argument.arg in SEEDED:
                    yield argument.arg
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in ("random", "numpy.random"))
        elif isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random"):
            yield node.module
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("np.random", "numpy.random"):
            yield "numpy.random"


def test_no_room_that_draws_takes_a_seed_or_another_generator():
    found = {str(path.relative_to(PACKAGE)): list(seeds_in(path.read_text("utf-8"))) for path in drawing_files()}
    assert len(found) > 50
    assert {name: what for name, what in found.items() if what and name not in EXCUSED} == {}


@pytest.mark.parametrize(
    "source", ["def f(x, *, seed=1): ...", "import random", "from numpy.random import default_rng", "np.random.rand()"]
)
def test_a_seed_is_found(source):
    assert list(seeds_in(source))
