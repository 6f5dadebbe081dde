"""A description as JSON values and as lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elmo_zh.corpus.cleaning.line_counts import visible
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import aligned, first_ten

_PLAIN = {None: N_("none"), True: N_("yes"), False: N_("no")}


@dataclass(frozen=True)
class Description:
    """A description of a folder as JSON values and as lines, with the problems that a check found."""

    values: dict[str, Any]
    lines: Sequence[str]
    problems: list[str] = field(default_factory=list)


def rows(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each value, with its name."""
    shown = {name: value for name, value in values.items() if value not in ("", (), [], {})}
    if shown:
        yield from aligned([(f"{_label(name)}:", _shown(value)) for name, value in shown.items()], left=(0, 1))


def _label(name: str) -> str:
    return visible(name) if "." in name else _(name.replace("_", " "))


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        shown = ((_label(str(name)), _shown(part), isinstance(part, Mapping)) for name, part in value.items())
        return ", ".join(f"{name} ({part})" if is_nested else f"{name} {part}" for name, part, is_nested in shown)
    if isinstance(value, list | tuple):
        return first_ten([f"({_shown(part)})" if isinstance(part, Mapping) else _shown(part) for part in value])
    if value is None or isinstance(value, bool):
        return _(_PLAIN[value])
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else visible(str(value))
