"""Result rules per family of operations: from operand types to the compute dtype, the operand casts and the result type."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pypto_dsl.compiler.dtypes import BOOL, F32, I32, U32, DType
from pypto_dsl.compiler.promotion import refusal
from pypto_dsl.compiler.promotion.atype import AType, of_node, strong
from pypto_dsl.compiler.promotion.join_table import Cell
from pypto_dsl.compiler.promotion.refusal import PromotionError, cast_fix
from pypto_dsl.compiler.promotion.result_rules import REFUSED, Nodes
from pypto_dsl.compiler.promotion.rules import LeftRules, RuleSet
from pypto_dsl.compiler.promotion.scalars import describe, inexact_beyond, misfit


@dataclass(frozen=True)
class LossyCast:
    """An integer operand whose values are not all exact in the type it is promoted to; integers up to ``exact_up_to`` are."""

    operand: int
    source: DType
    target: DType
    exact_up_to: int


@dataclass(frozen=True)
class OpTyping:
    """How an operation is typed.

    Each operand is read as ``operand_casts[i]`` (its own dtype: no cast). The arithmetic is done in ``compute`` and rounded once.
    When ``rounds_to`` is set, the operation is typed in the casts' dtype and its result is cast to ``rounds_to`` afterwards;
    otherwise it delivers ``result`` itself. A Python scalar at operand ``i`` must fit ``landings[i]`` and is rounded to it first;
    for tensors it equals the cast. ``rule`` says what decided, ``forced_by`` which operand brought the joined dtype (None when no
    single one did), ``lossy`` which integers lose bits.
    """

    compute: DType
    operand_casts: tuple[DType, ...]
    result: AType
    landings: tuple[DType, ...]
    rule: str
    forced_by: int | None = None
    lossy: tuple[LossyCast, ...] = ()
    rounds_to: DType | None = None


@dataclass(frozen=True)
class _Use:
    """One use of an operation: the rule set, the family's name and the operation's, operand types and source names."""

    rules: RuleSet
    family: str
    op: str
    types: tuple[AType, ...]
    names: tuple[str, ...]

    def name(self, index: int) -> str:
        return self.names[index] if len(self.names) > index else f"operand_{index + 1}"

    def join(self, first: int = 0, count: int | None = None) -> AType:
        """The join of some operands, by the rule set's table for this family."""
        stop = None if count is None else first + count
        types = self.types[first:stop]
        self._check_mixed(types)
        table = self.rules.pow_table if self.family == "pow" else ""
        return self.rules.fold(types, op=self.op, names=self.names[first:stop], table=table)

    def _check_mixed(self, types: Sequence[AType]) -> None:
        """ttnn mixes dtypes in some operations only."""
        if not isinstance(self.rules, LeftRules) or self.family in MIXED_FAMILIES:
            return
        if self.family == "arithmetic" and self.op in MIXED_ARITHMETIC:
            return
        tensors = [t for t in types if not t.weak]
        for other in tensors[1:]:
            if other.dtype != tensors[0].dtype:
                raise self.rules.refuse(self.op, tensors[0], other, f"ttnn's {self.op} takes equal dtypes", Cell(None), self.names)

    def refuse(self, index: int, reason: str, fix: str = "") -> PromotionError:
        """The refusal of one operand for its kind."""
        return PromotionError(refusal.WRONG_KIND, self.op, self.types[index], None, self.rules.name, reason, fixes=(fix,) if fix else ())

    def forced_by(self, joined: AType) -> int | None:
        """The operand whose type the join is."""
        return next((i for i, t in enumerate(self.types) if t == joined), None)


# ttnn 0.81.1's dtype policy: these take mixed float dtypes, every other operation equal ones.
MIXED_FAMILIES = frozenset({"compare", "logical", "divide", "matmul", "in_place"})
MIXED_ARITHMETIC = frozenset({"arithmetic", "add", "sub", "subtract", "mul", "multiply", "rsub", "squared_difference"})


def compute_dtype(dtype: DType) -> DType:
    """The dtype in which arithmetic on ``dtype`` is done: FP32 for every float narrower than that."""
    return F32 if dtype.is_float and dtype.bits < 32 else dtype


def accumulator(dtype: DType) -> DType:
    """The dtype in which sums of ``dtype`` are kept: at least 32 bits of its kind."""
    if dtype.is_float or (dtype.bits >= 32 and dtype.is_integer):
        return compute_dtype(dtype)
    return U32 if dtype.kind == "uint" else I32


