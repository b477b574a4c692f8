"""Whether Spark would compute the same table again: a check of the analysed plan, below caches and views.

A cache hides what is below it from the optimised plan, and it is gone when an executor dies or memory is short: Spark
then recomputes the rows. Ids from `uuid()`, a clock, a Python function or an order with ties differ the second time,
and the sample is a new draw. So the plan is read as it was analysed, from the columns that decide down to the sources,
and such ids are rejected. What a plan does not show (an RDD, Spark Connect) is left to the digest of ids.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CLOCK = frozenset(
    {"CurrentTimestamp", "Now", "CurrentDate", "CurrentTime", "LocalTimestamp", "CurrentBatchTimestamp"}
)  # fmt: skip
_CODE = frozenset(
    {"PythonUDF", "PythonUDAF", "PythonUDTF", "PythonFuncExpression", "ScalaUDF", "ScalaAggregator", "ScalaUDAF",
     "HiveSimpleUDF", "HiveGenericUDF", "HiveUDAFFunction", "HiveGenericUDTF", "ApplyFunctionExpression",
     "V2Aggregator", "CallMethodViaReflection", "TryReflect"}
)  # fmt: skip
_ORDER = frozenset(
    {"RowNumber", "NTile", "Lag", "Lead", "First", "Last", "AnyValue", "NthValue", "CollectList", "ListAgg"}
)
_NODES = frozenset(
    {"Sample", "MapElements", "MapPartitions", "TypedFilter", "AppendColumns", "MapGroups", "CoGroup",
     "ScriptTransformation", "FlatMapGroupsWithState"}
)  # fmt: skip

_ROW_BY_ROW = frozenset(
    {"Project", "Filter", "SubqueryAlias", "View", "ResolvedHint", "Range", "Union", "Join", "Repartition",
     "RepartitionByExpression", "Sort"}
)  # fmt: skip


def check_repeatable(seen: "DataFrame") -> None:
    """Raise if columns that decide the draw could change when Spark evaluates them again."""
    if _finds(seen, _CLOCK | _CODE | _ORDER, _NODES):
        raise InvalidInput(
            "the columns that decide the draw come from rand(), uuid(), a clock, row_number(), sample(), a user's "
            "function or "
            "the like, perhaps below a cache, so every evaluation would be another sample; write the table to files "
            "first, then sample those"
        )


def check_values(seen: "DataFrame") -> None:
    """Raise for sums of columns that Spark draws at random: they depend on the positions of other rows."""
    if _finds(seen, frozenset(), frozenset({"Sample"})):
        raise InvalidInput(
            "the columns of this sum, or the rows of the table, come from rand(), monotonically_increasing_id() or the "
            "like, which give a row another value when others come or go; write the table to files first"
        )


def _finds(seen: "DataFrame", expressions: frozenset[str], nodes: frozenset[str]) -> bool:
    plan = getattr(seen, "_jdf", None)  # Spark Connect does not show its plans
    if plan is None:
        return False
    top = plan.queryExecution().analyzed()
    return _in_plan(top, {_number(attribute) for attribute in _items(top.output())}, expressions, nodes)


def _in_plan(node: Any, needed: set[int], expressions: frozenset[str], nodes: frozenset[str]) -> bool:
    """Whether something forbidden is in this node or below it, as far as the needed attributes come from there."""
    if _name(node) in nodes:
        return True
    for expression in _items(node.expressions()):
        if _is_column(node, expression) and _number(expression) not in needed:
            continue
        if not expression.deterministic() or _in_expression(expression, expressions):
            return True
        needed |= {_number(attribute) for attribute in _items(expression.references().toSeq())}
    for child in _items(node.children()):
        if _in_plan(child, needed | _renamed(node, child, needed), expressions, nodes):
            return True
    return False


def comes_from_files(df: "DataFrame") -> bool:
    """Whether the analysed plan shows that all rows come from listed files or ranges, whatever their order.

    A frame of a catalog's table lists its files anew after every insert: its rows may be others next time.
    """
    plan = getattr(df, "_jdf", None)
    if plan is None:
        return False
    top = plan.queryExecution().analyzed()
    return bool(top.subqueriesAll().isEmpty()) and _is_stored(top)


def _is_stored(node: Any) -> bool:
    if _name(node) == "LogicalRelation":
        relation = node.relation()
        is_listed = _name(relation) == "HadoopFsRelation" and _name(relation.location()) == "InMemoryFileIndex"
        return is_listed and bool(node.catalogTable().isEmpty())
    return _name(node) in _ROW_BY_ROW and all(map(_is_stored, _items(node.children())))


def leaves(node: Any, name: str) -> Iterator[Any]:
    """The nodes of this name at the bottom of a plan."""
    if _name(node) == name:
        yield node
    for child in _items(node.children()):
        yield from leaves(child, name)


def _is_column(node: Any, expression: Any) -> bool:
    """Whether an expression is nothing but one column of what the node hands on."""
    kind = _name(expression)
    return kind == "Alias" or (kind == "AttributeReference" and _name(node) == "Project")


def _in_expression(expression: Any, forbidden: frozenset[str]) -> bool:
    if _name(expression) in forbidden:
        return True
    return any(_in_expression(child, forbidden) for child in _items(expression.children()))


def _renamed(node: Any, child: Any, needed: set[int]) -> set[int]:
    """Set operations rename their columns by position."""
    if _name(node) not in ("Union", "Intersect", "Except"):
        return set()
    pairs = zip(_items(node.output()), _items(child.output()), strict=False)
    return {_number(theirs) for ours, theirs in pairs if _number(ours) in needed}


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(k) for k in range(sequence.size()))


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _number(attribute: Any) -> int:
    return int(attribute.exprId().id())
