"""Check the arguments of Python calls, and raise a one-line error for a wrong one.

Every message has the same form: "embed: sentences[1] is None; expected a string". The first word is the function that
the user called, the second the name of the argument.

Without these checks a string would pass as a list of its characters, and None, bytes and numbers as unknown words.
"""

import math
import numbers
from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from reprlib import Repr
from typing import TYPE_CHECKING, Any, TypeVar

from elmo_zh.config.declare import Value, values_of
from elmo_zh.config.layers import NAMES as LAYER_NAMES
from elmo_zh.config.layers import Layers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
# For each sentence, its spans of characters as (start, end).
Spans = Sequence[Sequence[tuple[int, int]]]
# The tokens of a sentence, and the position of one of them.
Place = tuple[Sequence[str], int]

_REPR = Repr()
_REPR.maxstring, _REPR.maxother = 40, 60


def refusal(kind: type[Exception], call: str, name: str, value: object, expected: str) -> Exception:
    """Return the error to raise for a wrong argument."""
    return kind(f"{call}: {name} is {_show(value)}; expected {expected}")


def _show(value: object) -> str:
    # A shortened repr would not show that this is a table.
    is_table = hasattr(value, "columns") and hasattr(value, "shape")
    return "a whole table" if is_table else " ".join(_REPR.repr(value).split())


def one_of(known: Iterable[object]) -> str:
    """Join choices into a phrase: a, b or c."""
    *first, last = map(str, known)
    return f"{', '.join(first)} or {last}" if first else last


def is_missing(value: object) -> bool:
    """Return whether a value stands for missing data: None, NaN, or the pandas equivalent."""
    if isinstance(value, numbers.Real):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_whole_number(value: object) -> bool:
    """Return whether a value is a whole number, including NumPy's; True and False are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_whole_number(
    value: Any,
    call: str,
    name: str,
    least: int,
    most: int | None = None,
    *,
    kinds: tuple[type[Exception], type[Exception]] = (ValueError, ValueError),
) -> int:
    """Return `value` if it is a whole number from `least` to `most`.

    Otherwise raise the first of `kinds` for a value that is not a whole number, the second for one out of range.
    """
    if is_whole_number(value) and value >= least and (most is None or value <= most):
        return int(value)
    expected = f"a whole number, {least} or greater" if most is None else f"a whole number from {least} to {most}"
    raise refusal(kinds[is_whole_number(value)], call, name, value, expected)


def check_values(group: Any, call: str, names: Collection[str] = ()) -> None:
    """Raise ValueError for a value of a dataclass, or one of those named, that its declaration does not allow."""
    for name, value in values_of(type(group)).items():
        if not names or name in names:
            check_value(value, getattr(group, name), call)


def check_value(declared: Value, value: object, call: str, kind: type[Exception] = ValueError) -> Any:
    """Return an argument in its declared type; raise `kind` if its declaration does not allow it."""
    try:
        return declared.convert(value)
    except ValueError:
        raise refusal(kind, call, declared.name, value, declared.allowed(str)) from None


def check_choice(
    value: object, known: Iterable[object], call: str, name: str, kind: type[Exception] = ValueError
) -> None:
    """Raise `kind` unless a value is one of the known ones; numbers may be given as strings."""
    names = list(map(str, known))
    if str(value) not in names:
        raise refusal(kind, call, name, value, one_of(names))


def check_layers(
    value: object,
    num_layers: int,
    call: str,
    name: str = "layers",
    *,
    among: Sequence[str] = LAYER_NAMES,
    kind: type[Exception] = ValueError,
) -> Layers:
    """Return layers that a model has, given by one of the names in `among` or by numbers; raise `kind` otherwise."""
    try:
        return Layers(value).require(num_layers, *among)
    except ValueError:
        expected = f"{', '.join(among)}, or numbers from 0 to {num_layers - 1}, each once"
        raise refusal(kind, call, name, value, expected) from None


def check_instance(value: object, kind: type[T], call: str, name: str, expected: str) -> T:
    """Return `value` if it is an instance of `kind`; raise TypeError for anything else, such as a path to load from."""
    if not isinstance(value, kind):
        raise refusal(TypeError, call, name, value, expected)
    return value


def check_path(value: object, call: str, name: str, what: str) -> Path:
    """Return `value` as a path, or raise a TypeError that asks for the path of `what` ("a folder", for example)."""
    if isinstance(value, str | PathLike):
        return Path(fspath(value))
    raise refusal(TypeError, call, name, value, f"the path of {what}")


def check_paths(values: object, call: str, name: str) -> list[str]:
    """Return the given path or paths as a list of strings; raise ValueError for an empty list."""
    given = [values] if isinstance(values, str | PathLike) else check_list(values, call, name, "a path or several")
    paths = [str(check_path(value, call, f"{name}[{place}]", "a text")) for place, value in enumerate(given)]
    if not paths:
        raise refusal(ValueError, call, name, values, "at least one path")
    return paths


def _is_list(value: object) -> bool:
    is_scalar = not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0
    return not is_scalar and not isinstance(value, str | bytes | bytearray) and not hasattr(value, "columns")


def check_list(values: Any, call: str, name: str, expected: str) -> Iterable[Any]:
    """Return `values` if it is an iterable of items; raise TypeError for a string, bytes, a table or a scalar."""
    if not _is_list(values):
        raise refusal(TypeError, call, name, values, expected)
    return values  # type: ignore[no-any-return]


def check_string(value: object, call: str, name: str, expected: str = "a string") -> str:
    """Return `value` if it is a string; raise TypeError otherwise."""
    if not isinstance(value, str):
        raise refusal(TypeError, call, name, value, expected)
    return value


def check_strings(
    values: object, call: str, name: str = "sentences", each: str = "a string", what: str = "a list of strings"
) -> list[str]:
    """Return strings as a list; raise TypeError for anything else, such as a single string."""
    listed = check_list(values, call, name, what)
    return [check_string(value, call, f"{name}[{place}]", each) for place, value in enumerate(listed)]


def check_tokens(tokens: Any, call: str, name: str, expected: str = "a list of tokens") -> Sequence[str]:
    """Return one sentence's tokens as a list or tuple; raise TypeError unless they are an iterable of strings."""
    if not isinstance(tokens, list | tuple):
        found = check_list(tokens, call, name, expected)
        tokens = tokens.tolist() if hasattr(tokens, "tolist") else list(found)
    try:
        # The fastest way to find out whether all are strings.
        "".join(tokens)
    except TypeError:
        place, wrong = next((place, token) for place, token in enumerate(tokens) if not isinstance(token, str))
        raise refusal(TypeError, call, f"{name}[{place}]", wrong, "a string") from None
    return tokens  # type: ignore[no-any-return]


