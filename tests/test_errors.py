"""Errors go to other processes and come back as they were."""

from __future__ import annotations

import pickle

import pytest

from ncukit import errors

EVERY = [
    errors.NcukitError("what", "do", code="own"),
    errors.UsageError("what", "do"),
    errors.ToolError("what"),
    errors.Interrupted("stopped by SIGTERM", "kept", number=15),
    errors.ReportNotFound("a.ncu-rep", "what", "do"),
    errors.ReportEmpty("a.ncu-rep", "what", "do"),
    errors.ReportFormatError("a.ncu-rep", "what", "do", code="report-damaged"),
    errors.ReaderCrashed("a.ncu-rep", "what", "do"),
]


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_an_error_is_sent_as_it_is(error: errors.NcukitError) -> None:
    error.add_note("a note")
    sent = pickle.loads(pickle.dumps(error))
    assert type(sent) is type(error)
    assert (str(sent), sent.as_dict(), sent.exit_code) == (str(error), error.as_dict(), error.exit_code)
    assert sent.__notes__ == ["a note"]
