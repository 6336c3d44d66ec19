"""Products by name: their dense peaks as data sheets state them.  An unknown product stays unknown."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from difflib import get_close_matches

from ncukit.catalog.load import DATA
from ncukit.errors import UsageError
from ncukit.record import dataclass

_MAKER = re.compile(r"^(?:nvidia|tesla|quadro)-")
_MODEL = re.compile(r"[a-z]{1,2}\d{1,4}s?|\d{4}")
_CUT = {
    "mig": "a MIG slice has only part of the GPU, which no data sheet states",
    "laptop": "a laptop GPU is not the desktop GPU of that name, and its clocks depend on the laptop",
    "max-q": "a Max-Q GPU is not the desktop GPU of that name, and its clocks depend on the laptop",
    "vgpu": "a virtual GPU has only part of the GPU, which no data sheet states",
}
"""Words in a name that say that it is less than the product that it is named after."""


@dataclass(frozen=True)
class Sku:
    """One product: ``peak`` [FLOP/s or OP/s] by precision, dense, and ``dram_bandwidth`` [byte/s], as stated.

    ``reported`` are the names under which the driver shows it, without the maker's.
    """

    id: str
    name: str
    reported: tuple[str, ...]
    compute_capability: int
    form: str
    peak: Mapping[str, float]
    dram_bandwidth: float
    source: str
    note: str = ""


@dataclass(frozen=True)
class Lookup:
    """What a name means: a product, or the reason why not and those that could be meant."""

    name: str
    sku: Sku | None
    reason: str = ""
    candidates: tuple[Sku, ...] = ()
    ambiguous: bool = False
    """The name leaves several products open: one of ``candidates`` is meant."""


@functools.cache
def skus() -> tuple[Sku, ...]:
    """Return every product whose data sheet is known.

    >>> next(sku.peak["tensor_bf16"] for sku in skus() if sku.id == "h100-sxm")
    989400000000000
    """
    rows = json.loads((DATA / "skus.json").read_text(encoding="utf-8"))["skus"]
    return tuple(Sku(**{**row, "reported": tuple(row["reported"])}) for row in rows)


def find_sku(name: str) -> Lookup:
    """Return the product called ``name``: its id ("h100-sxm") or exactly what the driver reports.

    Nothing is guessed: H100 alone may be SXM, PCIe or NVL; MIG slices and laptop GPUs are none of them.

    >>> find_sku("NVIDIA H100 80GB HBM3").sku.id, [sku.id for sku in find_sku("H100").candidates]
    ('h100-sxm', ['h100-sxm', 'h100-pcie', 'h100-nvl'])
    """
    wanted = _slug(name)
    near = tuple(sku for sku in skus() if _models(sku.id) & _models(wanted))
    for word, why in _CUT.items():
        if f"-{word}-" in f"-{wanted}-":
            return Lookup(name, None, why, near)
    for sku in skus():
        if wanted in (sku.id, *map(_slug, sku.reported)):
            return Lookup(name, sku)
    meant = tuple(sku for sku in near if set(wanted.split("-")) <= set(sku.id.split("-")))
    if len(meant) > 1:  # one alone may be the namesake of what is not listed: Quadro RTX 6000, RTX 6000 Ada
        return Lookup(name, None, f"{name} may mean {len(meant)} products", meant, ambiguous=True)
    return Lookup(name, None, f"no data sheet of a product that is called {name} is known", near)


def no_sku(found: Lookup, instead: str) -> UsageError:
    """Return the error that ``found`` is no product; ``instead`` names the options that replace a data sheet.

    >>> no_sku(find_sku("H100"), "--peak").hint
    'one of h100-sxm, h100-pcie, h100-nvl? `ncukit mfu --list` names all; --peak replaces a data sheet'
    """
    plain = {sku.id.replace("-", ""): sku.id for sku in skus()}
    near = [sku.id for sku in found.candidates]
    near = near or [plain[n] for n in get_close_matches(_slug(found.name).replace("-", ""), plain, 3, 0.8)]
    meant = f"{'one of ' if len(near) > 1 else ''}{', '.join(near)}? " if near else ""
    return UsageError(
        f"--gpu {found.name!r}: {found.reason}",
        f"{meant}`ncukit mfu --list` names all; {instead} replaces a data sheet",
    )


def _slug(name: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")
    while slug != (slug := _MAKER.sub("", slug)):
        pass
    return slug


def _models(slug: str) -> set[str]:
    """Return the words that name a model, like h100 or 4090; sizes and slices are none.

    >>> sorted(_models("h100-80gb-hbm3")), sorted(_models("geforce-rtx-4090"))
    (['h100'], ['4090'])
    """
    return {word for word in slug.split("-") if _MODEL.fullmatch(word)}
