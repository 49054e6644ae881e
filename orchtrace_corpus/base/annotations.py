"""The names of `typing` that annotations use, without importing `typing`, which takes half as long as Python's start.

While a command runs, only `Annotated` is used, so it has the attributes of `typing.Annotated`; the other names are
placeholders. Type checkers see the names of `typing` itself, as does Ruff, by its setting `typing-modules`.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Annotated as Annotated
    from typing import Any as Any
    from typing import BinaryIO as BinaryIO
    from typing import ClassVar as ClassVar
    from typing import Generic as Generic
    from typing import NoReturn as NoReturn
    from typing import TextIO as TextIO
    from typing import TypeAlias as TypeAlias
    from typing import TypeVar as TypeVar
    from typing import assert_never as assert_never
    from typing import cast as cast
else:

    class Any:
        """A placeholder for every name that has no use while a command runs; `Any[...]` is the class itself."""

        def __class_getitem__(cls, item):
            return cls

    BinaryIO = ClassVar = Generic = NoReturn = TextIO = TypeAlias = Any

    class Annotated:
        """A type, and the declaration of a parameter of a command: `Annotated[str, option(...)]`."""

        def __class_getitem__(cls, parts):
            annotated = cls()
            annotated.__origin__, annotated.__metadata__ = parts[0], parts[1:]
            return annotated

    def TypeVar(*_, **__):  # noqa: N802 - the name that it has in typing
        """Return the placeholder."""
        return Any

    def assert_never(value):
        """Raise an error. It stands where a type checker proves that the program never comes."""
        raise AssertionError(value)

    def cast(_, value):
        """Return the value as it is."""
        return value
