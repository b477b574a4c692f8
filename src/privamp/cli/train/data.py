"""Training files: pictures and texts from .npz, tables from .csv. No message shows an entry of the file."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENDINGS = (".npz", ".csv", ".csv.gz", ".parquet")
_PICTURES, _TEXTS = ("X_train", "y_train"), ("tokens_train", "offsets_train", "y_train")
_PART = "split"
_NO_CLASS = _NO_WORD = -1  # invalid labels and words count as nothing in training: an error would leak information


@dataclass(frozen=True, slots=True)
class Part:
    """Records of a network's input shape, and their class from 0."""

    x: "NDArray[Any]"
    y: "NDArray[Any]"


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The training records and the held-out ones, if any. `words` is the vocabulary of texts."""

    training: Part
    held_out: Part | None
    classes: int
    words: int | None = None


def load(path: Path, label: str | None, classes: str | None, vocabulary: int) -> TrainingData:
    """The file as arrays; classes are declared, never taken from the data."""
    if path.name.lower().endswith(".npz"):
        return _of_arrays(path, classes, vocabulary)
    return _of_table(path, label, classes)


def _of_arrays(path: Path, classes: str | None, vocabulary: int) -> TrainingData:
    from ...errors import InvalidInput
    from ...torch import encoding
    from ..tables import arrays

    names = _array_names(path)
    is_text = "tokens_train" in names
    wanted = _TEXTS if is_text else _PICTURES
    missing = [name for name in wanted if name not in names]
    if missing:
        raise InvalidInput(
            f"{path.name!r} has no array {missing[0]!r}; give X_train, y_train (and X_test, y_test to hold out), or "
            "tokens_train, offsets_train, y_train for texts"
        )
    tests = [name.replace("train", "test") for name in wanted]
    has_test = all(name in names for name in tests)
    found = arrays(path, [*wanted, *(tests if has_test else ())])
    count = _count(classes, 2 if is_text else 10)

    def part(kind: str) -> Part:
        y = found[f"y_{kind}"]
        x: NDArray[Any]
        if is_text:
            x = encoding.sequences(*_texts(found[f"tokens_{kind}"], found[f"offsets_{kind}"], vocabulary))
        else:
            x = encoding.pictures(found[f"X_{kind}"])
        return _checked(x, y, count, kind)

    held_out = _if_any(part("test")) if has_test else None
    return TrainingData(part("train"), held_out, count, vocabulary if is_text else None)


def _array_names(path: Path) -> list[str]:
    import zipfile

    from ...errors import InvalidInput
    from ..tables import check_file

    check_file(path)
    try:
        with zipfile.ZipFile(path) as file:
            return [name.removesuffix(".npy") for name in file.namelist()]
    except (OSError, zipfile.BadZipFile):
        raise InvalidInput(f"{str(path)!r} cannot be read as .npz arrays of numbers; check the file") from None


def _texts(tokens: "NDArray[Any]", offsets: "NDArray[Any]", vocabulary: int) -> "tuple[NDArray[Any], NDArray[Any]]":
    import numpy as np

    from ...errors import InvalidInput

    are_whole = tokens.dtype.kind in "iu" and offsets.dtype.kind in "iu" and tokens.ndim == offsets.ndim == 1
    if not are_whole or offsets.size < 2 or np.any(np.diff(offsets.astype(np.int64)) < 0) or offsets[0] < 0:
        raise InvalidInput(
            "texts must be one array of whole numbers, with increasing offsets where each text begins; check both "
            "arrays"
        )
    if offsets[-1] > tokens.size:
        raise InvalidInput("offsets must lie within the array of texts; check both arrays")
    is_word = (tokens >= 0) & (tokens < vocabulary)
    return np.where(is_word, tokens.astype(np.int64), _NO_WORD), offsets


def _checked(x: "NDArray[Any]", y: "NDArray[Any]", classes: int, kind: str) -> Part:
    import numpy as np

    from ...errors import InvalidInput

    if y.ndim != 1 or len(x) != y.size or x.ndim < 2 or y.dtype.kind not in "iufb":
        raise InvalidInput(
            f"the {kind} part must have one number as the label of each record, and records of several numbers"
        )
    with np.errstate(invalid="ignore"):
        is_class = (y >= 0) & (y < classes) & (y == np.floor(y))
    labels = np.where(is_class, np.where(is_class, y, 0).astype(np.int64), _NO_CLASS)
    if kind == "test":  # not private: records without a class or with missing entries are left out
        usable = is_class & (np.isfinite(x).all(axis=tuple(range(1, x.ndim))) if x.dtype.kind == "f" else True)
        return Part(x[usable], labels[usable])
    return Part(x, labels)


def _count(classes: str | None, usual: int) -> int:
    from ...errors import InvalidInput

    if classes is None:
        return usual
    if not classes.isdecimal() or not 2 <= int(classes) <= 10**5:
        raise InvalidInput(f"--classes must be a whole number from 2 for this file, got {classes!r} instead")
    return int(classes)


def _of_table(path: Path, label: str | None, classes: str | None) -> TrainingData:
    import numpy as np

    from ...errors import InvalidInput
    from ...torch import encoding
    from ..tables import read, words

    if label is None or classes is None:
        raise InvalidInput("a table needs --label COLUMN and --classes with the names of its classes, such as 'no,yes'")
    named = [name.strip() for name in classes.split(",")]
    if len(named) < 2 or len(set(named)) < len(named) or "" in named:
        raise InvalidInput(f"--classes must be different names such as no,yes, got {classes!r} instead")
    table = read(path, [("label", label)], whole=True)
    columns = {name: words(table[name], name) for name in table.column_names}
    answers, parts = columns.pop(label), columns.pop(_PART, None)
    if not columns:
        raise InvalidInput(f"{path.name!r} has no column besides the label; check the file")
    y = np.full(answers.size, _NO_CLASS)
    for at, name in enumerate(named):
        y[answers == name] = at
    kinds = np.full(answers.size, "train") if parts is None else parts  # a record with neither is left out

    def part(kind: str) -> Part:
        rows = kinds == kind
        return _checked(encoding.table({n: c[rows].tolist() for n, c in columns.items()}), y[rows], len(named), kind)

    held_out = None if parts is None else _if_any(part("test"))
    return TrainingData(part("train"), held_out, len(named))


def _if_any(part: Part) -> Part | None:
    return part if part.y.size else None
