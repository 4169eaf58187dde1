"""The mutants of a syntax tree: comparisons, arithmetic, conditions, constants, returned values and statements.

Strings, types, decorators and the texts of errors are not mutated.
"""

from __future__ import annotations

import ast

_OPPOSITES = "Eq NotEq Is IsNot In NotIn"
_BOTH_WAYS = f"{_OPPOSITES} Lt LtE Gt GtE And Or Add Sub Mult Div BitAnd BitOr LShift RShift".split()
_SWAPS = dict(zip(_BOTH_WAYS[::2], _BOTH_WAYS[1::2], strict=True))
_SWAPS |= {other: one for one, other in _SWAPS.items()}
_SWAPS |= {"FloorDiv": "Mult", "Mod": "Mult", "Pow": "Mult", "BitXor": "BitAnd", "MatMult": "Add"}


def _swapped(op):
    return getattr(ast, _SWAPS[type(op).__name__])()


def _changes(node, field):
    """Yield every replacement of one node."""
    negated = isinstance(node, ast.UnaryOp)
    match node:
        case ast.Compare(left, ops, right):
            for place, op in enumerate(ops):
                yield ast.Compare(left, [*ops[:place], _swapped(op), *ops[place + 1 :]], right)
            negated = type(ops[0]).__name__ in _OPPOSITES.split()
        case ast.BinOp(left, op, right):
            yield ast.BinOp(left, _swapped(op), right)
        case ast.AugAssign(target, op, value):
            yield ast.AugAssign(target, _swapped(op), value)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(_swapped(op), values)
        case ast.UnaryOp(_, operand):
            yield operand
        case ast.Constant(int() | float() as value):
            yield ast.Constant(not value if isinstance(value, bool) else value + 1)
        case ast.Return(ast.expr() as value) if ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()):
            yield ast.Pass()
    if field in ("test", "ifs") and not negated:
        yield ast.UnaryOp(ast.Not(), node)


def mutants(node, function=0, outer=0):
    """Apply each change to the tree in turn; it is taken back when the next one is asked for."""
    for field, value in ast.iter_fields(node):
        siblings = value if isinstance(value, list) else [value]
        for place, child in enumerate(siblings):
            skipped = not isinstance(child, ast.AST) or isinstance(child, ast.Raise | ast.JoinedStr)
            if skipped or field in ("annotation", "returns", "decorator_list", "bases"):
                continue
            for new in _changes(child, field):
                change = f"{ast.unparse(child)}  →  {ast.unparse(new)}"
                siblings[place] = new
                setattr(node, field, siblings if isinstance(value, list) else new)
                yield {"function": function, "line": child.lineno, "change": change}
                siblings[place] = child
                setattr(node, field, value)
            inner, around = function, outer
            if isinstance(child, ast.FunctionDef | ast.Lambda):  # its code begins at the first decorator
                inner = min(part.lineno for part in (child, *getattr(child, "decorator_list", [])))
                around = function
            elif isinstance(child, ast.arguments):  # defaults are computed where the function is defined
                inner = outer
            yield from mutants(child, inner, around)
