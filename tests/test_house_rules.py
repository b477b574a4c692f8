"""Rules of the house that a machine can check: short files, few parameters, docstrings that name their parameters.

A rule is a number here. What breaks one for a reason stands in a list with the reason; what still has to be changed
stands in another, which may only get shorter.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest

import privamp
from privamp.bootstrap import planning as bootstrap
from privamp.engines import options as engine_options
from privamp.survey import adjust_options as survey_adjust
from privamp.survey import options as survey
from privamp.survey import planning as survey_plan

SOURCE = Path(__file__).parents[1] / "src" / "privamp"
LONGEST_FILE, MOST_PARAMETERS = 400, 8

# Signatures that others prescribe: of commands, of scikit-learn, of Opacus' make_private, of Triton's kernels.
PRESCRIBED = {
    "kmeans/estimator.py:PrivateKMeans.__init__",
    "sgd/regression.py:_Regression.__init__",
    "sgd/regression.py:PrivateLogistic.__init__",
    "torch/device_kernels.py:_rest",
    "torch/engine.py:PrivacyEngine.make_private",
    "torch/engine.py:PrivacyEngine.make_private_with_epsilon",  # Opacus has these
}
DOOR = {"key", "budget"}  # what every job takes by design; not counted


def functions(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function of a module with its dotted name."""
    for node in ast.iter_child_nodes(tree):
        name = f"{inside}{getattr(node, 'name', '')}"
        if isinstance(node, ast.FunctionDef):
            yield name, node
        inner = f"{name}." if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else inside
        yield from functions(node, inner)


def parameters(node: ast.FunctionDef) -> list[str]:
    found = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    return [each.arg for each in found if each is not None and each.arg not in ("self", "cls")]


def counted(file: str, text: str) -> dict[str, int]:
    """How many parameters every function of a file has."""
    return {f"{file}:{name}": len({*parameters(node)} - DOOR) for name, node in functions(ast.parse(text))}


def long_signatures(file: str, text: str) -> dict[str, int]:
    return {} if file.startswith("cli/") else too_many(counted(file, text))  # a command's options are its parameters


def too_many(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count > MOST_PARAMETERS and name not in PRESCRIBED}


def sources() -> dict[str, str]:
    return {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}


def test_no_file_is_long() -> None:
    lengths = {file: len(text.splitlines()) for file, text in sources().items()}
    assert len(lengths) > 300
    assert not {file: length for file, length in lengths.items() if length > LONGEST_FILE}


def test_no_function_has_many_parameters() -> None:
    everything = {file: counted(file, text) for file, text in sources().items()}
    found = [too_many(counts) for file, counts in everything.items() if not file.startswith("cli/")]
    assert not any(found), f"more than {MOST_PARAMETERS} parameters: make an options object (a frozen dataclass)"
    assert {name for counts in everything.values() for name in counts} >= PRESCRIBED


# Options objects whose fields are keywords of a call, too: the names and types of both are the same.
OPTIONS = [
    (bootstrap.PlanOptions, bootstrap.PlanKeywords),
    (engine_options.SparkOptions, engine_options.SparkKeywords),
    (engine_options.TableOptions, engine_options.TableKeywords),
    (engine_options.WriteOptions, engine_options.WriteKeywords),
    (survey_adjust.AdjustOptions, survey_adjust.AdjustKeywords),
    (survey.EstimateOptions, survey.EstimateKeywords),
    (survey_plan.PlanOptions, survey_plan.PlanKeywords),
]


@pytest.mark.parametrize(("options", "keywords"), OPTIONS)
def test_keywords_are_the_fields_of_their_options(options: type, keywords: type) -> None:
    assert get_type_hints(options) == get_type_hints(keywords)
    assert options.__dataclass_params__.frozen


def test_a_long_signature_is_caught() -> None:
    text = "class A:\n    def f(self, a, b, c, d, /, e, *rest, g, h, i): ..."
    assert long_signatures("core/a.py", text) == {"core/a.py:A.f": 9}
    assert not long_signatures("core/a.py", text.replace(", i)", ")"))


def callables() -> dict[str, object]:
    """Every public class and function."""
    found = {name: getattr(privamp, name) for name in privamp.__all__}
    return {name: thing for name, thing in found.items() if inspect.isclass(thing) or inspect.isfunction(thing)}


def unmentioned(thing: object) -> list[str]:
    """The parameters that neither the docstring, nor a class's fields with their comments, mention."""
    try:
        names = [name for name in inspect.signature(thing).parameters if not name.startswith("_")]
    except ValueError:
        return []
    text = inspect.getdoc(thing) or ""
    if inspect.isclass(thing) and "__init__" in vars(thing):
        text += inspect.getdoc(thing.__init__) or ""
    return [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)]


