"""JSON that ncukit wrote is checked against its published schema where it is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ncukit.errors import ReportError, ReportFormatError
from ncukit.roofline.place import read_measured
from ncukit.schemas import check, names, text
from ncukit.schemas.check import fault, read_document, read_json
from tests.mutations import originals
from tests.mutations.damage import damaged_json

SOUND: dict[str, Callable[[], list[bytes]]] = {
    "ncukit.run/1": originals.records,
    "ncukit.timing/1": originals.timings,
    "ncukit.experiment/1": originals.experiments,
    "ncukit.baseline/1": originals.baselines,
    "ncukit.probe/1": originals.ceilings,
}


def schema(name: str) -> Any:
    return json.loads(text(name))


@pytest.mark.parametrize("name", SOUND)
def test_what_is_written_follows_its_schema(name: str) -> None:
    document = json.loads(SOUND[name]()[0])
    assert fault(document, schema(name)) is None
    assert Draft202012Validator(schema(name)).is_valid(document)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("name", SOUND)
def test_the_check_agrees_with_jsonschema(name: str, seed: int) -> None:
    """On damaged documents; the check is stricter only about 1.0 as an integer and about NaN."""
    try:
        document = json.loads(damaged_json(4 * seed + 1, SOUND[name]()[0]))
    except RecursionError:
        return
    expected = Draft202012Validator(schema(name)).is_valid(document)
    found = fault(document, schema(name))
    if expected and found is not None:
        assert "must be number" in found or "must be integer" in found
    else:
        assert (found is None) == expected


@pytest.mark.parametrize("name", names())
def test_every_published_schema_uses_only_what_the_check_knows(name: str) -> None:
    for document in ({}, {"schema": name}, None):
        fault(document, schema(name))  # an unknown keyword is a KeyError
    Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (
            {"steps": [{"name": "timing", "state": "done", "seconds": "x"}]},
            "steps[0].seconds must be number or null",
        ),
        ({"steps": "x"}, "steps must be array"),
        ({"steps": [{"name": "timing"}]}, "steps[0].state is missing"),
        ({"target": None}, "target must be object"),
        ({"options": []}, "options must be object"),
        ({"gpu": {"name": "x"}}, "gpu.uuid is missing"),
        ({"gpu": 7}, "gpu must be null or object"),
        ({"tools": {"\u202encu": 7}}, 'tools["\\u202encu"] must be object'),
        ({"tools": {"x" * 7000: 7}}, f'tools["{"x" * 57}..."] must be object'),
        ({"status": "great"}, 'status must be one of "running", "complete", "incomplete", "failed"'),
        ({"error": {"code": 4}}, "error.message is missing"),
        ({"notes": [1]}, "notes[0] must be string"),
    ],
)
def test_a_value_of_a_wrong_type_is_named_with_its_place(
    change: dict[str, Any], place: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps({**json.loads(originals.records()[0]), **change}))
    with pytest.raises(ReportFormatError) as caught:
        read_document(file, "ncukit.run/1")
    assert caught.value.message == f"{file} is damaged: {place}"
    assert (caught.value.code, caught.value.exit_code) == ("report-damaged", 4)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 100_000, "is damaged"),
        (b'{"schema": "ncukit.run/1", "steps": NaN}', "NaN is no JSON"),
        (b'{"schema": "ncukit.run/2"}', "is not of schema ncukit.run/1"),
        (b'{"schema": 7}', "is not of schema ncukit.run/1"),
        (b'{"n": ' + b"9" * 5000 + b"}", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b"", "is damaged"),
        (b"7", "it holds no object"),
        (b'{"schema": "\\ud800"}', "half of a character"),
    ],
    ids=["deep", "nan", "later", "number", "digits", "bytes", "empty", "no object", "surrogate"],
)
def test_what_is_no_document_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(content)
    with pytest.raises(ReportFormatError, match=words) as caught:
        read_document(file, "ncukit.run/1")
    assert caught.value.hint


def test_a_document_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "LARGEST", 1 << 20)
    file = tmp_path / "run.json"
    file.write_bytes(b" " * (2 << 20))
    with pytest.raises(ReportFormatError, match="it has 2 MiB"):
        read_json(file)


def test_measured_ceilings_of_a_wrong_type_are_refused(tmp_path: Path) -> None:
    document = json.loads(originals.ceilings()[0])
    document["probes"][0]["result"]["device"] = "A40"
    (file := tmp_path / "c.json").write_text(json.dumps(document))
    with pytest.raises(ReportError, match="damaged"):
        read_measured(file)
