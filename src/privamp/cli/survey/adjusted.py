"""`privamp survey estimate` with answers, classes, margins or a ratio: estimates adjusted for nonresponse."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..console import degrading, waiting
from ..options import opened_budget, read_pair
from ..released import ReleaseOutput, check_page
from .filed import SUMMARY, effects_of, facts_of, tables_of
from .interviews import KNOWN, RULES, Interviews, epsilon_if_known, interviews_of
from .options import noise_of, read_groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...core.design import Design
    from ...core.release import Release
    from ...core.sample import Sample
    from .population import Records

_OPTIONS = {
    "class_sizes=": "--classes COLUMN=NAMES", "classes=": "--classes", "margins=": "--margin",
    "bounds must name every stratum": "--bounds must be one pair for all, or one per question, or name every stratum",
}  # fmt: skip


@dataclass(frozen=True)
class Fresh:
    """A fresh sample of a file that holds everybody's values."""

    records: "Records"
    sample: "Sample"

    def column(self, name: str, option: str) -> "NDArray[Any]":
        """A column as text."""
        from ..tables import words

        self._check(name, option)
        return words(self.records.table[name], name)

    public = column

    def numbers(self, name: str, option: str) -> "NDArray[Any]":
        """A column as numbers, nan where there is none."""
        from ..tables import numbers

        self._check(name, option)
        return numbers(self.records.table[name], name)[0]

    def _check(self, name: str, option: str) -> None:
        from ...errors import InvalidInput

        if name not in self.records.table.column_names:
            raise InvalidInput(f"{self.records.name!r} has no column {name!r} (--{option})")


