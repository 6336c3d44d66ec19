"""`ncukit.record.dataclass` differs from the standard one in nothing but the time it takes to define."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncukit import record
from ncukit.model import Diagnosis, Kernel, RawKernel
from ncukit.model.source import HotLine


def classes(dataclass):
    """Return the same classes, made by ``dataclass``."""

    @dataclass(frozen=True)
    class Point:
        x: object
        y: object = 1
        seen: object = field(default=0, compare=False)
        secret: object = field(default=0, repr=False)

    @dataclass(frozen=True)
    class Nothing:
        pass

    @dataclass(frozen=True)
    class Narrow:
        x: object

    @dataclass(frozen=True)
    class Named:
        x: object

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

    @dataclass(frozen=True)
    class Summed:
        x: object
        tags: list[object] = field(default_factory=list)
        sum: object = field(init=False)
        fixed: object = field(init=False, default=3)
        fresh: list[object] = field(init=False, default_factory=list)

        def __post_init__(self):
            object.__setattr__(self, "sum", (self.x, self.x))

    return Point, Nothing, Narrow, Named, Summed


OURS, STANDARD = classes(record.dataclass), classes(dataclasses.dataclass)


@record.dataclass(frozen=True)
class Sent:
    x: int
    tags: tuple[str, ...] = ()


def behaviour(point, nothing, narrow, named, summed, values):
    """Return what can be seen of objects with ``values``."""
    x, y, seen, secret = values
    made = [point(x, y, seen, secret), point(x), nothing(), narrow(x), narrow(y), named(x)]
    lists = [summed(x), summed(y, [x])]
    lists[0].tags.append(seen)
    return [
        [repr(one).replace("<locals>", "") for one in made],
        [[a == b for a in made] for b in made],
        [[hash(a) == hash(b) for a in made] for b in made],
        [dataclasses.asdict(one) for one in made],
        [repr(dataclasses.replace(one)) for one in made],
        made[0] == values,
        [repr(one).replace("<locals>", "") for one in lists],
        [a == b for a in lists for b in (*lists, summed(x, [seen]))],
    ]


anything = st.one_of(st.integers(), st.floats(), st.text(), st.none(), st.tuples(st.integers()))


@given(st.tuples(anything, anything, anything, anything))
def test_objects_behave_alike(values):
    assert behaviour(*OURS, values) == behaviour(*STANDARD, values)


@pytest.mark.parametrize("cls", OURS)
def test_nothing_can_be_assigned_or_deleted(cls):
    made = cls(1) if dataclasses.fields(cls) else cls()
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.x


@pytest.mark.parametrize("arguments", [{}, {"z": 1}, {"x": 1, "z": 1}])
def test_arguments_that_do_not_fit_are_refused(arguments):
    for point in (OURS[0], STANDARD[0]):
        with pytest.raises(TypeError, match=r"Point.__init__\(\) (got an unexpected|missing 1 required)"):
            point(**arguments)


def test_what_is_computed_is_no_argument():
    for summed in (OURS[4], STANDARD[4]):
        with pytest.raises(TypeError):
            summed(1, fixed=2)
        assert list(inspect.signature(summed).parameters) == ["x", "tags"]
        assert summed(1).fresh is not summed(1).fresh


def test_classes_tell_what_they_are():
    for ours, standard in zip(OURS, STANDARD, strict=True):
        assert repr(ours.__dataclass_params__) == repr(standard.__dataclass_params__)
        assert str(inspect.signature(ours)) == str(inspect.signature(standard))


def test_types_of_results_are_there_at_run_time():
    assert get_type_hints(Diagnosis)["hot"] == tuple[HotLine, ...]
    assert get_type_hints(Kernel)["raw"] is RawKernel


@pytest.mark.parametrize("dataclass", [record.dataclass, dataclasses.dataclass])
def test_a_class_may_be_made_of_another(dataclass):
    @dataclass(frozen=True)
    class More(OURS[0]):
        more: int = 0

    assert (More(1, more=2).x, More(1) == More(1), More(1) == OURS[0](1)) == (1, True, False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        More(1).more = 3
    with pytest.raises(TypeError, match="non-frozen"):
        dataclass(type("Open", (OURS[0],), {}))


def test_an_object_that_holds_itself_can_be_printed():
    inside: list[object] = []
    made = OURS[0](inside)
    inside.append(made)
    assert repr(made).count("...") == 1


def test_objects_are_copied_and_sent():
    made = Sent(1, ("a",))
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
    assert hash(copy.copy(made)) == hash(made)


def test_what_is_not_frozen_is_left_to_the_standard_library():
    @record.dataclass
    class Open:
        x: int

    made = Open(1)
    made.x = 2
    assert made == Open(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


def test_identity_is_what_equality_is_without_eq():
    @record.dataclass(frozen=True, eq=False)
    class Same:
        x: int

    assert Same(1) != Same(1)
    assert repr(Same(1)).endswith("Same(x=1)")
