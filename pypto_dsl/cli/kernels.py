"""Finding the kernel that a command line names: `FILE.py`, `FILE.py:NAME` or `FILE.ptir`, and the shapes given with ``--shape``."""
from __future__ import annotations

import difflib
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np

from pypto_dsl import measure
from pypto_dsl.compiler import targets as registry
from pypto_dsl.compiler.dtypes import BY_NAME, BY_PYPTO, DType
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.driver import Kernel, Specialisation
from pypto_dsl.frontend.targets import EMULATED
from pypto_dsl.frontend.vocabulary import Annotation

SHAPE = re.compile(r"(?P<name>\w+)=(?P<extents>\d+(x\d+)*)?(,(?P<dtype>\w+))?$")


@dataclass(frozen=True)
class Shape:
    """One ``--shape``: a parameter's extents and dtype, None where not given."""

    name: str
    extents: tuple[int, ...] | None
    dtype: DType | None


@dataclass(frozen=True)
class Source:
    """A kernel as found: a `Kernel` with its module, or a Graph read from text. ``path`` is the file."""

    path: Path
    name: str
    kernel: Kernel | None
    graph: Graph | None
    module: ModuleType | None

    def member(self, name: str) -> Callable[..., Any] | None:
        """A function that the kernel's file defines beside it (`inputs`, `reference`), or None."""
        found = getattr(self.module, f"{self.name}_{name}", None) or getattr(self.module, name, None)
        return found if callable(found) and not isinstance(found, Kernel) else None


