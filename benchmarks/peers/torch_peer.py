"""PyTorch, eager: its fused functions where it has them, into preallocated tensors where its interface allows."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch.nn import functional

from benchmarks.peers import Inputs, Prepare, Prepared
from benchmarks.workloads import Array, Workload

BF16 = np.dtype(ml_dtypes.bfloat16)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": torch.add,
    "fma_relu": lambda a, b, c: torch.relu(a * b + c),
    "exp": torch.exp,
    "log": torch.log,
    "tanh": torch.tanh,
    "sin": torch.sin,
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "gelu_erf": functional.gelu,
    "swiglu": lambda a, b: functional.silu(a) * b,
    "pow": torch.pow,
    "pow_2": lambda x: torch.pow(x, 2),
    "pow_half": lambda x: torch.pow(x, 0.5),
    "pow_2p7": lambda x: torch.pow(x, 2.7),
    "ldexp": torch.ldexp,
    "softmax": lambda x: torch.softmax(x, -1),
    "rms_norm": lambda x, gamma: functional.rms_norm(x, (x.shape[1],), gamma, 1e-6),
    "layer_norm": lambda x, gamma, beta: functional.layer_norm(x, (x.shape[1],), gamma, beta, 1e-5),
    "sum_last": lambda x: x.sum(-1),
    "max_last": lambda x: x.amax(-1),
    "sum_first": lambda x: x.sum(0),
    "max_first": lambda x: x.amax(0),
    "matmul": torch.matmul,
    "matmul_bias_gelu": lambda a, b, bias: functional.gelu(torch.addmm(bias, a, b), approximate="tanh"),
    "attention": functional.scaled_dot_product_attention,
}
INTO: dict[str, Callable[..., Any]] = {  # the same with an ``out`` tensor
    "add": lambda out, a, b: torch.add(a, b, out=out),
    "fma_relu": lambda out, a, b, c: torch.addcmul(c, a, b, out=out).clamp_(min=0),
    "exp": lambda out, x: torch.exp(x, out=out),
    "log": lambda out, x: torch.log(x, out=out),
    "tanh": lambda out, x: torch.tanh(x, out=out),
    "sin": lambda out, x: torch.sin(x, out=out),
    "gelu": lambda out, x: torch.ops.aten.gelu.out(x, approximate="tanh", out=out),
    "gelu_erf": lambda out, x: torch.ops.aten.gelu.out(x, out=out),
    "swiglu": lambda out, a, b: torch.ops.aten.silu.out(a, out=out).mul_(b),
    "pow": lambda out, x, y: torch.pow(x, y, out=out),
    "pow_2": lambda out, x: torch.pow(x, 2, out=out),
    "pow_half": lambda out, x: torch.pow(x, 0.5, out=out),
    "pow_2p7": lambda out, x: torch.pow(x, 2.7, out=out),
    "softmax": lambda out, x: torch.softmax(x, -1, out=out),
    "matmul": lambda out, a, b: torch.mm(a, b, out=out),
}


def to_torch(array: Array) -> torch.Tensor:
    """A tensor over the same memory."""
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if array.dtype == BF16 else torch.from_numpy(array)


def to_numpy(tensor: Any) -> Array:
    """An array over the same memory."""
    array: Array = tensor.view(torch.int16).numpy().view(BF16) if tensor.dtype == torch.bfloat16 else tensor.numpy()
    return array


def load(threads: int) -> Prepare:
    """Holds torch to ``threads`` threads, and switches its gradients off."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return prepare


def prepare(workload: Workload, inputs: Inputs) -> Prepared | None:
    """The workload's function on tensors over the same memory as the other peers' arrays."""
    name = workload.operation.name
    operands = [to_torch(a) for a in inputs.values()]
    into = INTO.get(name)
    if into is not None:
        out = to_torch(workload.output())
        return Prepared(lambda: into(out, *operands), to_numpy)
    function = FUNCTIONS[name]
    return Prepared(lambda: function(*operands), to_numpy)
