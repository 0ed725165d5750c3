"""Direction: from which language into which."""

import json

from tolka.text.direction import UNKNOWN, Direction


def test_a_direction_names_its_sides_and_its_opposite() -> None:
    direction = Direction("en", "de")
    assert (direction.source, direction.target, str(direction)) == ("en", "de", "en to de")
    assert direction.swapped == Direction("de", "en")
    assert direction.is_known
    assert not UNKNOWN.is_known
    assert not Direction("en").is_known


def test_json_has_it_as_a_list() -> None:
    assert Direction(*json.loads(json.dumps(Direction("en", "de")))) == Direction("en", "de")
