"""Draw the parts that pictures share: title, fonts, ticks and labels at the ends of lines; and save pictures."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elmo_zh.language import chosen_language, translate
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DATA_COLOUR, BASELINE_COLOURS, QUIET_COLOUR = "#1f5fa8", ("#333333", "#777777"), "#555555"
# The least distance between the labels of lines, as a fraction of the height of the axes.
_LABEL_DISTANCE = 0.07
# Mantissas of ticks on a logarithmic axis, from few to many.
_MANTISSAS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7))
_LEAST_TICKS, _MOST_TICKS = 4, 10
# Details are wrapped at this many columns per inch of the picture.
_DETAILS, _COLUMNS = "details", 12


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def new_axes(width: float, height: float, rows: Sequence[int] = (1,)) -> tuple[Figure, list[Axes]]:
    """Create a figure of this size in inches, with axes one above the other, their heights in proportion to `rows`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained", **({"h_pad": 0.08} if len(rows) > 1 else {}))
    found = figure.subplots(len(rows), 1, sharex=True, height_ratios=rows, squeeze=False)[:, 0]
    for axes in found:
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, list(found)


def save_picture(figure: Figure, output: Path) -> None:
    """Save a figure as PNG in the user's language; the same figure gives the same bytes."""
    if chosen_language() != "en":
        _translate_texts(figure)
    with atomic_path(output) as unfinished:
        figure.savefig(unfinished, format="png", dpi=120, metadata={"Software": None})


def _translate_texts(figure: Figure) -> None:
    """Translate titles, axis labels and notes if a font has the characters; names from the data are left alone."""
    from matplotlib.text import Text

    names: set[Text] = {*figure.texts}
    for axes in figure.axes:
        legend = axes.get_legend()
        names.update(axes.get_xticklabels(), axes.get_yticklabels(), legend.get_texts() if legend else ())
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text not in names and text.get_gid() != _DETAILS:
            written = text.get_text()
            shown = translate(written)
            if can_write(shown.replace("\n", "")):
                text.set_text(shown)
    _align_titles(figure)


def _align_titles(figure: Figure) -> None:
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if families := font_families(text.get_text().replace("\n", "")):
            text.set_fontfamily(families)
    figure.draw_without_rendering()  # the position of the axes is known only after this
    for text in figure.texts:
        text.set_x(figure.axes[0].get_position().x0)


def name_corpus(run_name: str, files: Sequence[str]) -> str:
    """Return the names of a run and its corpus for a title, without those that no installed font can show."""
    names = [name for name in files if can_write(name)]
    if not names:
        corpus = f"{len(files):,} {'files' if len(files) != 1 else 'file'}" if files else ""
    elif len(files) <= 2 and len(names) == len(files):
        corpus = " and ".join(names)
    else:
        corpus = f"{names[0]} and {len(files) - 1:,} more"
    run = run_name if can_write(run_name) else ""
    return f"{run} ({corpus})" if run and corpus else run or corpus or "this run"


def drawable(names: Sequence[str]) -> list[str]:
    """Return names that a picture can show: unchanged, or numbers from 1 if no installed font has the characters."""
    return [*names] if can_write("".join(names)) else [str(number + 1) for number in range(len(names))]


def describe_numbers(names: Sequence[str], picture: str) -> list[str]:
    """Return one line that explains the numbers in a picture, or no line if `drawable` left the names unchanged."""
    if can_write("".join(names)):
        return []
    legend = ", ".join(f"{number} {name}" for number, name in zip(drawable(names), names, strict=True))
    return [
        f"No installed font can show all labels, so {picture} shows numbers instead: {legend}. Install a Chinese"
        " font, for example with the package fonts-noto-cjk."
    ]


def can_write(text: str) -> bool:
    """Return whether installed fonts have every character, so that no empty boxes appear."""
    return _families(frozenset(text)) is not None


def font_families(text: str) -> list[str] | None:
    """Return font families that together have all characters of a text, or None."""
    return _families(frozenset(text))


