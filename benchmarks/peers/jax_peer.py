"""jax: the whole workload under jax.jit, inputs on its device beforehand; it allocates its results."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.peers import Inputs, Prepare, Prepared
from benchmarks.workloads import Workload


def _rms_norm(x: Any, gamma: Any) -> Any:
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * gamma


def _layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(-1, keepdims=True)
    return (centred * jax.lax.rsqrt(wide.var(-1, keepdims=True) + 1e-5)).astype(x.dtype) * gamma + beta


def _attention(query: Any, key: Any, value: Any) -> Any:
    scores = jnp.einsum("bhid,bhjd->bhij", query, key) * (1 / math.sqrt(query.shape[-1]))
    return jnp.einsum("bhij,bhjd->bhid", jax.nn.softmax(scores, -1), value)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "fma_relu": lambda a, b, c: jax.nn.relu(a * b + c),
    "exp": jnp.exp,
    "log": jnp.log,
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "gelu": lambda x: jax.nn.gelu(x, approximate=True),
    "gelu_erf": lambda x: jax.nn.gelu(x, approximate=False),
    "swiglu": lambda a, b: jax.nn.silu(a) * b,
    "pow": lambda x, y: x ** y,
    "pow_2": lambda x: x ** 2.0,
    "pow_half": lambda x: x ** 0.5,
    "pow_2p7": lambda x: x ** 2.7,
    "ldexp": jnp.ldexp,
    "softmax": lambda x: jax.nn.softmax(x, -1),
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "sum_last": lambda x: x.sum(-1),
    "max_last": lambda x: x.max(-1),
    "sum_first": lambda x: x.sum(0),
    "max_first": lambda x: x.max(0),
    "matmul": lambda a, b: a @ b,
    "matmul_bias_gelu": lambda a, b, bias: jax.nn.gelu(a @ b + bias, approximate=True),
    "attention": _attention,
}


def load(threads: int) -> Prepare:
    """Threads are set by the environment."""
    return prepare


def prepare(workload: Workload, inputs: Inputs) -> Prepared | None:
    """The compiled function on device arrays; a run ends when its result is there."""
    compiled = jax.jit(FUNCTIONS[workload.operation.name])
    operands = [jax.device_put(a).block_until_ready() for a in inputs.values()]
    return Prepared(lambda: compiled(*operands).block_until_ready())
