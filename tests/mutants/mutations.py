"""Small wrong changes to a source file: an operator, a comparison, a constant, a branch, a name.

A mutation replaces a few characters and leaves everything else as it is. Left alone are texts, annotations, decorators,
what an exception is raised with, how a value is printed, and the small cases that a design offers to checks: they
decide no number.
"""

import ast
import re
from dataclasses import dataclass

OPERATORS = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
PAIRS = (
    ("forward", "backward"),
    ("upper", "lower"),
    ("high", "low"),
    ("highest", "lowest"),
    ("above", "below"),
    ("left", "right"),
    ("first", "last"),
    ("start", "stop"),
    ("before", "after"),
    ("floor", "ceil"),
    ("min", "max"),
    ("minimum", "maximum"),
    ("any", "all"),
    ("up", "down"),
)
PYTHONS = {"min", "max", "any", "all"}  # known in every file; other names must occur in it,
NUMPYS = PYTHONS | {"minimum", "maximum", "floor", "ceil"}  # and so must other attributes
NAMES = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}
LEFT_ALONE = {"__repr__", "__str__", "_repr_html_", "small_cases"}


@dataclass(frozen=True)
class Mutation:
    """What changes where: `start` and `stop` are places in the file's bytes."""

    kind: str
    start: int
    stop: int
    becomes: str
    scope: str  # the class and function it is in

    def applied(self, source: bytes) -> bytes:
        """The whole file with the change."""
        return source[: self.start] + self.becomes.encode() + source[self.stop :]

    def lines(self, source: bytes) -> tuple[str, str]:
        """The changed line before and after, without its indentation."""
        begin = source.rfind(b"\n", 0, self.start) + 1
        end = source.find(b"\n", self.stop)
        end = len(source) if end < 0 else end
        after = source[begin : self.start] + self.becomes.encode() + source[self.stop : end]
        return _one_line(source[begin:end]), _one_line(after)

    def line_number(self, source: bytes) -> int:
        """Counted from 1."""
        return source.count(b"\n", 0, self.start) + 1


def mutations(source: bytes) -> list[Mutation]:
    """Every mutation of a file, in the order of their places."""
    found = _Finder(source)
    found.visit(ast.parse(source))
    return sorted(found.mutations, key=lambda m: (m.start, m.stop, m.becomes))


def _one_line(text: bytes) -> str:
    return " ".join(text.decode().split())


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes) -> None:
        self.source, self.scope, self.mutations = source, list[str](), list[Mutation]()
        self.words = {word.decode() for word in re.findall(rb"\w+", source)}
        self.line_starts = [0, *(m.end() for m in re.finditer(b"\n", source))]

    def _place(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column

    def _span(self, node: ast.AST) -> tuple[int, int]:
        begin = self._place(node.lineno, node.col_offset)
        return begin, self._place(node.end_lineno, node.end_col_offset)

    def _add(self, kind: str, start: int, stop: int, becomes: str) -> None:
        self.mutations.append(Mutation(kind, start, stop, becomes, ".".join(self.scope)))

    def _swap_between(self, kind: str, left: ast.AST, right: ast.AST, sign: str, becomes: str) -> None:
        """Replace the sign between two expressions; brackets and comments may stand there too."""
        start, stop = self._span(left)[1], self._span(right)[0]
        place = _outside_comments(self.source[start:stop]).find(sign.encode())
        if place >= 0:
            self._add(kind, start + place, start + place + len(sign), becomes)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in OPERATORS and not _is_text(node):
            self._swap_between("operator", node.left, node.right, *OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in OPERATORS and not _is_text(node.value):
            self._swap_between("operator", node.target, node.value, *OPERATORS[type(node.op)])
        self.visit(node.value)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        begin, inside = self._span(node)[0], self._span(node.operand)[0]
        if isinstance(node.op, ast.USub):
            self._add("operator", begin, begin + 1, "+")
        elif isinstance(node.op, ast.Not):
            self._add("branch", begin, begin + 3, "")
        elif isinstance(node.op, ast.Invert) and inside > begin:
            self._add("operator", begin, begin + 1, "+")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            if type(op) in COMPARISONS:
                self._swap_between("comparison", left, right, *COMPARISONS[type(op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        sign, becomes = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._swap_between("branch", left, right, sign, becomes)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add("constant", *self._span(node), str(not value))
        elif isinstance(value, int):
            self._add("constant", *self._span(node), str(value + 1))
        elif isinstance(value, float):
            self._add("constant", *self._span(node), repr(2.0 * value if value else 1.0))

    def _negate(self, test: ast.expr) -> None:
        begin, end = self._span(test)
        text = self.source[begin:end].decode()
        self._add("branch", begin, end, f"(not ({text}))")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if NAMES.get(node.id) in self.words | PYTHONS and isinstance(node.ctx, ast.Load):
            self._add("name", *self._span(node), NAMES[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if NAMES.get(node.attr) in self.words | NUMPYS and isinstance(node.ctx, ast.Load):
            end = self._span(node)[1]
            self._add("name", end - len(node.attr), end, NAMES[node.attr])
        self.generic_visit(node)

    def _inside(self, node: ast.ClassDef | ast.FunctionDef) -> None:
        self.scope.append(node.name)
        for part in node.body:
            self.visit(part)
        if not isinstance(node, ast.ClassDef):
            for default in [*node.args.defaults, *node.args.kw_defaults]:
                if default is not None:
                    self.visit(default)
        self.scope.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in LEFT_ALONE:
            self._inside(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in {"repr", "slots", "strict", "maxsize", "stacklevel"}:
            self.visit(node.value)

    def generic_visit(self, node: ast.AST) -> None:
        if not isinstance(node, (ast.Raise, ast.JoinedStr, ast.Assert)):  # texts and errors
            super().generic_visit(node)


def _is_text(node: ast.AST) -> bool:
    """Whether an expression is a text, or texts that are joined."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def _outside_comments(between: bytes) -> bytes:
    return re.sub(rb"#[^\n]*", lambda comment: b" " * len(comment.group()), between)


def is_python(text: bytes) -> bool:
    """Whether a file can be parsed."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