@cache
def _families(characters: frozenset[str]) -> list[str] | None:
    """Return font families that together have all characters, matplotlib's own first, or None."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties, findfont, get_font

    def missing_in(path: str, wanted: Iterable[str]) -> set[str]:
        font = get_font(path)
        return {character for character in wanted if not font.get_char_index(ord(character))}

    own = list(rcParams["font.family"])
    left = missing_in(findfont(FontProperties(family=own)), characters)
    for name, path in _other_fonts() if left else ():
        if not missing_in(path, left):
            return [*own, name]
    return None if left else own


@cache
def _other_fonts() -> list[tuple[str, str]]:
    """Return the names and files of installed fonts, including those not yet in matplotlib's cache."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {font.fname for font in fontManager.ttflist}
    for path in sorted({*findSystemFonts()} - known):
        with suppress(OSError, RuntimeError):  # not a font
            fontManager.addfont(path)
    # The font "Last Resort" has a box for every character. Noto has a face for each region: in Hong Kong and Taiwan
    # commas stand at half height, so simplified Chinese comes first.
    fonts = {(font.name, font.fname) for font in fontManager.ttflist if "Last Resort" not in font.name}
    return sorted(fonts, key=lambda font: (not font[0].endswith(" SC"), font))


def in_language(text: str) -> str:
    """Return a text in the user's language, unless no installed font has its characters."""
    shown = translate(text)
    return shown if can_write(shown) else text


def add_title(figure: Figure, title: str, lines: Sequence[str]) -> None:
    """Write a title at the top left in the user's language, followed by lines of details in smaller type."""
    columns = round(_COLUMNS * figure.get_figwidth())
    title = in_language(title)
    lines = [part for line in lines if can_write(line) for part in wrapped(in_language(line), columns)]
    title = "".join(character if can_write(character) else "?" for character in title)
    figure.suptitle(title, x=0.0, ha="left", fontsize=13, fontweight="bold")
    style: dict[str, Any] = {"fontsize": 9, "color": QUIET_COLOUR, "gid": _DETAILS}
    figure.axes[0].set_title("\n".join(lines), loc="left", pad=10, **style)
    _align_titles(figure)


@dataclass(frozen=True, kw_only=True)
class EndLabel:
    """A label at the right end of a line, with the line's value there."""

    text: str
    height: float
    colour: str


def label_ends(axes: Axes, labels: Sequence[EndLabel]) -> None:
    """Write labels to the right of the axes, each as close to the height of its line as the others allow."""
    axes.autoscale_view()  # otherwise matplotlib does this later, which changes the heights
    to_fraction = axes.transAxes.inverted()
    ranked = sorted(labels, key=lambda label: label.height)
    heights = [float(to_fraction.transform(axes.transData.transform((1.0, label.height)))[1]) for label in ranked]
    for label, height, place in zip(ranked, heights, spread(heights, _LABEL_DISTANCE), strict=True):
        axes.annotate(
            label.text,
            xy=(1.0, height),
            xytext=(1.025, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=label.colour,
            fontsize=9,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": label.colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )


def spread(places: Sequence[float], distance: float) -> list[float]:
    """Move ascending positions apart to a minimum distance; those too close spread around their common centre."""
    from scipy.optimize import isotonic_regression

    steps = distance * np.arange(len(places))
    return [float(place) for place in isotonic_regression(places - steps).x + steps] if places else []


def ticks_of_logarithms(low: float, high: float) -> list[float]:
    """Return about four to ten round values between `low` and `high` as ticks for a logarithmic axis."""
    from matplotlib.ticker import MaxNLocator

    powers = [10.0**power for power in range(-6, 19)]
    ticks_of = [[mantissa * power for power in powers for mantissa in mantissas] for mantissas in _MANTISSAS]
    found = [[tick for tick in ticks if low <= tick <= high] for ticks in ticks_of]
    fitting = [ticks for ticks in found if _LEAST_TICKS <= len(ticks) <= _MOST_TICKS]
    if fitting:
        return fitting[-1]
    if len(found[0]) > _MOST_TICKS:
        return found[0][:: -(-len(found[0]) // _MOST_TICKS)]
    # Less than a factor of about three: the axis is nearly linear.
    return [tick for tick in map(float, MaxNLocator(5).tick_values(low, high)) if low <= tick <= high]


def format_count(count: float) -> str:
    """Format a number: 500, 20,000 or 1.5 M."""
    return f"{count / 1e6:,.5g} M" if count >= 1e6 else f"{count:,.0f}"


def format_figure(value: float) -> str:
    """Return a perplexity or another positive figure with about three digits."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