def _elementwise(use: _Use, joined: AType, result: AType, rule: str, first: int = 0) -> OpTyping:
    """Operands from ``first`` on compute in ``joined``'s compute dtype.

    When every tensor has the joined dtype nothing is cast. Otherwise all are cast to the compute dtype, not through a 16-bit one: INT32
    with FP16 is computed from the exact FP32 values and rounded once.
    """
    types = use.types[first:]
    uniform = all(t.weak or t.dtype == joined.dtype for t in types)
    compute = compute_dtype(joined.dtype)
    cast = joined.dtype if uniform else compute
    casts = tuple(cast for _ in types)
    landings = tuple(joined.dtype if t.weak else cast for t in types)
    rounds_to = joined.dtype if cast != joined.dtype and result.dtype == joined.dtype else None
    return OpTyping(compute, casts, result, landings, rule, use.forced_by(joined), _lossy(use, joined.dtype, first), rounds_to)


def _lossy(use: _Use, target: DType, first: int = 0) -> tuple[LossyCast, ...]:
    bounds = ((i, t, inexact_beyond(t.dtype, target)) for i, t in enumerate(use.types) if i >= first and not t.weak)
    return tuple(LossyCast(i, t.dtype, target, bound) for i, t, bound in bounds if bound is not None)


def _converted(use: _Use, joined: AType, table: Nodes, what: str) -> AType:
    """``joined`` when it is a float, else the float type that ``table`` gives its integers."""
    if joined.dtype.is_float:
        return joined
    node = table.get(joined.node)
    if node is None:
        raise use.refuse(0, f"{use.rules.name} has no {what} of {joined.node}", cast_fix(use.name(0), "f32"))
    return of_node(node)


def _arithmetic(use: _Use) -> OpTyping:
    joined = use.join()
    return _elementwise(use, joined, joined, "the operands' join")


def _compare(use: _Use) -> OpTyping:
    joined = use.join()
    if use.rules.results.mask_follows_lhs:
        return _elementwise(use, joined, strong(joined.dtype), "compared in the join; 0 or 1 in the left operand's dtype")
    return _elementwise(use, joined, strong(BOOL), "compared in the join; the result is BOOL")


def _logical(use: _Use) -> OpTyping:
    """Each operand is tested against zero by itself, so mixed dtypes need no join."""
    result = strong(use.join().dtype) if use.rules.results.mask_follows_lhs else strong(BOOL)
    casts = tuple(BOOL for _ in use.types)
    landings = tuple(t.dtype for t in use.types)
    rounds_to = result.dtype if result.dtype != BOOL else None
    return OpTyping(BOOL, casts, result, landings, "each operand is tested against zero", rounds_to=rounds_to)


def _predicate(use: _Use) -> OpTyping:
    dtype = use.types[0].dtype
    result = strong(dtype) if use.rules.results.mask_follows_lhs else strong(BOOL)
    return OpTyping(dtype, (dtype,), result, (dtype,), "a property of each element")


def _divide(use: _Use) -> OpTyping:
    joined = use.join()
    result = _converted(use, joined, use.rules.results.divide, "division")
    rule = "the operands' join" if joined.dtype.is_float else "integers divide into a float"
    return _elementwise(use, result, result, rule)


def _float_unary(use: _Use) -> OpTyping:
    result = _converted(use, use.types[0], use.rules.results.float_unary, use.op)
    return _elementwise(use, result, result, "the operand's dtype" if result == use.types[0] else "an integer operand becomes a float")


def _keep(use: _Use) -> OpTyping:
    operand = use.types[0]
    return OpTyping(compute_dtype(operand.dtype), (operand.dtype,), replace(operand, origin=""), (operand.dtype,), "the operand's dtype", 0)


def _bitwise(use: _Use) -> OpTyping:
    for index, operand in enumerate(use.types):
        if operand.dtype.is_float:
            reason = f"{use.op} takes integers and bool, and {use.name(index)} is {operand.node}"
            raise use.refuse(index, reason, cast_fix(use.name(index), "i32"))
    joined = use.join()
    if joined.dtype.is_float:
        reason = f"the join of {use.types[0].node} and {use.types[-1].node} is {joined.node}, and {use.op} has no float form"
        raise use.refuse(0, reason, cast_fix(use.name(1), use.types[0].node))
    return _elementwise(use, joined, joined, "the operands' join")


def _where(use: _Use) -> OpTyping:
    condition = use.types[0]
    if condition.dtype != BOOL and not use.rules.results.mask_follows_lhs:
        raise use.refuse(0, f"the condition is {condition.node}, not bool", f"{use.name(0)} != 0")
    moved = _moved(use, 1)
    return replace(moved, operand_casts=(BOOL, *moved.operand_casts), landings=(BOOL, *moved.landings))


def _concat(use: _Use) -> OpTyping:
    return _moved(use, 0)


def _moved(use: _Use, first: int) -> OpTyping:
    """Operands from ``first`` on are moved into the join without arithmetic, each cast directly to it."""
    joined = use.join(first)
    casts = tuple(joined.dtype for _ in use.types[first:])
    return OpTyping(joined.dtype, casts, joined, casts, "the values' join", use.forced_by(joined), _lossy(use, joined.dtype, first))


