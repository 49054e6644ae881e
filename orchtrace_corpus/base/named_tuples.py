"""Named tuples that are cheap to declare: as `typing.NamedTuple`, but the constructor is made on first use.

Start-up takes most of the time of a command. A command declares up to 150 of these classes, and makes instances of half
of them. `typing` compiles a constructor for each declaration, which takes 110 µs. Here a declaration takes 15 µs, and
classes with the same number of fields share a compiled constructor. Type checkers see `typing.NamedTuple`.
"""

from orchtrace_corpus.base.annotations import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import _tuplegetter
    from functools import cache
    from types import FunctionType

    _GLOBALS = {"_new": tuple.__new__}

    @cache
    def _constructor_code(count):
        names = ", ".join(f"_{index}" for index in range(count))
        return eval(f"lambda _cls, {names}: _new(_cls, ({names},))", _GLOBALS).__code__

    class _Constructor:
        """The `__new__` of a class until it is called, or inspected, for the first time."""

        def __set_name__(self, owner, name):
            self._owner = owner

        def __get__(self, instance, owner):
            declared = self._owner
            code = _constructor_code(len(declared._fields)).replace(co_varnames=("_cls", *declared._fields))
            constructor = FunctionType(code, _GLOBALS, "__new__", tuple(declared._field_defaults.values()))
            constructor.__qualname__ = f"{declared.__qualname__}.__new__"
            constructor.__annotations__ = declared.__annotations__
            declared.__new__ = constructor
            return constructor

    class _Declaration(type):
        """Makes fields of the annotations of a class."""

        def __new__(meta, name, bases, namespace):
            if bases != (tuple,) and not hasattr(bases[0], "_fields"):
                evaluate = namespace.get("__annotate_func__")  # of Python 3.14: annotationlib.Format.VALUE is 1
                names = tuple(evaluate(1) if evaluate else namespace.get("__annotations__", ()))
                defaults = {field: namespace[field] for field in names if field in namespace}
                namespace.update(zip(names, map(_tuplegetter, range(len(names)), names), strict=True))
                namespace.update(_fields=names, __match_args__=names, _field_defaults=defaults)
                namespace |= {"__new__": _Constructor(), "__slots__": ()}
            return super().__new__(meta, name, bases, namespace)

    class NamedTuple(tuple, metaclass=_Declaration):
        """The base of tuples whose fields are the annotations of the class, in their order."""

        __slots__ = ()

        @classmethod
        def _make(cls, values):
            """Return an instance with a value for each field."""
            instance = tuple.__new__(cls, values)
            if len(instance) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(instance)}")
            return instance

        def _replace(self, /, **values):
            """Return a copy with other values of some fields."""
            instance = self._make(map(values.pop, self._fields, self))
            if values:
                raise ValueError(f"Got unexpected field names: {list(values)!r}")
            return instance

        def _asdict(self):
            """Return the values by field."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            values = (f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({', '.join(values)})"

        def __getnewargs__(self):
            return tuple(self)
