"""Draw the parts that pictures share, such as axes and titles, and save pictures."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_zh.language import _
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DATA_COLOUR, BASELINE_COLOUR, QUIET_COLOUR = "#1f5fa8", "#333333", "#555555"
# Details are wrapped at this many columns per inch of the picture.
_COLUMNS = 12


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def new_axes(width: float, height: float, rows: Sequence[int] = (1,)) -> tuple[Figure, list[Axes]]:
    """Create a figure of this size in inches, with axes one above the other, their heights in proportion to `rows`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained", **({"h_pad": 0.08} if len(rows) > 1 else {}))
    column = figure.subplots(len(rows), 1, sharex=True, height_ratios=rows, squeeze=False)[:, 0]
    for axes in column:
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, list(column)


def save_picture(figure: Figure, output: Path) -> None:
    """Save a figure as PNG; with the same fonts and matplotlib, the same figure gives the same bytes."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_fontfamily(list(_fonts()))
    figure.draw_without_rendering()  # the position of the axes is known only after this
    for text in figure.texts:
        text.set_x(figure.axes[0].get_position().x0)
    with atomic_path(output) as unfinished:
        figure.savefig(unfinished, format="png", dpi=120, metadata={"Software": None})


def drawable(names: Sequence[str]) -> list[str]:
    """Return names that a picture can show: unchanged, or numbers from 1 if the fonts lack a character of any name."""
    return [*names] if can_write("".join(names)) else [str(number + 1) for number in range(len(names))]


def describe_numbers(names: Sequence[str], picture: str) -> list[str]:
    """Return one line that explains the numbers in a picture, or no line if `drawable` left the names unchanged."""
    if can_write("".join(names)):
        return []
    legend = ", ".join(f"{number} {name}" for number, name in enumerate(names, start=1))
    message = _("{picture} shows numbers instead of labels: {legend}. Install a Chinese font, such as fonts-noto-cjk.")
    return [message.format(picture=picture, legend=legend)]


def can_write(text: str) -> bool:
    """Return whether the installed fonts that pictures use have every character, so that no empty boxes appear."""
    return all(any(ord(character) in codes for codes in _fonts().values()) for character in text)


@cache
def _fonts() -> dict[str, frozenset[int]]:
    """Return the characters of each font that pictures use: matplotlib's own and, if installed, a Chinese one."""
    from matplotlib.font_manager import FontProperties, findfont, findSystemFonts, fontManager, get_font

    own = findfont(FontProperties())
    for path in sorted({*findSystemFonts()} - {font.fname for font in fontManager.ttflist}):
        with suppress(OSError, RuntimeError):  # not a font
            fontManager.addfont(path)  # installed after matplotlib made its cache
    # Noto has a face for each region: in Hong Kong and Taiwan commas stand at half height, so simplified Chinese comes
    # first. The font "Last Resort" has a box for every character.
    others = {font.name: str(font.fname) for font in fontManager.ttflist if "Last Resort" not in font.name}
    fonts = {get_font(own).family_name: str(own)}
    for name in sorted(others, key=lambda name: (not name.endswith(" SC"), name)):
        if all(get_font(others[name]).get_char_index(ord(character)) for character in "汉語龘，"):
            fonts[name] = others[name]
            break
    return {name: frozenset(get_font(path).get_charmap()) for name, path in fonts.items()}


def in_language(message: str, **gaps: object) -> str:
    """Return a message in the user's language, or in English if the fonts lack one of its characters."""
    text = _(message).format(**gaps) if gaps else _(message)
    return text if can_write(text.replace("\n", "")) else message.format(**gaps)


def add_title(figure: Figure, title: str, lines: Sequence[str]) -> None:
    """Write a title, with ? for characters that the fonts lack, and below it the detail lines that they can show."""
    columns = round(_COLUMNS * figure.get_figwidth())
    lines = [part for line in lines if can_write(line) for part in wrapped(line, columns)]
    title = "".join(character if can_write(character) else "?" for character in title)
    figure.suptitle(title, x=0.0, ha="left", fontsize=13, fontweight="bold")
    style: dict[str, Any] = {"fontsize": 9, "color": QUIET_COLOUR}
    figure.axes[0].set_title("\n".join(lines), loc="left", pad=10, **style)


def ticks_of_logarithms(low: float, high: float) -> list[float]:
    """Return round ticks between `low` and `high` on a log axis, in equal steps if it spans at most a decade."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    subs = (1.0, 3.0) if high < 1e4 * low else (1.0,)
    locator = LogLocator(subs=subs, numticks=10) if high > 10 * low else MaxNLocator(6)
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]


def format_count(count: float) -> str:
    """Format a number: 500, 20,000 or 1.5 M."""
    return f"{count / 1e6:,.5g} M" if count >= 1e6 else f"{count:,.0f}"


def format_figure(value: float) -> str:
    """Format a perplexity or another positive figure: 1.23, 12.3, 123.4 or 1,234."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