def _total(use: _Use) -> OpTyping:
    return _accumulated(use, use.rules.results.total, "sums of small integers widen")


def _scan(use: _Use) -> OpTyping:
    return _accumulated(use, use.rules.results.scan, "running sums of integers widen")


def _accumulated(use: _Use, table: Nodes, widened: str) -> OpTyping:
    operand = use.types[0]
    result = of_node(table.get(operand.node, operand.node))
    kept = result.dtype == operand.dtype
    casts = (result.dtype,)
    return OpTyping(accumulator(result.dtype), casts, result, casts, "the operand's dtype" if kept else widened, 0 if kept else None)


def _mean(use: _Use) -> OpTyping:
    result = _converted(use, use.types[0], use.rules.results.mean, use.op)
    return _elementwise(use, result, result, "the operand's dtype" if result == use.types[0] else "a mean of integers is a float")


def _index(use: _Use) -> OpTyping:
    dtype = use.types[0].dtype
    return OpTyping(dtype, (dtype,), strong(I32), (dtype,), "an index is INT32")


def _cast(use: _Use) -> OpTyping:
    """The second type is the target; a cast is strong, even to the operand's own dtype."""
    source, target = use.types[0].dtype, use.types[1].dtype
    return OpTyping(target, (source,), strong(target), (source,), "a cast is strong")


def _matmul(use: _Use) -> OpTyping:
    joined = use.join(0, 2)
    result = of_node(use.rules.results.matmul.get(joined.node, joined.node))
    uniform = all(t.dtype == joined.dtype for t in use.types[:2])
    cast = joined.dtype if uniform else compute_dtype(joined.dtype)
    pair = replace(use, types=use.types[:2])
    return OpTyping(accumulator(joined.dtype), (cast, cast), result, (cast, cast), "the operands' join, accumulated in 32 bits or more",
                    pair.forced_by(joined), _lossy(pair, joined.dtype), result.dtype if cast != joined.dtype else None)


def _pow(use: _Use) -> OpTyping:
    base, exponent = use.types
    if exponent.weak and not base.weak:
        special = use.rules.results.pow_scalar.get((base.node, exponent.node))
        if special == REFUSED:
            raise use.refuse(0, f"an integer base takes an integer exponent under {use.rules.name}, INT32 alone a float one",
                             cast_fix(use.name(0), "f32"))
        if special is not None:
            return _pow_scalar(use, of_node(special), "the base keeps its dtype under a scalar exponent")
        return _pow_scalar(use, use.join(), "the join of the base and a scalar exponent")
    if isinstance(use.rules, LeftRules) and base.dtype.is_integer and exponent.dtype.is_integer and not base.weak:
        raise use.refuse(1, "ttnn takes tensor exponents for float bases only", cast_fix(use.name(0), "f32"))
    joined = use.join()
    return _elementwise(use, joined, joined, "the operands' join")


def _pow_scalar(use: _Use, result: AType, rule: str) -> OpTyping:
    """A scalar exponent lands on the compute dtype, not on a 16-bit one: x ** 2049 in FP16 is not x ** 2048.

    An integer one on an integer base is INT32.
    """
    base, exponent = use.types
    if result.dtype.is_integer and not exponent.dtype.is_float:
        landing = I32 if result.dtype.bits <= 32 else result.dtype
        return OpTyping(result.dtype, (result.dtype, landing), result, (result.dtype, landing), rule, use.forced_by(result))
    compute = F32 if result.dtype.is_integer else compute_dtype(result.dtype)
    cast = result.dtype if base.dtype == result.dtype and result.dtype.is_float else compute
    rounds_to = result.dtype if cast != result.dtype else None
    return OpTyping(compute, (cast, compute), result, (cast, compute), rule, use.forced_by(result), _lossy(use, compute), rounds_to)


def _ldexp(use: _Use) -> OpTyping:
    """x * 2**b has the dtype of x under every rule set; b is an integer, or a float for a real exponent."""
    x, b = use.types
    if b.dtype == BOOL:
        raise use.refuse(1, "ldexp takes an integer or float exponent, and a bool is neither", cast_fix(use.name(1), "i32"))
    if not x.dtype.is_float and not x.weak:
        raise use.refuse(0, f"ldexp has the dtype of its first operand, and {x.node} cannot hold a fraction", cast_fix(use.name(0), "f32"))
    if use.rules.results.ldexp_equal and not b.weak and not x.weak and x.dtype != b.dtype:
        raise use.rules.refuse(use.op, x, b, "ttnn's ldexp takes equal dtypes", Cell(None), use.names)
    result = replace(x, origin="") if x.dtype.is_float else AType(use.rules.default("float"), x.weak)
    if b.dtype.is_integer:
        exponent = b.dtype if not b.weak else I32
        casts = (result.dtype, exponent)
        return OpTyping(compute_dtype(result.dtype), casts, result, casts, "the first operand's dtype", 0)
    wide: DType = max((compute_dtype(result.dtype), F32 if b.weak else compute_dtype(b.dtype)), key=lambda d: d.bits)
    uniform = b.dtype == result.dtype and not b.weak
    casts = (result.dtype, result.dtype) if uniform else (wide, wide)
    rounds_to = result.dtype if casts[0] != result.dtype else None
    return OpTyping(wide, casts, result, casts, "the first operand's dtype", 0, rounds_to=rounds_to)


