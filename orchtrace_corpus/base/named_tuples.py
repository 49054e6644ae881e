"""Named tuples that are cheap to declare: as `typing.NamedTuple`, but the constructor is made on first use.

Start-up is most of the time of a command, and a command declares up to 150 of these classes and makes instances of
half of them. Declaring one with `typing` compiles its constructor, which takes 110 µs. Here a declaration takes 15 µs,
and one compiled constructor serves all classes with the same number of fields, under their names.
Type checkers see `typing.NamedTuple`.
"""

from typing import TYPE_CHECKING

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
        """Stands for `__new__` until the class is called for the first time, or inspected."""

        def __set_name__(self, owner, name):
            self._owner = owner

        def __get__(self, instance, owner):
            made = self._owner
            code = _constructor_code(len(made._fields)).replace(co_varnames=("_cls", *made._fields))
            constructor = FunctionType(code, _GLOBALS, "__new__", tuple(made._field_defaults.values()))
            constructor.__qualname__ = f"{made.__qualname__}.__new__"
            constructor.__annotations__ = made.__annotations__
            made.__new__ = constructor
            return constructor

    class _Declaration(type):
        """Makes the annotations of a class its fields."""

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
        """The base of classes whose annotations are the fields of a tuple, in their order."""

        __slots__ = ()

        @classmethod
        def _make(cls, values):
            """Return an instance of as many values as there are fields."""
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **values):
            """Return the tuple with other values of some fields."""
            made = self._make(map(values.pop, self._fields, self))
            if values:
                raise ValueError(f"Got unexpected field names: {list(values)!r}")
            return made

        def _asdict(self):
            """Return the values by field."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            values = (f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({', '.join(values)})"

        def __getnewargs__(self):
            return tuple(self)
