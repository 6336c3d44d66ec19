"""``dataclass`` as the standard one, but quicker to define: what can be is written once for all classes.

The standard library writes and compiles six methods for every class anew, which was a fifth of the time of a
short command.  Here a frozen class gets only an ``__init__`` of its own, whose code it shares, but for names,
with all classes of as many fields.  `ncukit.run.tools.cuda`, which runs as a script by itself, has the
standard one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
        """Return ``cls`` as `dataclasses.dataclass` does with these options.

        >>> @dataclass(frozen=True)
        ... class Point:
        ...     x: int
        >>> Point(1), Point(1) == Point(1), len({Point(1), Point(1)})
        (Point(x=1), True, 1)
        """

        def made(cls: type) -> type:
            inherits = any(map(dataclasses.is_dataclass, cls.__bases__))
            return _frozen(cls, eq) if frozen and not inherits else standard(cls)

        standard = dataclasses.dataclass(frozen=frozen, eq=eq)
        return made if cls is None else made(cls)


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _frozen(cls: Any, eq: bool) -> Any:
    own = dict(cls.__dict__)
    dataclasses.dataclass(cls, init=False, repr=False, eq=False)
    for name, value in {"init": True, "repr": True, "eq": eq, "frozen": True}.items():
        setattr(cls.__dataclass_params__, name, value)
    fields = dataclasses.fields(cls)
    cls.__init__ = _init(cls, fields, "__post_init__" in own)
    cls.__setattr__, cls.__delattr__ = _refuse_to_set, _refuse_to_delete
    cls.__repr__ = own.get("__repr__", _text)
    if eq:
        names = [field.name for field in fields if field.compare]
        names *= 2 if len(names) == 1 else 1  # then too a tuple, in which a NaN equals itself
        cls._compared = staticmethod(attrgetter(*names) if names else _nothing)
        cls.__eq__ = own.get("__eq__", _equal)
        cls.__hash__ = own.get("__hash__") or _hash
    return cls


def _init(cls: Any, fields: tuple[dataclasses.Field[Any], ...], post: bool) -> Callable[..., None]:
    """Return the ``__init__`` of ``cls``, which has these ``fields``, and a ``__post_init__`` or none."""
    set_here = [field for field in fields if _kind(field)]  # of the others the default is one of the class
    code = _code(tuple(map(_kind, set_here)), post)
    names = {f"_{n}": field.name for n, field in enumerate(set_here)}
    known: dict[str, Any] = {"_set": object.__setattr__, "_new": _FACTORY}
    known |= {f"_make_{n}": field.default_factory for n, field in enumerate(set_here)}
    arguments = [field for field in set_here if field.init]
    defaults = [value for field in arguments if (value := _default(field)) is not dataclasses.MISSING]
    if any(_default(field) is dataclasses.MISSING for field in arguments[len(arguments) - len(defaults) :]):
        raise TypeError(f"a field of {cls.__qualname__} without a default follows one with a default")
    init = FunctionType(
        code.replace(
            co_varnames=tuple(names.get(name, name) for name in code.co_varnames),
            co_consts=tuple(names.get(value, value) for value in code.co_consts),
        ),
        known,
        argdefs=tuple(defaults),
    )
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in arguments} | {"return": None}
    return init


def _kind(field: dataclasses.Field[Any]) -> str:
    made = field.default_factory is not dataclasses.MISSING
    return ("given or made" if made else "given") if field.init else "made" if made else ""


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else _FACTORY


@cache
def _code(kinds: tuple[str, ...], post: bool) -> CodeType:
    """Return the code of an ``__init__`` that sets fields of these ``kinds``, which it calls _0, _1, ..."""
    values = {
        "given": "_{0}",
        "given or made": "_make_{0}() if _{0} is _new else _{0}",
        "made": "_make_{0}()",
    }
    arguments = ["self", *(f"_{n}" for n, kind in enumerate(kinds) if kind != "made")]
    body = [f" _set(self, '_{n}', {values[kind].format(n)})" for n, kind in enumerate(kinds)]
    if post:
        body.append(" self.__post_init__()")
    made: dict[str, Any] = {}
    lines = (f"def __init__({', '.join(arguments)}):", *(body or [" pass"]))
    exec("\n".join(lines), made)  # noqa: S102 - nothing from outside is in it
    code: CodeType = made["__init__"].__code__
    return code


def _refuse_to_set(self: Any, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _nothing(self: Any) -> tuple[()]:
    return ()


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


@recursive_repr()
def _text(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"
