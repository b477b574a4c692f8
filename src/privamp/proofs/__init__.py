"""Every theorem by its id: statement, proof, the test that checks it, sources. The text ships with the package.

The pages of docs/ hold the proofs; `<a id="cluster-1"></a>` stands before each. A wheel contains copies of the pages
(setup.py), a checkout reads docs/ itself. index.toml says which test checks a theorem and where it comes from,
references.bib how to cite that.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from .terminal import plain_maths

_ANCHOR = re.compile(r'<a id="([a-z0-9-]+)"></a>\s*')
_HEADING = re.compile(r"^(#+) +(.*)$", re.MULTILINE)
_NAMED = re.compile(r"^\**((?:Theorem|Lemma)(?: [0-9A-Z][a-z₁']*)?|[A-Z][\w' ]+)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_PAGE = re.compile(r"docs/(?:\w+/)*(\w+)\.md(?:, Thms? ((?:[0-9]+c?|[A-Z]'?)(?:(?: and | to |, )[0-9]+)*))?")


@dataclass(frozen=True, slots=True)
class Proof:
    """One theorem: `id`, `title`, its `page` in docs/, `text` (statement and proof), `test`, `bibtex`."""

    id: str
    title: str
    page: str
    text: str
    test: str
    bibtex: str

    @property
    def plain(self) -> str:
        """The text without links, marks and LaTeX, for a terminal."""
        return plain_maths(_LINK.sub(r"\1", self.text)).replace("**", "")


@cache
def proofs() -> dict[str, Proof]:
    """Every theorem, by id.

    >>> print(proofs()["poisson-1"].title)
    Theorem 1: add/remove → add/remove
    """
    index = tomllib.loads((files(__package__) / "index.toml").read_text(encoding="utf-8"))
    references = _references()
    sections = {name: (page, title, text) for page, content in _pages() for name, title, text in _sections(content)}
    found = {}
    for name, (page, title, text) in sorted(sections.items()):
        about = index.get(name, {})
        if "proved_in" in about:
            text += "\n\n" + sections[about["proved_in"]][2]
        bibtex = "\n\n".join(references[source] for source in about.get("sources", ("privamp",)))
        found[name] = Proof(name, title, page, text, about.get("test", ""), bibtex)
    return found


def proof(name: str) -> Proof:
    """One theorem by its id; InvalidInput names ids that are alike."""
    known = proofs()
    if name in known:
        return known[name]
    from difflib import get_close_matches

    alike = get_close_matches(name, known, 3, 0.5)
    hint = f"; {' or '.join(alike)} may be what you mean" if alike else ""
    raise InvalidInput(f"no theorem has the id {name!r}{hint}; `privamp theorem` lists every id")


def cited(because: str) -> tuple[str, ...]:
    """The ids of the theorems that a line of `Guarantee.because` cites.

    >>> cited("Stratified, one record (docs/designs/stratified.md, Thm 1), then group privacy")
    ('stratified-1', 'persons-5')
    """
    found = []
    for name, words in _cited_as():
        for word in words:
            if word in because:
                because = because.replace(word, "")
                found.append(name)
    for page, numbers in _PAGE.findall(because):
        found += [f"{page.replace('_', '-')}-{mark}" for mark in _marks(numbers)]
    known = proofs()
    ordered = sorted(dict.fromkeys(found), key=lambda name: name == "persons-5")  # the last step of an argument
    return tuple(name for name in ordered if name in known)


def _marks(numbers: str) -> list[str]:
    """ "1 to 3" → 1, 2, 3; "B'" → b-prime; nothing → 1, the page's only or first theorem."""
    if " to " in numbers:
        first, last = numbers.split(" to ")
        return [str(k) for k in range(int(first), int(last) + 1)]
    return [mark.lower().replace("'", "-prime") for mark in re.split(r" and |, ", numbers or "1")]


@cache
def _cited_as() -> list[tuple[str, list[str]]]:
    index: dict[str, Any] = tomllib.loads((files(__package__) / "index.toml").read_text(encoding="utf-8"))
    return [(name, about["cited_as"]) for name, about in index.items() if "cited_as" in about]


def _references() -> dict[str, str]:
    text = (files(__package__) / "references.bib").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=@)", text.strip())
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry.strip() for entry in entries}


def _pages() -> list[tuple[str, str]]:
    """(path below docs/, text) of every page that holds a theorem."""
    inside = files(__package__) / "pages"
    checkout = Path(__file__).parents[3] / "docs"
    folder: Traversable = inside if inside.is_dir() else checkout
    if not folder.is_dir():
        raise InvalidInput("the pages with the proofs are missing from this installation; install privamp from a wheel")
    return [(path, text) for path, text in _texts(folder, "") if _ANCHOR.search(text)]


def _texts(folder: Traversable, under: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            found += _texts(entry, f"{under}{entry.name}/")
        elif entry.name.endswith(".md"):
            found.append((under + entry.name, entry.read_text(encoding="utf-8")))
    return found


def _sections(content: str) -> list[tuple[str, str, str]]:
    """(id, title, text): from an anchor to the next one, or to a heading of its own rank."""
    anchors = list(_ANCHOR.finditer(content))
    found = []
    for index, anchor in enumerate(anchors):
        end = anchors[index + 1].start() if index + 1 < len(anchors) else len(content)
        text = content[anchor.end() : end]
        own = _HEADING.match(text)
        start, rank = (own.end(), len(own[1])) if own else (0, 6)
        ends = [h.start() for h in _HEADING.finditer(text, start) if len(h[1]) <= rank]
        body = text[: min(ends, default=len(text))].strip()
        named = _NAMED.match(body)
        title = own[2] if own else (named[1] if named else anchor[1])
        found.append((anchor[1], title.strip(), body))
    return found