def test_docstrings_mention_every_parameter() -> None:
    found = {name: unmentioned(thing) for name, thing in callables().items()}
    assert not {name: missing for name, missing in found.items() if missing}


def test_a_parameter_that_is_not_mentioned_is_caught() -> None:
    def area(width: float, height: float) -> float:
        """The area of a rectangle, by its width."""
        return width * height

    assert unmentioned(area) == ["height"]


# Where a bracket may be halved: the one place for it, a program with Dinkelbach's steps between its halvings (it needs
# the step's value at every point, not only its sign), and Newton's methods that halve where a step leaves the bracket.
HALVES = {
    "numerics/roots.py",
    "numerics/size_chain.py",
    "survey/hidden_signal.py",
    "mechanisms/opposite_mixtures.py",
}


def is_midpoint(node: ast.expr) -> set[str]:
    """The two names whose midpoint an expression is: 0.5 * (a + b), (a + b) // 2, sqrt(a * b)."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.FloorDiv)):
        both = (node.left, node.right)
        inner = [side for side in both if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Add)]
        if not any(isinstance(side, ast.Constant) for side in both):
            return set()
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "sqrt":
        inner = [each for each in node.args if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult)]
    else:
        return set()
    sides = [side for each in inner for side in (each.left, each.right)]
    return {side.id for side in sides if isinstance(side, ast.Name)} if len(sides) == 2 else set()


def bisections(text: str) -> int:
    """How many loops take the midpoint of two names and also assign one of them."""
    loops = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.For, ast.While))]

    def halves(loop: ast.AST) -> bool:
        inside = list(ast.walk(loop))
        targets = [target for node in inside if isinstance(node, ast.Assign) for target in node.targets]
        assigned = {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
        pairs = [is_midpoint(node) for node in inside if isinstance(node, ast.expr)]
        return any(len(pair) == 2 and pair & assigned for pair in pairs)

    return sum(map(halves, loops))


def test_there_is_one_bisection() -> None:
    found = {file for file, text in sources().items() if bisections(text)}
    assert found == HALVES, "use bisected, halved or largest_passing of numerics.roots"


def test_a_bisection_by_hand_is_caught() -> None:
    by_hand = "while b - a > 1:\n    m = {}\n    if f(m):\n        a = m\n    else:\n        b = m"
    for middle in ("0.5 * (a + b)", "(a + b) / 2", "(a + b) // 2", "math.sqrt(a * b)"):
        assert bisections(by_hand.format(middle)) == 1
    assert not bisections("for a, b in pairs:\n    yield 0.5 * (low + high)")


def defined(tree: ast.Module) -> list[ast.FunctionDef | ast.ClassDef]:
    """The functions and classes of a module, without what Python or a decorator calls."""
    found = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    plain = [node for node in found if isinstance(node, ast.ClassDef) or not node.decorator_list]
    return [node for node in plain if not node.name.startswith("__")]


def unused(texts: dict[str, str]) -> list[str]:
    """Functions and classes that no other line of the source mentions: not in their file, as an import or an attribute.

    Words in strings count, because lazily loaded names and commands are listed in them.
    """
    trees = {file: ast.parse(text) for file, text in texts.items()}
    everywhere = [node for tree in trees.values() for node in ast.walk(tree)]
    imports = {alias.name for node in everywhere if isinstance(node, ast.ImportFrom) for alias in node.names}
    attributes = {node.attr for node in everywhere if isinstance(node, ast.Attribute)}
    strings = [node.value for node in everywhere if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    listed = {word for string in strings if "\n" not in string.strip() or '"' not in string for word in string.split()}
    elsewhere, missing = imports | attributes | listed, []
    for file, tree in trees.items():
        here = {node.name for node in defined(tree)} - elsewhere
        here -= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if here else set()
        missing += [f"{file}:{node.name}" for node in defined(tree) if node.name in here]
    return missing


def test_everything_is_used() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (SOURCE.parents[1] / "docs").rglob("*.md"))
    mentioned = {*re.findall(r"\w+", pages)}
    forgotten = [name for name in unused(sources()) if name.partition(":")[2] not in mentioned]
    assert not forgotten, "nothing in src or docs mentions it: remove it, or move it to the tests if they do"


def test_what_nobody_uses_is_found() -> None:
    used = {"a.py": "def f(): ...\ndef g(): ...\nx = f()", "b.py": "from a import g"}
    assert not unused(used)
    assert unused(used | {"b.py": ""}) == ["a.py:g"]
