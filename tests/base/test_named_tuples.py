import inspect
import pickle
import typing

import pytest

from orchtrace_corpus.base.named_tuples import NamedTuple


class Point(NamedTuple):
    """A place."""

    x: int
    y: int = 2
    names: tuple[str, ...] = ()

    @property
    def sum(self) -> int:
        return self.x + self.y


class Same(typing.NamedTuple):
    x: int
    y: int = 2
    names: tuple[str, ...] = ()


class Nearby(Point):
    __slots__ = ()


def test_a_class_is_declared_and_used_as_with_typing() -> None:
    for kind in (Point, Same):
        assert kind._fields == kind.__match_args__ == ("x", "y", "names")
        assert kind._field_defaults == {"y": 2, "names": ()}
        assert str(inspect.signature(kind)) == "(x: int, y: int = 2, names: tuple[str, ...] = ())"
        point = kind(1, names=("a",))
        assert point == (1, 2, ("a",)) == kind._make([1, 2, ("a",)])
        assert (point.x, point.y, point.names) == point
        assert point._replace(y=5) == (1, 5, ("a",))
        assert point._asdict() == {"x": 1, "y": 2, "names": ("a",)}
        assert repr(point) == f"{kind.__name__}(x=1, y=2, names=('a',))"
        assert hash(point) == hash((1, 2, ("a",)))
        assert not hasattr(point, "__dict__")


def test_methods_and_subclasses_keep_their_class() -> None:
    assert Point(1).sum == 3
    assert type(Nearby(1, 3)._replace(y=4)) is Nearby
    assert Nearby(1, 3).sum == 4
    assert (Point.__doc__, Point.__module__) == ("A place.", __name__)


def test_instances_are_pickled_and_matched() -> None:
    again = pickle.loads(pickle.dumps(Point(1, 3)))

    assert (type(again), again) == (Point, (1, 3, ()))
    match again:
        case Point(x, y=3):
            assert x == 1
        case _:
            pytest.fail("a point is matched by its fields")


@pytest.mark.parametrize("kind", [Point, Same])
def test_mistakes_in_calls_are_refused(kind: typing.Any) -> None:
    for call in (kind, lambda: kind(1, 2, (), 4), lambda: kind(1, z=3), lambda: kind._make([1])):
        with pytest.raises(TypeError):
            call()
    with pytest.raises((TypeError, ValueError), match="'z'"):  # that of typing depends on the version
        kind(1)._replace(z=3)
    with pytest.raises(AttributeError):
        kind(1).x = 2