FAMILIES: dict[str, Callable[[_Use], OpTyping]] = {
    "arithmetic": _arithmetic,
    "compare": _compare,
    "logical": _logical,
    "predicate": _predicate,
    "divide": _divide,
    "pow": _pow,
    "bitwise": _bitwise,
    "float_unary": _float_unary,
    "keep": _keep,
    "where": _where,
    "concat": _concat,
    "sum": _total,
    "prod": _total,
    "scan": _scan,
    "mean": _mean,
    "index": _index,
    "cast": _cast,
    "matmul": _matmul,
    "ldexp": _ldexp,
}


def result_type(rules: RuleSet, family: str, *types: AType, op: str = "", names: Sequence[str] = ()) -> OpTyping:
    """The typing of one operation of ``family`` (a key of `FAMILIES`) over operand types in source order.

    ``op`` is the operation's own name (default: the family's), ``names`` the operands' names in the user's source. Raises PromotionError:
    PT202 no common dtype, PT203 an operand of a kind the operation does not take.
    """
    return FAMILIES[family](_Use(rules, family, op or family, types, tuple(names)))


def assign(rules: RuleSet, destination: AType, value: AType, *, op: str = "out[:]", names: Sequence[str] = ()) -> OpTyping:
    """The typing of writing ``value`` into ``destination``, whose dtype stays.

    Allowed iff the two join to the destination's dtype. Raises PromotionError (PT205) before anything is written.
    """
    target = strong(destination.dtype, destination.origin)
    if (op, target.node, value.node) in rules.in_place_pairs:
        joined = target
    else:
        try:
            joined = rules.join(target, value, op=op, names=names)
        except PromotionError as refused:
            raise _keeps(rules, op, target, value, refused.reason, names) from refused
    if joined.dtype != target.dtype:
        raise _keeps(rules, op, target, value, f"the join is {joined.node}", names)
    landing = target.dtype
    loss = inexact_beyond(value.dtype, landing) if not value.weak else None
    lossy = (LossyCast(1, value.dtype, landing, loss),) if loss is not None else ()
    return OpTyping(landing, (landing, landing), strong(landing), (landing, landing), "the destination keeps its dtype", 0, lossy)


def in_place(rules: RuleSet, family: str, destination: AType, *others: AType, op: str = "", names: Sequence[str] = ()) -> OpTyping:
    """The typing of an in-place operation (``ldexp_``, ``add_``, ``axpy_``) whose first operand is the destination.

    Allowed iff the operation's result has the destination's dtype. Raises PromotionError as `result_type` does, or PT205.
    """
    op = op or family
    target = strong(destination.dtype, destination.origin)
    if len(others) == 1 and (op, target.node, others[0].node) in rules.in_place_pairs:
        compute = compute_dtype(target.dtype)
        return OpTyping(compute, (compute, compute), target, (compute, compute), "the destination keeps its dtype", 0)
    typing = result_type(rules, family, target, *others, op=op, names=names)
    if typing.result.dtype != target.dtype:
        raise _keeps(rules, op, target, others[0] if others else target, f"the result is {typing.result.node}", names)
    return replace(typing, result=strong(target.dtype), rule="the destination keeps its dtype")


def _keeps(rules: RuleSet, op: str, target: AType, value: AType, why: str, names: Sequence[str]) -> PromotionError:
    reason = f"{why}, and the destination keeps {target.node}; it was left unchanged"
    name = names[1] if len(names) > 1 else "value"
    return PromotionError(refusal.DESTINATION, op, target, value, rules.name, reason, (target.node,), (cast_fix(name, target.node),))


def check_scalar(rules: RuleSet, value: bool | int | float, landing: DType, *, op: str = "scalar") -> None:
    """Refuse a Python scalar that does not fit the dtype it lands on: PromotionError (PT204), never a wrap.

    A float that overflows a float dtype is inf and passes; `scalars.overflows` tells, for the lint.
    """
    if why := misfit(value, landing):
        kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"
        scalar = AType(rules.default(kind), kind != "bool", describe(value))
        raise PromotionError(refusal.NO_FIT, op, scalar, strong(landing), rules.name, why, (landing.name,))
