"""Every sentence that `assumes` may hold is explained in docs/threat-model.md, and no other one is listed there."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "privamp"
HOLDERS = {"assumes", "assumed", "extra", "said", "own"}  # names under which assumptions are gathered


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def constant(path: Path, name: str) -> tuple[str, ...]:
    """What a name of a module stands for, here or where it is imported from; nothing if it is no text."""
    for node in parsed(path).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return tuple(texts(node.value))
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
            base = path.parents[node.level - 1] if node.level else SOURCE.parent
            place = base.joinpath(*(node.module or "").split("."))
            found = next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file()), None)
            return constant(found, next(a.name for a in node.names if (a.asname or a.name) == name)) if found else ()
    return ()


def texts(node: ast.AST) -> Iterator[str]:
    found = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return (text for text in found if text.strip().count(" ") > 1 and "Thm" not in text)  # theorems are reasons


def is_holder(node: ast.AST) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
    return name in HOLDERS


def gathered(tree: ast.Module) -> Iterator[ast.AST]:
    """The expressions that are put into `assumes`, or into what is put into it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "assumes":
            yield node.value
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n for t in targets for n in (t.elts if isinstance(t, ast.Tuple) else [t])]
            if any(map(is_holder, names)):
                yield node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            if is_holder(node.func.value):
                yield from node.args
        elif isinstance(node, ast.FunctionDef) and node.name == "assumes":
            yield from (n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None)


def emitted() -> dict[str, str]:
    """Every sentence, and a file that puts it into `assumes`."""
    found: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        tree = parsed(path)
        if "assumes" not in path.read_text(encoding="utf-8"):
            continue
        for value in gathered(tree):
            names = [n.id for n in ast.walk(value) if isinstance(n, ast.Name) and n.id.upper() == n.id]
            sentences = [*texts(value), *(text for name in names for text in constant(path, name))]
            found |= dict.fromkeys(sentences, path.relative_to(ROOT).as_posix())
    return found


def listed() -> set[str]:
    """The sentences of the page's table."""
    page = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    part = page.partition("### The sentences of `assumes`")[2].partition("\n## ")[0]
    rows = [line for line in part.splitlines() if line.startswith("| ")]
    return {row.split(" | ")[0].removeprefix("| ").replace("\\|", "|") for row in rows[1:]}


def test_the_reader_finds_sentences_that_are_known_to_be_there():
    found = emitted()
    for words in ("AES is a pseudo-random", "NOT PRIVATE", "never drawn", "quadrature", "metrics and logs"):
        assert any(words in sentence for sentence in found), words


def test_every_sentence_of_assumes_is_on_the_page_and_no_other():
    found = emitted()
    missing = {sentence: where for sentence, where in found.items() if sentence not in listed()}
    assert not missing, "\n".join(f"| {sentence} |  ({where})" for sentence, where in missing.items())
    assert not listed() - set(found)
