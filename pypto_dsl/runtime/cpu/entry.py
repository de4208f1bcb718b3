"""The entry of a kernel that is called again: a call that is like the last one reaches its launcher without a step of Python.

An object's ``__call__`` is a frame of Python, which takes longer than a small kernel runs. `entered` makes a subtype whose call is a
function written here in LLVM IR. It goes to the method in Python for whatever is not as it was: keywords, no launcher, a context in which
one of the given variables is set (a kernel is being read, tile shapes are set outside, golden data waits), arguments that the launcher does
not take.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextvars import ContextVar
from types import FunctionType
from typing import Any

from pypto_dsl.runtime.cpu import fastcall, jit
from pypto_dsl.runtime.cpu.cache import ObjectCache, default_directory

# Offsets in a tuple and in a built-in function, whose definition begins with a name and the C function.
_COUNT, _ITEMS, _DEFINITION, _FUNCTION = 16, 24, 16, 8
_TP_CALL = 50  # the slot's number, of Python's stable interface
_DEFAULT = 1 << 18  # Py_TPFLAGS_DEFAULT

_WORDS = ("slot", "none", "true", "method")  # of the table; the variables follow
_TEXT = """
@kernel_table = global [{size} x ptr] zeroinitializer, align 64
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare ptr @PyObject_VectorcallDict(ptr, ptr, i64, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define ptr @kernel_call(ptr %kernel, ptr %arguments, ptr %keywords) {{
entry:
  %held = alloca ptr, align 8
  %none.p = getelementptr ptr, ptr @kernel_table, i64 1
  %none = load ptr, ptr %none.p
  %count.p = getelementptr i8, ptr %arguments, i64 {count}
  %count = load i64, ptr %count.p
  %items = getelementptr i8, ptr %arguments, i64 {items}
  %alone = icmp eq ptr %keywords, null
  br i1 %alone, label %look, label %python
look:
  %slot = load i64, ptr @kernel_table
  %launcher.p = getelementptr i8, ptr %kernel, i64 %slot
  %launcher = load ptr, ptr %launcher.p
  %without = icmp eq ptr %launcher, %none
  br i1 %without, label %python, label %variable0
{variables}variable{last}:
  %definition.p = getelementptr i8, ptr %launcher, i64 {definition}
  %definition = load ptr, ptr %definition.p
  %function.p = getelementptr i8, ptr %definition, i64 {function}
  %function = load ptr, ptr %function.p
  %answer = call ptr %function(ptr null, ptr %items, i64 %count)
  call void @Py_DecRef(ptr %answer)
  %true.p = getelementptr ptr, ptr @kernel_table, i64 2
  %true = load ptr, ptr %true.p
  %ran = icmp eq ptr %answer, %true
  br i1 %ran, label %done, label %python
done:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
python:
  %all = add i64 %count, 1
  %given = alloca ptr, i64 %all, align 8
  store ptr %kernel, ptr %given
  %rest = getelementptr ptr, ptr %given, i64 1
  %bytes = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %items, i64 %bytes, i1 false)
  %method.p = getelementptr ptr, ptr @kernel_table, i64 3
  %method = load ptr, ptr %method.p
  %result = call ptr @PyObject_VectorcallDict(ptr %method, ptr %given, i64 %all, ptr %keywords)
  ret ptr %result
}}
"""
_VARIABLE = """variable{k}:
  %variable{k}.p = getelementptr ptr, ptr @kernel_table, i64 {word}
  %asked{k} = load ptr, ptr %variable{k}.p
  call i32 @PyContextVar_Get(ptr %asked{k}, ptr %none, ptr %held)
  %found{k} = load ptr, ptr %held
  call void @Py_DecRef(ptr %found{k})
  %unset{k} = icmp eq ptr %found{k}, %none
  br i1 %unset{k}, label %variable{next}, label %python
"""


class _Slot(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("function", ctypes.c_void_p))


class _Specification(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("size", ctypes.c_int), ("item_size", ctypes.c_int), ("flags", ctypes.c_uint),
                ("slots", ctypes.POINTER(_Slot)))


def _text(variables: int) -> str:
    checks = "".join(_VARIABLE.format(k=k, next=k + 1, word=len(_WORDS) + k) for k in range(variables))
    return _TEXT.format(size=len(_WORDS) + variables, variables=checks, last=variables, count=_COUNT, items=_ITEMS, definition=_DEFINITION,
                        function=_FUNCTION)


def entered(base: type, slot: str, method: FunctionType, variables: Sequence[ContextVar[Any]]) -> type | None:
    """A subtype of ``base`` whose call asks the launcher in the instance's ``slot``, and else is ``method``, the ``__call__`` of ``base``.

    ``base`` keeps the slot by ``__slots__``, None where there is no launcher. A launcher is asked while each of ``variables`` is unset or
    None. Instances of ``base`` may be given the type as their class. None where this Python's objects do not lie as the entry reads them.
    """
    offset = _slot_offset(base, slot)
    if not fastcall.supported() or not _lies_as_read() or offset is None:
        return None
    text, machine = _text(len(variables)), jit.machine()
    code = ObjectCache(default_directory()).get((text, machine.fingerprint), lambda: jit.compile_object(text, machine))
    library = jit.Library(code, ("kernel_call", "kernel_table"))
    for i, word in enumerate((offset, id(None), id(True), id(method), *map(id, variables))):
        ctypes.c_uint64.from_address(library.address("kernel_table") + 8 * i).value = word
    slots = (_Slot * 2)(_Slot(_TP_CALL, library.address("kernel_call")), _Slot(0, None))
    name = f"{base.__module__}.{base.__qualname__}".encode()
    specification = _Specification(name, 0, 0, _DEFAULT, slots)
    make = ctypes.pythonapi.PyType_FromSpecWithBases
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object]
    made: Any = make(ctypes.addressof(specification), (base,))
    made.__doc__, made.entry_uses = base.__doc__, (library, specification, method, tuple(variables))  # as long as the type is there
    kind: type = made
    return kind


def _slot_offset(kind: type, name: str) -> int | None:
    """Where instances of ``kind`` keep the slot ``name``, found by looking; None where it is not found once and only once."""
    probe: Any = object.__new__(kind)
    held = object()
    setattr(probe, name, held)
    words = (ctypes.c_uint64 * (kind.__basicsize__ // 8)).from_address(id(probe))
    found = [i for i, word in enumerate(words) if word == id(held)]
    return found[0] * 8 if len(found) == 1 else None


def _lies_as_read() -> bool:
    """Whether tuples and built-in functions have the layout that the entry reads."""
    probe = (object(), object(), object())
    definition = fastcall.MethodDefinition(b"probe", None, fastcall.METH_FASTCALL, None)
    words = (ctypes.c_uint64 * 4).from_address(id(probe) + _COUNT)
    return (list(words) == [3, *map(id, probe)] and fastcall.MethodDefinition.function.offset == _FUNCTION
            and ctypes.c_uint64.from_address(id(fastcall.builtin(definition)) + _DEFINITION).value == ctypes.addressof(definition))
