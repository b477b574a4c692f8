"""`privamp survey estimate --answers`: the interviews of a sample that `survey draw` drew."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..tables import read, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...core.sample import Sample
    from .population import Records
    from .surveys import Survey

KNOWN = (
    "who was drawn stays secret from whoever reads the answer; interviewers and the people drawn know it, and against "
    "them the guarantee is that of the noise alone, without sampling"
)
RULES = (
    "answers count by a public rule for each person: several that agree once, several that differ as none, those of "
    "people who were not drawn or are not in the frame not at all"
)


@dataclass(frozen=True)
class Interviews:
    """A sample that is drawn again, and the answers to its interviews."""

    survey: "Survey"
    records: "Records"
    sample: "Sample"
    answers: Any  # a pyarrow table
    name: str

    def column(self, name: str, option: str) -> "NDArray[Any]":
        """A column as text, one entry per record of the frame: from the interviews if they have it, else from the
        frame."""
        from ...errors import InvalidInput
        from ...survey.answers import labels

        if name in self.answers.column_names:
            return labels(self._ids(), self._who(), words(self.answers[name], name).tolist())  # type: ignore[no-any-return]
        if name not in self.records.table.column_names:
            raise InvalidInput(f"neither {self.name!r} nor the frame has a column {name!r} (--{option})")
        return words(self.records.table[name], name)

    def public(self, name: str, option: str) -> "NDArray[Any]":
        """A column of the frame."""
        from ...errors import InvalidInput

        if name not in self.records.table.column_names:
            raise InvalidInput(f"the frame {self.records.name!r} has no column {name!r} (--{option})")
        return words(self.records.table[name], name)

    def numbers(self, name: str, option: str) -> "NDArray[Any]":
        """The answers to one question, one number per record of the frame, nan where there is none."""
        from ...survey import answers
        from ..tables import numbers

        if name not in self.answers.column_names:
            from ...errors import InvalidInput

            raise InvalidInput(f"{self.name!r} has no column {name!r} (--{option})")
        return answers(self._ids(), self._who(), numbers(self.answers[name], name)[0])

    def _ids(self) -> list[str]:
        return words(self.records.table[self.survey.id or ""], self.survey.id or "").tolist()  # type: ignore[no-any-return]

    def _who(self) -> list[str]:
        return words(self.answers[self.survey.id or ""], self.survey.id or "").tolist()  # type: ignore[no-any-return]


def interviews_of(frame: Path, answers: Path, key_file: Path | None, label: str | None) -> Interviews:
    """Draw the survey again with its key, from the same frame, and read the answers."""
    from ...errors import InvalidInput
    from .files import key_from
    from .population import read_records
    from .surveys import frame_digest, recalled

    if key_file is None:
        raise InvalidInput("--answers needs --key-file FILE, the key with which survey draw drew the sample")
    survey = recalled(key_file, label)
    if survey.id is None:
        raise InvalidInput(
            "the survey was drawn without --id, so no answer can be matched to a person; draw it with --id"
        )
    key, is_fresh = key_from(key_file)
    if is_fresh:
        raise InvalidInput(f"there is no key file {str(key_file)!r}; give the file that survey draw wrote")
    records = read_records(
        frame, drop_missing=survey.drop_missing, whole=True, strata=survey.strata, cluster=survey.cluster, id=survey.id
    )
    if frame_digest(records, key) != survey.frame:
        raise InvalidInput(
            f"{frame.name!r} is not the frame that the survey was drawn from: ids, strata and clusters must be the same"
        )
    chosen = survey.design(records)
    sample = chosen.draw(records.population(chosen, survey.label), key)
    found = read(answers, [("id", survey.id)], whole=True)
    return Interviews(survey, records, sample, found, answers.name)


def epsilon_if_known(sample: "Sample", relation: Any, delta: float) -> float | None:
    """Epsilon of everything released from the sample, against those who know who is in it."""
    from ...accounting.joint import Joint
    from ...errors import NoTheorem

    try:
        return float(Joint(sample.ledger.entries).profile(relation).epsilon(delta))
    except NoTheorem:
        return None
