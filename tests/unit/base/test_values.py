"""Values are what `typing` would make of the same classes."""

import copy
import pickle
import typing

import pytest

from simple_gpu_scheduler.base.values import Any, Generic, Literal, NamedTuple, TypeVar, get_args


class Point(NamedTuple):
    """Where it is."""

    x: int
    y: int = 2
    name: "str | None" = None

    @property
    def sum(self) -> int:
        return self.x + self.y


class Same(typing.NamedTuple):
    x: int
    y: int = 2
    name: "str | None" = None


class Nothing(NamedTuple):
    """A value without fields."""


class Named(Point):
    """A class below one of values."""


def test_are_made_by_position_and_by_name():
    for made in (Point(1, 3), Point(1, y=3), Point(x=1, y=3)):
        assert made == (1, 3, None) == Same(1, 3)
        assert (made.x, made.y, made.name, made.sum) == (1, 3, None, 4)
    assert Nothing() == ()


@pytest.mark.parametrize("wrong", [{}, {"x": 1, "z": 2}])
def test_refuse_wrong_fields_as_a_function_does(wrong):
    with pytest.raises(TypeError) as ours:
        Point(**wrong)
    with pytest.raises(TypeError) as theirs:
        Same(**wrong)
    assert str(ours.value).partition("()")[2] == str(theirs.value).partition("()")[2]


def test_know_their_fields():
    assert Point._fields == Point.__match_args__ == Same._fields
    assert Point._field_defaults == Same._field_defaults
    assert Point(1)._asdict() == Same(1)._asdict()
    assert repr(Point(1)) == repr(Same(1)).replace("Same", "Point")
    assert Point.__doc__ == "Where it is."


def test_are_changed_by_making_another():
    point = Point(1)
    assert point._replace(y=5) == (1, 5, None)
    assert point == (1, 2, None)
    with pytest.raises(ValueError, match="z"):
        point._replace(z=1)
    with pytest.raises(AttributeError):
        point.x = 3


def test_keep_their_class():
    named = Named(1)
    assert type(named) is type(named._replace(x=2)) is type(copy.deepcopy(named)) is Named
    assert pickle.loads(pickle.dumps(Point(1))) == Point(1)


def test_types_are_words():
    kind = Literal["a", "b"]
    assert get_args(kind) == ("a", "b")
    assert get_args(Literal["a"]) == ("a",)
    assert Any | None
    assert None | kind
    assert list[kind]

    class Box(Generic[TypeVar("T")]):
        pass

    assert isinstance(Box(), Box)
