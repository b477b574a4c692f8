"""What counts as a neighbouring data set: the relation every guarantee carries.

`ADD_REMOVE`: one data set has one record more. `REPLACE_ONE`: equal sizes, one record differs.
A mechanism that is epsilon-DP under add/remove is 2 epsilon-DP under replace-one, no better in general.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from ..errors import InvalidInput
from ..validation import one_of, whole

Kind = Literal["add-remove", "replace-one"]


@dataclass(frozen=True, slots=True)
class Neighbors:
    """A relation between data sets.

    `kind` is "add-remove" (one record more) or "replace-one" (one record is another, the number is public). `unit` is
    what a data set differs by: a "record", or a "person" with up to `records` of them. `scope` says where a replaced
    record may move: "anywhere", or only "within stratum" or "within cluster", which protects the value but not the
    place. `Neighbors.ADD_REMOVE` and `Neighbors.REPLACE_ONE` are ready-made.

    >>> str(Neighbors.ADD_REMOVE.for_person(3))
    'add-remove (a person with up to 3 records)'
    """

    kind: Kind
    unit: Literal["record", "person"] = "record"
    records: int = 1  # records one person may have; 1 for unit="record"
    scope: str = "anywhere"  # where a replaced record may move: "anywhere", "within stratum", "within cluster"

    ADD_REMOVE: ClassVar["Neighbors"]
    REPLACE_ONE: ClassVar["Neighbors"]

    def __post_init__(self) -> None:
        one_of(("add-remove", "replace-one"), neighbors=self.kind)
        one_of(("record", "person"), unit=self.unit)
        one_of(("anywhere", "within stratum", "within cluster"), scope=self.scope)
        whole(1, 1 if self.unit == "record" else None, records=self.records)
        if self.scope != "anywhere" and self.kind != "replace-one":
            raise InvalidInput(
                f"a scope says where a replaced record may move, so it belongs to replace-one, got {self.scope!r} with "
                f"{self.kind} instead; omit it"
            )

    @classmethod
    def parse(cls, text: str) -> "Neighbors":
        """'add-remove' or 'replace-one'."""
        one_of(("add-remove", "replace-one"), neighbors=text)
        return cls.ADD_REMOVE if text == "add-remove" else cls.REPLACE_ONE

    def for_person(self, records: int) -> "Neighbors":
        """The same relation for a person who may have up to `records` records."""
        whole(1, records_per_person=records)
        return replace(self, unit="person", records=records) if records > 1 else self

    @property
    def per_record(self) -> "Neighbors":
        """The relation for a single record."""
        return replace(self, unit="record", records=1)

    def __str__(self) -> str:
        scope = "" if self.scope == "anywhere" else f" {self.scope}"
        person = f" (a person with up to {self.records} records)" if self.unit == "person" else ""
        return f"{self.kind}{scope}{person}"


def check_relation(neighbors: object) -> None:
    """Raise unless this is a `Neighbors`, not its name."""
    if not isinstance(neighbors, Neighbors):
        raise InvalidInput(
            f"neighbors must be Neighbors.ADD_REMOVE or Neighbors.REPLACE_ONE, got {neighbors!r} instead"
        )


Neighbors.ADD_REMOVE = Neighbors("add-remove")
Neighbors.REPLACE_ONE = Neighbors("replace-one")