def check_token_sentences(given: object, call: str, name: str = "sentences") -> list[Sequence[str]]:
    """Return segmented sentences as a list; raise TypeError for anything else, such as a list of strings."""
    listed = check_list(given, call, name, "a list of sentences, each a list of tokens")
    return [check_tokens(tokens, call, f"{name}[{place}]") for place, tokens in enumerate(listed)]


def check_sentence(sentence: object, call: str, name: str) -> str | Sequence[str]:
    """Return one sentence, a string or a list of tokens; raise TypeError for anything else."""
    if isinstance(sentence, str):
        return sentence
    return check_tokens(sentence, call, name, "a string or a list of tokens")


def check_spans(spans: Any, call: str, name: str) -> None:
    """Raise TypeError unless `spans` is a list of character spans: pairs of whole numbers, start and end."""
    if not _is_sequence(spans) or not all(_is_sequence(each) and _is_pair_of_numbers(each) for each in spans):
        raise refusal(TypeError, call, name, spans, "a list of character spans, such as [(0, 2)]")


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) or bool(getattr(value, "ndim", 0))


def _is_pair_of_numbers(values: Sequence[Any]) -> bool:
    return len(values) == 2 and all(map(is_whole_number, values))


def check_keep(keep: Any, num_texts: int, call: str) -> Spans:
    """Return each text's spans to keep together; raise ValueError unless `keep` is None or has a list for each text."""
    if keep is None:
        return [()] * num_texts
    what = "a list of character spans for each sentence, such as [[(0, 2)]]"
    if isinstance(keep, Mapping):
        raise refusal(TypeError, call, "keep", keep, what)
    listed = list(check_list(keep, call, "keep", what))
    if len(listed) != num_texts:
        raise ValueError(f"{call}: keep has {len(listed)} entries; expected one for each of {num_texts} sentences")
    for place, spans in enumerate(listed):
        check_spans(spans, call, f"keep[{place}]")
    return listed


def check_places(places: Any, call: str) -> list[Place]:
    """Return pairs of a sentence's tokens and a position in it; raise TypeError for anything else."""
    listed = check_list(places, call, "places", "a list of pairs of tokens and a position")
    return [_check_pair(pair, call, f"places[{place}]") for place, pair in enumerate(listed)]


def _check_pair(pair: Any, call: str, name: str) -> Place:
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2 or isinstance(pair[1], str):
        raise refusal(TypeError, call, name, pair, "a pair of tokens and a position")
    return check_place(pair[0], pair[1], call)


def check_place(tokens: object, position: Any, call: str) -> Place:
    """Return the tokens and the position as an int; the search itself checks that the position is in the sentence."""
    checked = check_tokens(tokens, call, "tokens")
    if not is_whole_number(position):
        raise refusal(TypeError, call, "position", position, "the place of a token, a whole number from 0")
    return checked, int(position)


def check_vectors(given: Any, shape: tuple[int | None, ...], call: str, name: str) -> "NDArray[np.float32]":
    """Return `given` as float32; raise TypeError or ValueError unless it is finite and has this shape (None: any)."""
    import numpy as np

    array = np.asarray(given)
    if array.dtype.kind not in "fiub":
        raise refusal(TypeError, call, name, given, "numbers")
    if array.ndim != len(shape) or any(
        length not in (None, found) for length, found in zip(shape, array.shape, strict=True)
    ):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{call}: {name} has shape {array.shape}; expected ({wanted})")
    array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise ValueError(f"{call}: {name} has a number that is not finite")
    return array


def check_tags(tags: Any, call: str) -> list[tuple[str, ...]]:
    """Return the tags of each text as strings; raise ValueError if a text has no list of tags, or a tag is missing."""
    if not _is_list(tags):
        raise refusal(ValueError, call, "y", tags, "a list of tags for each text, one tag per character")
    listed = []
    for place, each in enumerate(tags):
        if is_missing(each) or not isinstance(each, Iterable):
            raise refusal(ValueError, call, f"y[{place}]", each, "a list of tags; leave out texts without them")
        found = list(each)
        check_labels(found, call, f"y[{place}]")
        listed.append(tuple(map(str, found)))
    return listed


def check_labels(labels: Iterable[object], call: str, name: str) -> None:
    """Raise ValueError if a label is missing."""
    for place, label in enumerate(labels):
        if is_missing(label):
            raise refusal(ValueError, call, f"{name}[{place}]", label, "a label; leave out texts without one")
