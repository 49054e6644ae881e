"""The names of `typing` that annotations use, without importing it: that takes half as long as the interpreter's start.

Commands look at none of them but `Annotated`, whose parts have the names of `typing.Annotated`. Type checkers see
`typing`, and so does Ruff, by its setting `typing-modules`.
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
        """Stands for every name that has no use while a command runs; `Any[...]` is the class itself."""

        def __class_getitem__(cls, item):
            return cls

    BinaryIO = ClassVar = Generic = NoReturn = TextIO = TypeAlias = Any

    class Annotated:
        """A type with what a parameter of a command says about itself: `Annotated[str, option(...)]`."""

        def __class_getitem__(cls, parts):
            annotated = cls()
            annotated.__origin__, *annotated.__metadata__ = parts
            return annotated

    def TypeVar(*_, **__):  # noqa: N802 - the name that it has in typing
        """Return a class that stands for any type."""
        return Any

    def assert_never(value):
        """Raise an error: no value comes here."""
        raise AssertionError(value)

    def cast(_, value):
        """Return the value as it is."""
        return value
