"""`record` makes what `dataclass(frozen=True, slots=True, kw_only=True)` makes, and costs less to define."""

import copy
import dataclasses

import pytest

from memcli.record import record


@record
class Point:
    x: int
    y: int = 2
    marks: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self):
        if self.x < 0:
            raise ValueError("left of everything")

    @property
    def total(self):
        return self.x + self.y


@pytest.fixture
def point():
    return Point(x=1)


def test_defaults_are_filled_and_a_made_default_is_nobody_elses(point):
    point.marks.append("seen")

    assert (point.x, point.y, point.marks, point.total) == (1, 2, ["seen"], 3)
    assert Point(x=1).marks == []


def test_nothing_can_be_changed_or_added(point):
    for name in ("x", "z"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(point, name, 5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x

    assert point.x == 1
    assert not hasattr(point, "__dict__")


def test_fields_are_given_by_name_only_and_all_of_those_without_a_default():
    with pytest.raises(TypeError):
        Point(1)
    with pytest.raises(TypeError):
        Point(y=1)
    with pytest.raises(TypeError):
        Point(x=1, z=1)


def test_what_is_checked_when_it_is_made_is_checked_every_time(point):
    with pytest.raises(ValueError, match="left of everything"):
        Point(x=-1)
    with pytest.raises(ValueError, match="left of everything"):
        dataclasses.replace(point, x=-1)


def test_equal_fields_make_equal_records_of_the_same_class_only(point):
    @record
    class Other:
        x: int
        y: int
        marks: list[str]

    assert point == Point(x=1, y=2)
    assert point != Point(x=1, y=3)
    assert point != Other(x=1, y=2, marks=[])


def test_a_record_is_a_dataclass_to_everything_that_asks(point):
    assert dataclasses.is_dataclass(point)
    assert [item.name for item in dataclasses.fields(point)] == ["x", "y", "marks"]
    assert dataclasses.replace(point, y=5) == Point(x=1, y=5)
    assert repr(point) == "Point(x=1, y=2, marks=[])"
    assert copy.deepcopy(point) == point