def parse_shape(text: str) -> Shape:
    """A Shape from ``x=64x128,f32``; click's BadParameter says what is wrong with another text."""
    found = SHAPE.match(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not of the form x=64x128,f32")
    named = found["dtype"]
    dtype = None if named is None else BY_NAME.get(named) or BY_PYPTO.get(named)
    if named is not None and dtype is None:
        close = difflib.get_close_matches(named, BY_NAME, 1)
        raise click.BadParameter(f"{named} is no dtype; " + (f"did you mean {close[0]}?" if close else f"dtypes are {', '.join(BY_NAME)}"))
    extents = None if found["extents"] is None else tuple(int(e) for e in found["extents"].split("x"))
    return Shape(found["name"], extents, dtype)


shape_option = click.option("--shape", "shapes", multiple=True, metavar="NAME=EXTENTS[,DTYPE]",
                            callback=lambda ctx, param, texts: tuple(map(parse_shape, texts)),
                            help="Extents and dtype of a parameter, e.g. x=64x128,f32; repeat per parameter.")


class TargetName(click.types.StringParamType):
    """The name of a target, where one must be given: without it the targets are listed."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """What there is to choose from."""
        return f"Targets are {', '.join(registry.names())}."


def checked_target(known: Callable[[], Sequence[str]], admits: Callable[[str], bool] | None = None
                   ) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback for options that name targets: BadParameter for a name that is none of ``known()``, with the nearest.

    ``admits`` answers for one name without the list, which reads the files of all targets. The path of a target's file passes; reading
    it says what is wrong with it.
    """

    def check(_: click.Context, __: click.Parameter, value: Any) -> Any:
        for name in value if isinstance(value, tuple) else () if value is None else (value,):
            if registry.is_file(name.removesuffix(EMULATED)) or (admits is not None and admits(name)):
                continue
            if name not in known():
                close = difflib.get_close_matches(name, known(), 1)
                raise click.BadParameter(f"there is no target {name}; " + (f"did you mean {close[0]}? " if close else "")
                                         + f"targets are {', '.join(known())}")
        return value

    return check


def find(text: str) -> Source:
    """The kernel that ``text`` names. Raises click's usage errors for what is not there, and what importing the file raises."""
    path_text, _, name = text.partition(":") if ".py:" in text else (text, "", "")
    path = Path(path_text)
    if not path.is_file():
        raise click.BadParameter(f"there is no file {path_text}", param_hint="KERNEL")
    contents = path.read_text(encoding="utf-8")
    click.get_current_context().find_root().meta.setdefault("kernel files", {})[path.name] = contents
    if path.suffix == ".ptir":
        graph = read_graph(contents, str(path), places=True)
        return Source(path, graph.name, None, graph, None)
    if path.suffix != ".py":
        raise click.BadParameter(f"{path_text} is neither a .py nor a .ptir file", param_hint="KERNEL")
    module = _imported(path)
    kernels = {key: value for key, value in vars(module).items() if isinstance(value, Kernel)}
    return Source(path, *_chosen(kernels, name, path), None, module)


def _imported(path: Path) -> ModuleType:
    name = f"ptc_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise click.BadParameter(f"{path} cannot be imported", param_hint="KERNEL")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as Python does for a script
    spec.loader.exec_module(module)
    return module


def _chosen(kernels: Mapping[str, Kernel], name: str, path: Path) -> tuple[str, Kernel]:
    if not kernels:
        raise click.BadParameter(f"{path} defines no kernel: no function decorated with @pypto.jit", param_hint="KERNEL")
    if name:
        if name not in kernels:
            raise click.BadParameter(f"{path} has no kernel {name}; it has {', '.join(kernels)}", param_hint="KERNEL")
        return name, kernels[name]
    if path.stem in kernels:
        return path.stem, kernels[path.stem]
    if len(kernels) > 1:
        raise click.BadParameter(f"{path} has several kernels; name one: " + ", ".join(f"{path}:{k}" for k in kernels), param_hint="KERNEL")
    return next(iter(kernels.items()))


def arguments(source: Source, shapes: tuple[Shape, ...], seed: int) -> dict[str, Any]:
    """Arguments for a kernel: from its file's `inputs`, else generated from annotations, defaults and ``--shape``.

    A file's `inputs` is called with a NumPy generator and returns a dict, or a tuple in the order of the signature. A usage error names
    the parameter whose shape or dtype nothing says.
    """
    given = {shape.name: shape for shape in shapes}
    generator = np.random.default_rng(seed)
    if source.graph is not None:
        return _graph_arguments(source.graph, given, generator)
    if source.kernel is None:
        raise TypeError("a source has a kernel or a graph")
    unknown = sorted(set(given) - set(source.kernel.signature.parameters))
    if unknown:
        raise click.BadParameter(f"{source.name} has no parameter {unknown[0]}; it has {', '.join(source.kernel.signature.parameters)}",
                                 param_hint="--shape")
    own = source.member("inputs")
    if own is not None and not shapes:
        made = own(generator)
        parameters = source.kernel.signature.parameters
        defaults = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
        return defaults | dict(made if isinstance(made, Mapping) else zip(parameters, made, strict=False))
    found: dict[str, Any] = {}
    for name, parameter in source.kernel.signature.parameters.items():
        annotation = source.kernel.annotations.get(name)
        if isinstance(annotation, Annotation) or name in given or name in source.kernel.tensor_parameters:
            found[name] = _array(name, annotation if isinstance(annotation, Annotation) else Annotation(), given.get(name), generator)
        elif parameter.default is parameter.empty:
            raise click.UsageError(f"{source.name} needs a value for `{name}`; annotate a tensor, `{name}: pypto.Tensor([64, 64], "
                                   f"pypto.DT_FP32)`, or say --shape {name}=64x64,f32, or give the file a function `inputs(generator)` "
                                   f"that returns ({', '.join(source.kernel.signature.parameters)})")
        else:
            found[name] = parameter.default
    return found


def recorded(source: Source, shapes: tuple[Shape, ...]) -> Graph:
    """The graph of a kernel for what `--shape` says, else for its file's `inputs`, else for what its annotations say: DYNAMIC stays open.

    A usage error names the parameter whose shape or dtype nothing says.
    """
    return source.graph if source.graph is not None else specialised(source, shapes).graph


def specialised(source: Source, shapes: tuple[Shape, ...]) -> Specialisation:
    """As `recorded`, for a kernel in Python: the form that those arguments select."""
    if source.kernel is None:
        raise TypeError("a source has a kernel or a graph")
    if not shapes and source.member("inputs") is None and source.kernel.stands_alone():
        return source.kernel.specialise()
    return source.kernel.specialise(**arguments(source, shapes, 0))


OPEN_EXTENT = 100  # what a DYNAMIC axis, or a symbol of a text kernel, is when no --shape says otherwise


def _array(name: str, annotation: Annotation, shape: Shape | None, generator: np.random.Generator) -> Any:
    dtype = (shape.dtype if shape is not None else None) or annotation.dtype
    extents = shape.extents if shape is not None else None
    if extents is None:
        pattern = [OPEN_EXTENT if annotation.is_dynamic(e) else e for e in annotation.shape or (...,)]
        if not all(isinstance(e, int) and not isinstance(e, bool) and e >= 0 for e in pattern):
            raise click.UsageError(f"the shape of `{name}` is not fixed by its annotation; give --shape {name}=64x128" + (
                "" if dtype is not None else ",f32"))
        extents = tuple(pattern)
    if dtype is None:
        size = "x".join(map(str, extents))
        raise click.UsageError(f"the dtype of `{name}` is not fixed by its annotation; give --shape {name}={size},f32")
    return measure.generated(extents, dtype, generator)


def _graph_arguments(graph: Graph, given: Mapping[str, Shape], generator: np.random.Generator) -> dict[str, Any]:
    """Arrays for a graph read from text: its symbols are taken from the given shapes, all others are `OPEN_EXTENT`."""
    ranks = {p.name: p.type for p in graph.parameters}
    for name, shape in given.items():
        if name not in ranks:
            raise click.BadParameter(f"{graph.name} has no parameter {name}; it has {', '.join(ranks)}", param_hint="--shape")
        if shape.extents is not None and len(shape.extents) != ranks[name].rank:
            raise click.BadParameter(f"`{name}` is {ranks[name]}, and {len(shape.extents)} extents are given", param_hint="--shape")
    symbols = {s.name: OPEN_EXTENT for s in graph.symbols.values()}
    for symbol in graph.symbols.values():
        shape_of = given.get(symbol.parameter)
        if symbol.kind == "dim" and shape_of is not None and shape_of.extents is not None:
            symbols[symbol.name] = shape_of.extents[symbol.axis]
    return {p.name: measure.generated([e.evaluate(symbols) for e in p.type.shape], p.type.dtype, generator) for p in graph.parameters}
