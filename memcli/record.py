"""`record`: a frozen, slotted, keyword-only dataclass that costs a third of the usual one at import.

`dataclasses` compiles eight methods for every class when it is defined; thirty classes are 20 ms of every start. Here
the methods are shared, and only `__init__` is compiled, when the first instance is made. `dataclasses.replace`,
`fields` and `is_dataclass` work as ever.
"""

from dataclasses import MISSING, FrozenInstanceError, dataclass
from typing import Any, NoReturn, TypeVar, dataclass_transform

_set = object.__setattr__
Class = TypeVar("Class")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def record(cls: type[Class]) -> type[Class]:
    """Return the class as a frozen, slotted, keyword-only dataclass; `__post_init__` is called where it is there."""
    dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)
    names = tuple(cls.__dataclass_fields__)  # type: ignore[attr-defined]  # the line above put it there
    body = {name: item for name, item in vars(cls).items() if name not in (*names, "__dict__", "__weakref__")}
    body |= {
        "__slots__": names,
        "__init__": _first_init,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__eq__": _eq,
        "__hash__": _hash,
        "__repr__": _repr,
        "__getstate__": _values,
        "__setstate__": _restore,
    }
    metaclass: Any = type(cls)
    made: type[Class] = metaclass(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _first_init(self: Any, **given: Any) -> None:
    """Compile the class's own `__init__`, put it in this one's place, and call it."""
    cls: Any = type(self)
    fields = cls.__dataclass_fields__
    defaults = {f"default_{name}": item.default for name, item in fields.items() if item.default is not MISSING}
    makers = {f"make_{name}": item.default_factory for name, item in fields.items()}
    parameters = ", ".join(_parameter(name, item) for name, item in fields.items())
    # The slots themselves set what __setattr__ refuses, in three quarters of the time of object.__setattr__.
    setters = {f"set_{name}": vars(cls)[name].__set__ for name in fields}
    lines = [f"set_{name}(self, {_source(name, item)})" for name, item in fields.items()]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    scope: dict[str, Any] = {"MISSING": MISSING, **setters, **defaults, **makers}
    exec(f"def __init__(self, *, {parameters}):\n " + "\n ".join(lines), scope)  # noqa: S102  # made of field names only
    cls.__init__ = scope["__init__"]
    cls.__init__(self, **given)


def _parameter(name: str, item: Any) -> str:
    if item.default is not MISSING:
        return f"{name}=default_{name}"
    return f"{name}=MISSING" if item.default_factory is not MISSING else name


def _source(name: str, item: Any) -> str:
    if item.default_factory is MISSING:
        return name
    return f"make_{name}() if {name} is MISSING else {name}"


def _refuse(_: Any, name: str, _value: Any = None) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__slots__])


def _restore(self: Any, state: tuple[Any, ...]) -> None:
    for name, value in zip(self.__slots__, state, strict=True):
        _set(self, name, value)


def _eq(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    pairs = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__qualname__}({pairs})"