@dataclass(frozen=True)
class Adjusted:
    """The options of an adjusted estimate, as on the command line."""

    source: Path
    values: tuple[str, ...]
    statistic: str
    bounds: str | None
    epsilon: float
    delta: float
    by: str | None
    groups: str | None
    classes: str | None
    margins: tuple[str, ...]
    over: str | None
    over_bounds: str | None
    design_effect: bool = False

    def tell(
        self, chosen_by: dict[str, Any], field: tuple[Path | None, Path | None, str | None], drawing: tuple[Any, ...],
        paying: tuple[Path | None, str | None], report: Path | None, json: bool,
    ) -> None:  # fmt: skip
        """Draw, release and print."""
        from ...errors import InvalidInput
        from ...survey import adjust

        self._check(field, chosen_by, paying[0])
        check_page(report)
        budget = opened_budget(*paying)
        with degrading(), waiting("drawing and releasing", quiet=json):
            found = interviews_of(self.source, *field) if field[0] else self._fresh(chosen_by, drawing)  # type: ignore[arg-type]
            options = self._options(found)
            try:
                values = {name: found.numbers(name, "value") for name in self.values}
                released = adjust(found.sample, values, self.statistic, budget=budget, **options)
            except InvalidInput as error:
                raise InvalidInput(_in_words(str(error))) from None
            each = self._named(released)
        with degrading():
            self._told(found, each).tell(json=json, report=report)

    def _named(self, released: dict[str, Any]) -> "dict[str, Release]":
        """Questions, domains or both, by name."""
        if len(released) == 1:
            (one,) = released.values()
            return one if isinstance(one, dict) else {"": one}
        if self.by is None:
            return released
        return {f"{name}, {group}": one for name, groups in released.items() for group, one in groups.items()}

    def _check(self, field: tuple[Any, ...], chosen_by: dict[str, Any], budget: Path | None) -> None:
        from ...errors import InvalidInput

        answers, key_file, label = field
        if answers is None and (key_file is not None or label is not None):
            raise InvalidInput("--key-file and --label need --answers FILE, the interviews of a drawn sample")
        if answers is not None:
            given = [option for option, text in chosen_by.items() if text is not None]
            if given:
                raise InvalidInput(f"{given[0]} is known from the draw (--key-file); omit it")
            if budget is None:
                raise InvalidInput(
                    "--answers needs --budget FILE (privamp budget create): the sample was drawn before, and only a "
                    "budget knows what else was released from it"
                )
        if (self.statistic == "ratio") != (self.over is not None) or (self.over is None) != (self.over_bounds is None):
            raise InvalidInput("--statistic ratio, --over COLUMN and --over-bounds LOW:HIGH must be given together")
        if (self.by is None) != (self.groups is None):
            raise InvalidInput("--by COLUMN needs --groups A,B here, the public list of groups")
        self._bounds()

    def _bounds(self) -> dict[str, Any]:
        """One pair for all questions, or one per question, income=0:100,hours=0:80, or one per stratum."""
        text = self.bounds or "0:1"
        if "=" not in text:
            return dict.fromkeys(self.values, read_pair(text))
        pairs = {name.strip(): end for name, _, end in (item.rpartition("=") for item in text.split(","))}
        if set(pairs) != set(self.values):
            strata = {name: read_pair(end) for name, end in pairs.items()}
            return {name: dict(strata) for name in self.values}
        return {name: read_pair(pairs[name]) for name in self.values}

    def _fresh(self, chosen_by: dict[str, Any], drawing: tuple[Any, ...]) -> Fresh:
        from .design import check_columns, choose
        from .population import read_records

        method, sd, drop_missing, probability = drawing
        spec, size, strata, cluster, id = chosen_by.values()
        records = read_records(
            self.source, drop_missing=drop_missing, whole=True, may_be_empty=spec is not None, strata=strata, id=id,
            cluster=cluster, probability=probability,
        )  # fmt: skip
        chosen = choose(records, spec, size, method, _widest(self._bounds()), sd, self.epsilon, self.delta)
        check_columns(chosen, records)
        return Fresh(records, chosen.draw(records.population(chosen)))

    def _options(self, found: Interviews | Fresh) -> dict[str, Any]:
        options: dict[str, Any] = {
            "bounds": self._bounds(), "epsilon": self.epsilon, "delta": self.delta,
            "noise": noise_of(self.delta), "design_effect": self.design_effect,
        }  # fmt: skip
        if self.classes:
            name, _, listed = self.classes.partition("=")
            options["classes"] = found.public(name, "classes")
            options["class_sizes"] = read_groups(listed.replace(":", "=")) if listed else None
        if self.margins:
            options["margins"] = dict(self._margin(text, found) for text in self.margins)
        if self.over and self.over_bounds:
            options["denominator"] = found.numbers(self.over, "over")
            options["denominator_bounds"] = read_pair(self.over_bounds)
        if self.by:
            names = read_groups(self.groups)
            options |= {"domain": found.column(self.by, "by"), "domains": list(names or ())}
        return options

    def _margin(self, text: str, found: Interviews | Fresh) -> tuple[str, Any]:
        from ...errors import InvalidInput

        name, equals, listed = text.partition("=")
        totals = read_groups(listed.replace(":", "=")) if equals else None
        if not isinstance(totals, dict):
            raise InvalidInput(f"--margin takes public totals, sex=f:5100,m:4900, got {text!r} instead")
        return name, (found.column(name, "margin"), totals)

    def _told(self, found: Interviews | Fresh, each: "dict[str, Release]") -> ReleaseOutput:
        from .population import READABLE

        one = next(iter(each.values()))
        design = found.survey.words() if isinstance(found, Interviews) else _name(found.sample.design)
        known = epsilon_if_known(found.sample, one.guarantee.neighbors, self.delta)
        head = {
            "statistic": self.statistic, "value": self.values[0] if len(self.values) == 1 else list(self.values),
            "by": self.by, "design": design, "bounds": self._bounds(), "classes": self.classes,
            "margins": list(self.margins),
            "over": self.over, "epsilon_if_sample_known": known,
        }  # fmt: skip
        title = f"{self.statistic} of {', '.join(self.values)}" + (f" over {self.over}" if self.over else "")
        title += f" by {self.by}" if self.by else ""
        how = [("design", design), ("sampling error", "released privately too, for a fifth of the budget")]
        how += [("if the sample is known", f"ε = {known:.4g}")] if known is not None else []
        assumes = [READABLE, KNOWN, *([RULES] if isinstance(found, Interviews) else [])]
        is_public = one.guarantee.neighbors.kind == "replace-one"
        how = facts_of(found.records, is_public) + how + effects_of(each)
        return ReleaseOutput(
            each, title, head, how, delta=self.delta or None, assumes=assumes, summary=SUMMARY,
            tables=tables_of(found.sample.design),
        )  # fmt: skip


def _name(design: "Design") -> str:
    if design.parts:
        return "strata of " + ", ".join(f"{name}: {getattr(part, 'size', part)}" for name, part in design.parts)
    return design.spec or str(design)


def _in_words(sentence: str) -> str:
    """The keywords of Python as options."""
    for word, option in _OPTIONS.items():
        sentence = sentence.replace(word, option)
    return sentence


def _widest(pairs: dict[str, Any]) -> str:
    """The bounds that sizes of strata are chosen for: the widest question, or those of every stratum."""
    first = next(iter(pairs.values()))
    if isinstance(first, dict):
        return ",".join(f"{name}={low!r}:{high!r}" for name, (low, high) in first.items())
    low, high = max(pairs.values(), key=lambda pair: pair[1] - pair[0])
    return f"{low!r}:{high!r}"
