"""An experiment in the terminal: conclusion first, then the repetitions, the mechanism, what was checked."""

from __future__ import annotations

from typing import Any

from ncukit.model.experiment import ExperimentRecord
from ncukit.render.experiment.view import page_view, sentence
from ncukit.render.text.parts import flat
from ncukit.render.text.terminal import Terminal, columns


def experiment_text(record: ExperimentRecord, *, color: bool, encoding: str, width: int = 80) -> str:
    """Return what a terminal of ``width`` columns shows of an experiment."""
    t = Terminal(width, encoding, color)
    view = t.tree(page_view(record, generated=""))
    said = view["conclusion"]
    blocks = [
        [
            t.cut_middle(view["heading"], t.width),
            *t.wrap(view["hypothesis"], first="  hypothesis: ", indent="  "),
        ],
        [
            *t.wrap(f"{said['word']}. {flat(said['claim'])}", indent="  "),
            *t.wrap(flat(said["text"]), first="  ", indent="  "),
        ],
        _effects(t, record, view),
        _observed(t, view),
        _correctness(t, view),
        [line for caution in said["cautions"] for line in t.wrap(flat(caution), first="! ", indent="  ")],
    ]
    return t.page(
        line for n, lines in enumerate(b for b in blocks if b) for line in (["", *lines] if n else lines)
    )


def _effects(t: Terminal, record: ExperimentRecord, view: dict[str, Any]) -> list[str]:
    if not view["effects"]:
        return []
    rows = [["", "baseline", "variant", "change", f"{view['effects'][0]['confidence']} interval", ""]]
    for e in view["effects"]:
        a, b = e["sides"]
        rows.append([e["metric"], a["median"], b["median"], e["change"], e["interval"], e["outcome"]])
        rows.append(["  spread (IQR)", a["relative"], b["relative"], "", "", ""])
    lines = [*t.wrap(f"REPETITIONS  {sentence(record)}", indent="  "), *columns(rows, "<>>>><")]
    for e in (e for e in view["effects"] if e["needed"]):
        shows = f"; these show {e['detectable']} or more" if e["detectable"] else ""
        text = f"{e['metric']}: {e['needed']} would show a difference like the observed one{shows}"
        lines += t.wrap(text, first="  ", indent="  ")
    if view["apart"]:
        words = "; ".join(f"{row['name']} {' and '.join(row['cells'])}" for row in view["apart"])
        lines += t.wrap(f"apart (medians of both sides): {words}", first="  ", indent="  ")
    return lines


def _observed(t: Terminal, view: dict[str, Any]) -> list[str]:
    lines = t.wrap(f"DIAGNOSIS  {flat(view['profiled'])}", indent="  ")
    if view["summary"]:
        lines += t.wrap(flat(view["summary"]), first="  ", indent="  ")
    for o in view["observed"]:
        words = (
            f"{o['metric']} ({o['predicted']} predicted): {o['baseline']} to {o['variant']}, {o['change']}"
        )
        lines += t.wrap(f"{o['word']}  {words}. {flat(o['source'])}", first="  ", indent="    ")
    return lines


def _correctness(t: Terminal, view: dict[str, Any]) -> list[str]:
    lines = ["CORRECTNESS"] if view["correctness"] else []
    for c in view["correctness"]:
        parts = [flat(c["detail"]), c["tolerance"], c["error"]]
        text = f"{c['word']}  {c['side']}, against {c['against']}: {'; '.join(p for p in parts if p)}"
        lines += t.wrap(text, first="  ", indent="    ")
    return lines
