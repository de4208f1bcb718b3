"""Inits and formats: every call gets the configuration it needs, before the loop when one serves all of its turns."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.placement.ttmetal.roles import flat
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Buffer, For, If, Statement, TileKernel
from pypto_dsl.compiler.tile_ir.ttmetal import Compute, PackPage, RoleBody, Setup, When

# What the hardware is set to, by domain: the unpacker and FPU's init, the SFPU's, and the formats of SrcA, SrcB and the packer.
DOMAINS = ("A", "B", "fpu", "sfpu", "P")
FORMATS = {"A": "format_a", "B": "format_b", "P": "format_pack"}
State = dict[str, object]


@dataclass(frozen=True)
class Need:
    """One domain's setting that a statement relies on, and the call that makes it."""

    domain: str
    key: object
    setup: Setup


def configure(kernel: TileKernel, target: Target) -> TileKernel:
    """Insert `Setup` statements into the compute body of a sliced kernel, startup first."""
    shared: Mapping[str, str] = target.table("shared_inits")
    return replace(kernel, body=tuple(_role(s, shared) if isinstance(s, RoleBody) and s.role == "compute" else s for s in kernel.body))


def _role(role: RoleBody, shared: Mapping[str, str]) -> RoleBody:
    statements = flat(role.body)
    needs = [n for s in statements for n in _needs(s, shared)]
    first = {d: next((n for n in needs if n.domain == d), None) for d in DOMAINS}
    a, b, packed = (first[d].setup.buffers[0] if first[d] is not None else None for d in ("A", "B", "P"))  # type: ignore[union-attr]
    a, b = a or b, b or a
    if packed is None:
        return role  # data movement only: the compute kernel has nothing to do
    a, b = a or packed, b or packed  # a kernel without inputs still starts the hardware up
    calls = [s for s in statements if isinstance(s, Compute)]
    reverse = calls[0].call.startswith("matmul")
    startup = Setup("startup_reverse", (b, a, packed)) if reverse else Setup("startup", (a, b, packed))
    state: State = {"A": a.dtype, "B": b.dtype, "P": packed.dtype, "fpu": None, "sfpu": None}
    body, _ = _process(role.body, state, shared)
    return replace(role, body=(startup, *body))


def _needs(s: Statement, shared: Mapping[str, str]) -> list[Need]:
    """What one statement relies on (not its body)."""
    if isinstance(s, PackPage):
        return [_format("P", s.buffer)]
    if isinstance(s, Setup) and s.call.startswith("reduce_") and s.buffers:
        source, scaler, _ = s.buffers
        swapped = s.call == "reduce_sum_cols_init"  # a matrix product: the scaler sits in SrcA
        return [_format("A", scaler if swapped else source), _format("B", source if swapped else scaler)]
    if not isinstance(s, Compute):
        return []
    if s.call.startswith("reduce_"):
        return []  # its own init stands before it
    buffers = tuple(t.buffer for t in s.tiles)
    if s.call.startswith("matmul"):
        init = Need("fpu", (s.call, *(b.dtype.name for b in buffers)), Setup(f"{s.call}_init", buffers))
        return [_format("A", buffers[1]), _format("B", buffers[0]), init]
    if s.call.startswith("copy"):
        through_b = s.call != "copy" and not buffers[0].direct  # a broadcast copy goes through SrcB unless unpacked straight to DST
        init = Need("fpu", (s.call, buffers[0].dtype.name), Setup(f"{s.call}_init", buffers))
        return [_format("B" if through_b else "A", buffers[0]), init]
    if s.call.startswith("fpu_"):
        init = Need("fpu", (s.call, *(b.dtype.name for b in buffers)), Setup(f"{s.call}_init", buffers))
        return [_format("A", buffers[0]), _format("B", buffers[1]), init]
    name = shared.get(s.call, s.call)
    return [Need("sfpu", name, Setup(f"{name}_init"))]


def _format(side: str, buffer: Buffer) -> Need:
    return Need(side, buffer.dtype, Setup(FORMATS[side], (buffer,)))


def _clobbers(s: Statement) -> bool:
    """Whether the statement sets the FPU's init by itself."""
    return isinstance(s, Setup) and s.call.startswith("reduce_")


def _process(body: Sequence[Statement], state: State, shared: Mapping[str, str]) -> tuple[list[Statement], State]:
    """The body with its setups, and the state behind it."""
    result: list[Statement] = []
    for s in body:
        if isinstance(s, For):
            before, inner, state = _loop(s, state, shared)
            result += [*before, inner]
        elif isinstance(s, When):
            inside, after = _process(s.body, dict(state), shared)
            result.append(replace(s, body=tuple(inside)))
            state = _meet(state, after)
        elif isinstance(s, If):
            (then, one), (orelse, other) = _process(s.body, dict(state), shared), _process(s.orelse, dict(state), shared)
            result.append(replace(s, body=tuple(then), orelse=tuple(orelse)))
            state = _meet(one, other)
        else:
            result += [*_apply(_needs(s, shared), state), s]
            if isinstance(s, Setup) and _clobbers(s):
                state["fpu"] = s.call if s.buffers else None
    return result, state


def _loop(s: For, state: State, shared: Mapping[str, str]) -> tuple[list[Statement], For, State]:
    """Settings that are the same throughout go in front; the rest is what both the first and every later turn can rely on."""
    inside = flat(s.body)
    hoisted: list[Need] = []
    for domain in DOMAINS:
        needs = [n for x in inside for n in _needs(x, shared) if n.domain == domain]
        if len({n.key for n in needs}) == 1 and not (domain == "fpu" and any(map(_clobbers, inside))):
            hoisted.append(needs[0])
    state = dict(state)
    before = _apply(hoisted, state)
    for _ in range(len(DOMAINS) + 1):
        body, end = _process(s.body, dict(state), shared)
        entry = _meet(state, end)
        if entry == state:
            return before, replace(s, body=tuple(body)), end
        state = entry
    raise CompilerBug("placement.ttmetal.configure", "the state at the head of a loop does not settle")


def _meet(a: State, b: State) -> State:
    return {d: a[d] if a[d] == b[d] else None for d in DOMAINS}


def _apply(needs: Sequence[Need], state: State) -> list[Statement]:
    """The setups that are not in force, formats before inits, both sources in one call; ``state`` is brought up to date."""
    missing = [n for n in sorted(needs, key=lambda n: DOMAINS.index(n.domain)) if state[n.domain] != n.key]
    for n in missing:
        state[n.domain] = n.key
    sides = [n for n in missing if n.domain in ("A", "B")]
    result: list[Statement] = []
    if len(sides) == 2:
        result.append(Setup("format_ab", tuple(n.setup.buffers[0] for n in sides)))
    else:
        result += [n.setup for n in sides]
    return [*result, *(n.setup for n in missing if n not in sides)]
