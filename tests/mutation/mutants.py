"""Small wrong changes of a module, one at a time: what its tests ought to notice."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """One change: its number among all of the module, its line, the code before and after, the whole source."""

    number: int
    line: int
    before: str
    after: str
    source: str


def mutants_of(source: str) -> list[Mutant]:
    """Every mutant of a module's source; annotations, docstrings and the texts of messages stay."""
    tree = ast.parse(source)
    found: list[Mutant] = []
    for place, (node, changed) in enumerate(_changes(tree)):
        mutated = _Swap(node, changed).visit(copy.copy(tree))
        text = ast.unparse(ast.fix_missing_locations(mutated))
        found.append(Mutant(place, getattr(node, "lineno", 0), ast.unparse(node), ast.unparse(changed), text))
    return found


class _Swap(ast.NodeTransformer):
    """Replaces one node, known by its identity, and copies what leads to it."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        """The new node for the old one; everything else as a shallow copy."""
        return self._new if node is self._old else self._copied(node)

    def _copied(self, node: ast.AST) -> ast.AST:
        fresh = copy.copy(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                setattr(fresh, name, self.visit(value))
            elif isinstance(value, list):
                setattr(fresh, name, [self.visit(v) if isinstance(v, ast.AST) else v for v in value])  # pyright: ignore[reportUnknownVariableType]  (ast's fields are untyped)
        return fresh


def _changes(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    for node in _code_of(tree):
        yield from ((node, changed) for changed in _changed(node))


def _code_of(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs: no annotation, no import, no block for the type checker."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:  # pyright: ignore[reportUnknownVariableType]  (ast's fields are untyped)
            if isinstance(child, ast.AST):
                yield from _code_of(child)


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.expr):
        yield from _changed_expression(node)
    else:
        yield from _changed_statement(node)


def _changed_expression(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(ops=[op]):
            yield ast.Compare(node.left, [_COMPARED[type(op)]()], node.comparators)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.BinOp() if type(node.op) in _COMPUTED:
            yield ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case _:
            return


def _changed_statement(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.If():
            yield ast.If(ast.Constant(True), node.body, node.orelse)
            yield ast.If(ast.Constant(False), node.body, node.orelse)
        case ast.Raise() | ast.AugAssign():
            yield ast.Pass()
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and not value.value):
            yield ast.Return(ast.Constant(None))
        case _:
            return
