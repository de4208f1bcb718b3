"""The table of emulated vendor calls: one body per call, dtype and mode, with its NumPy reference and relative tolerance."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

N = 1024
Array = npt.NDArray[Any]
NUMPY = {
    "float": np.dtype(np.float32), "half": np.dtype(np.float16), "bfloat16_t": np.dtype(ml_dtypes.bfloat16), "int8_t": np.dtype(np.int8),
    "int16_t": np.dtype(np.int16), "int32_t": np.dtype(np.int32), "int64_t": np.dtype(np.int64), "uint32_t": np.dtype(np.uint32),
}


@dataclass(frozen=True)
class Call:
    """`body` computes z from x and y (1,024 lanes each, `tmp` is scratch); `reference` says what z must be."""

    name: str
    source: str
    result: str
    body: str
    reference: Callable[[Array, Array], Array]
    tolerance: float = 0.0


def c99_pow(x: Array, y: float | Array) -> Array:
    exponent = np.broadcast_to(np.asarray(y, np.float64), x.shape).copy()  # an array: a scalar 0.5 takes NumPy's sqrt, NaN at -inf
    return np.power(x.astype(np.float64), exponent)


ROUNDED: dict[str, Callable[[Array], Array]] = {
    "RINT": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc, "ROUND": lambda x: np.trunc(x + np.copysign(0.5, x))}


def to_int(x: Array, mode: str, dtype: type[np.signedinteger[Any]]) -> Array:
    info = np.iinfo(dtype)
    r = ROUNDED[mode](x.astype(np.float64))
    limited = np.clip(np.nan_to_num(r, nan=0, posinf=1e30, neginf=-1e30), float(info.min), float(info.max))
    return np.where(np.isnan(r), 0, limited).astype(np.int64).astype(dtype)


def exact(f: Callable[..., Any]) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.asarray(f(a.astype(np.float64)))


def unary() -> list[Call]:
    plain = {"Exp": np.exp, "Ln": np.log, "Sqrt": np.sqrt, "Abs": np.abs, "Relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0))}
    scratch = {"Tanh": np.tanh, "Erf": np.vectorize(math.erf), "Sin": np.sin, "Cos": np.cos, "Floor": np.floor, "Ceil": np.ceil,
               "Round": np.rint, "Trunc": np.trunc, "Log2": np.log2, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Sign": np.sign}
    rough = {"Rsqrt": lambda x: 1 / np.sqrt(x), "Reciprocal": lambda x: 1 / x}  # the device's error class, so that nobody relies on them
    calls = [Call(api, "float", "float", f"{api}(z, x, {N});", exact(f), 3e-7) for api, f in plain.items()]
    calls += [Call(api, "float", "float", f"{api}(z, x, tmp, {N});", exact(f), 1e-6) for api, f in scratch.items()]
    calls += [Call(api, "float", "float", f"{api}(z, x, {N});", exact(f), 2.0**-11) for api, f in rough.items()]
    return [*calls, Call("Not", "int16_t", "int16_t", f"Not(z, x, {N});", lambda a, b: ~a)]


def binary() -> list[Call]:
    floats = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Max": np.maximum, "Min": np.minimum}
    integers = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "And": np.bitwise_and, "Or": np.bitwise_or, "Max": np.maximum,
                "Min": np.minimum}
    repeat = f"64, {N // 64}, BinaryRepeatParams()"
    calls = [Call(api, "float", "float", f"{api}(z, x, y, {N});", f) for api, f in floats.items()]
    calls += [Call(f"{api}Repeat", "float", "float", f"{api}(z, x, y, {repeat});", f) for api, f in floats.items()]
    calls += [Call(f"{api}Int", t, t, f"{api}(z, x, y, {N});", f) for t in ("int32_t", "int16_t") for api, f in integers.items()]
    axpy = f"Duplicate(z, 2.0f, {N});\n    PipeBarrier<PIPE_V>();\n    Axpy(z, x, 3.0f, {N});"
    return [*calls, Call("Axpy", "float", "float", axpy, lambda a, b: np.float32(2) + np.float32(3) * a)]


def with_scalar() -> list[Call]:
    k = np.float32(1.5)
    floats: dict[str, Callable[[Array], Array]] = {
        "Adds": lambda a: a + k, "Muls": lambda a: a * k, "Maxs": lambda a: np.maximum(a, k), "Mins": lambda a: np.minimum(a, k),
        "LeakyRelu": lambda a: np.where(a >= 0, a, a * k)}
    calls = [Call(api, "float", "float", f"{api}(z, x, 1.5f, {N});", lambda a, b, f=f: f(a)) for api, f in floats.items()]
    shifts = [Call("ShiftLeft", "int32_t", "int32_t", f"ShiftLeft(z, x, 5, {N});", lambda a, b: a << 5),
              Call("ShiftRight", "int32_t", "int32_t", f"ShiftRight(z, x, 5, {N});", lambda a, b: a >> 5),
              Call("ShiftRightUnsigned", "uint32_t", "uint32_t", f"ShiftRight(z, x, 5u, {N});", lambda a, b: a >> 5)]
    index = [Call("CreateVecIndex", t, t, f"CreateVecIndex(z, {t}(7), {N});", lambda a, b: np.arange(7, 7 + N))
             for t in ("int32_t", "float")]
    return calls + shifts + index


def power() -> list[Call]:
    numbers = {"2.5f": 2.5, "3.0f": 3, "-1.0f": -1, "0.0f": 0, "0.5f": 0.5, "__builtin_inff()": np.inf, "-__builtin_inff()": -np.inf,
               '__builtin_nanf("")': np.nan}
    calls = [Call("Power", "float", "float", f"Power<float>(z, x, {text}, tmp, {N});", lambda a, b, v=v: c99_pow(a, v), 5e-6)
             for text, v in numbers.items()]
    return [*calls, Call("PowerTensor", "float", "float", f"Power<float>(z, x, y, tmp, {N});", lambda a, b: c99_pow(a, b), 2e-5),
            Call("PowerInt", "int32_t", "int32_t", f"Power<int32_t>(z, x, 5, tmp, {N});", lambda a, b: a * a * a * a * a)]


def cast() -> list[Call]:
    calls = []
    for mode in ROUNDED:
        body = f"Cast(z, x, RoundMode::CAST_{mode}, {N});"
        to_integers = (("float", "int32_t"), ("float", "int16_t"), ("half", "int8_t"), ("half", "int32_t"), ("bfloat16_t", "int32_t"))
        for source, result in to_integers:
            calls.append(Call(f"Cast{mode}", source, result, body, lambda a, b, m=mode, r=result: to_int(a, m, NUMPY[r].type)))
        calls.append(Call(f"Cast{mode}", "float", "float", body, lambda a, b, m=mode: ROUNDED[m](a.astype(np.float64))))
    pairs = (("float", "half", "NONE"), ("half", "float", "NONE"), ("float", "half", "RINT"), ("float", "bfloat16_t", "RINT"),
             ("bfloat16_t", "float", "NONE"), ("int32_t", "float", "NONE"), ("int16_t", "float", "NONE"), ("int8_t", "half", "NONE"))
    for source, result, mode in pairs:
        body = f"Cast(z, x, RoundMode::CAST_{mode}, {N});"
        calls.append(Call(f"Cast{mode}", source, result, body, lambda a, b, r=result: a.astype(NUMPY[r])))
    return calls


def compare() -> list[Call]:
    modes = {"LT": np.less, "GT": np.greater, "EQ": np.equal, "LE": np.less_equal, "GE": np.greater_equal, "NE": np.not_equal}
    calls = []
    for mode, f in modes.items():
        tensors = f"Compare(tmp, x, y, CMPMODE::{mode}, {N});\n    PipeBarrier<PIPE_V>();\n    " \
                  f"Select(z, tmp, x, y, SELMODE::VSEL_TENSOR_TENSOR_MODE, {N});"
        number = f"CompareScalar(tmp, x, 1.0f, CMPMODE::{mode}, {N});\n    PipeBarrier<PIPE_V>();\n    " \
                 f"Select(z, tmp, x, 9.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, {N});"
        calls.append(Call(f"Compare{mode}", "float", "float", tensors, lambda a, b, f=f: np.where(f(a, b), a, b)))
        calls.append(Call(f"CompareScalar{mode}", "float", "float", number, lambda a, b, f=f: np.where(f(a, 1), a, np.float32(9))))
    return calls


def reduce() -> list[Call]:
    """From lane 64 on, where the special values of the inputs have ended."""
    calls = []
    for api, f in (("Sum", np.sum), ("Max", np.max), ("Min", np.min)):
        order = ", ReduceOrder::ORDER_ONLY_VALUE" if api != "Sum" else ""
        clear = f"Duplicate(z, 0.0f, {N});\n    PipeBarrier<PIPE_V>();\n    "

        def whole(a: Array, b: Array, f: Callable[..., Any] = f) -> Array:
            return np.concatenate([[f(a[64:64 + 777].astype(np.float64))], np.zeros(N - 1)])

        def rows(a: Array, b: Array, f: Callable[..., Any] = f) -> Array:
            return np.concatenate([f(a[64:].reshape(15, 64)[:, :37].astype(np.float64), axis=1), np.zeros(N - 15)])

        one, many = f"Reduce{api}(z, x[64], tmp.ReinterpretCast<float>(), 777);", f"WholeReduce{api}(z, x[64], 37, 15, 1, 1, 8{order});"
        calls.append(Call(f"Reduce{api}", "float", "float", clear + one, whole, 2e-6))
        calls.append(Call(f"WholeReduce{api}", "float", "float", clear + many, rows, 2e-6))
    return calls


FLAGS_BODY = f"""Duplicate(z, 0.0f, {N});
    const event_t seen = pipe.AllocEventID<HardEvent::V_S>();
    SetFlag<HardEvent::V_S>(seen);
    WaitFlag<HardEvent::V_S>(seen);
    z.SetValue(3, x.GetValue(70));
    const event_t written = pipe.AllocEventID<HardEvent::S_V>();
    SetFlag<HardEvent::S_V>(written);
    WaitFlag<HardEvent::S_V>(written);
    PipeBarrier<PIPE_V>();
    Adds(z, z, 1.0f, {N});"""
PAD_BODY = f"""Duplicate(z, 0.0f, {N});
    DataCopyPad(x, aGm, DataCopyExtParams(2, 250 * sizeof(float), 0, 1, 0), DataCopyPadExtParams<float>(true, 0, 6, -1.0f));
    PipeBarrier<PIPE_ALL>();
    Adds(z, x, 0.0f, 256);
    Adds(z[256], x[264], 0.0f, 256);"""
GATHER_BODY = f"""Duplicate(y, 4 * 17, {N});
    PipeBarrier<PIPE_V>();
    Gather(z, x, y.ReinterpretCast<uint32_t>(), 4, {N});"""


def padded(a: Array, b: Array) -> Array:
    return np.concatenate([a[:250], np.full(6, -1), a[250:500], np.full(6, -1), np.zeros(N - 512)])


def movement() -> list[Call]:
    return [
        Call("Flags", "float", "float", FLAGS_BODY, lambda a, b: np.concatenate([np.ones(3), [a[70] + np.float32(1)], np.ones(N - 4)])),
        Call("Pad", "float", "float", PAD_BODY, padded),
        Call("Brcb", "float", "float", f"Brcb(z, x, {N // 64}, BrcbRepeatParams(1, 8));", lambda a, b: np.repeat(a[:N // 8], 8)),
        Call("Gather", "int32_t", "int32_t", GATHER_BODY, lambda a, b: np.full(N, a[18])),
        Call("CopyLocal", "half", "half", f"DataCopy(z, x, {N});", lambda a, b: a),
    ]


CALLS = [call for family in (unary, binary, with_scalar, power, cast, compare, reduce, movement) for call in family()]


def inputs(c_type: str, rng: np.random.Generator) -> Array:
    if c_type == "float":
        x = (rng.standard_normal(N) * 4).astype(np.float32)
        x[:20] = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, -2.5, 3e9, -3e9, 40000, -40000, 1e-40, -1e-40, 3, -3]
        return x
    if c_type == "half":
        x = (rng.standard_normal(N) * 100).astype(np.float16)
        x[:6] = [np.nan, np.inf, -np.inf, 0.5, 1e-7, -2.5]
        return x
    if c_type == "bfloat16_t":
        return inputs("float", rng).astype(ml_dtypes.bfloat16)
    info = np.iinfo(NUMPY[c_type])
    return rng.integers(info.min, info.max, N, dtype=NUMPY[c_type].type, endpoint=True)
