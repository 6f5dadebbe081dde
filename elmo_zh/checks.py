"""Check the arguments of Python calls and some options; raise a one-line error for the first wrong one.

Most messages have one form: "embed: sentences[1] is None; expected a string". The first word is the function or
command that the user called, the second the argument or option.

Without these checks a string would pass as a list of its characters, and None, bytes and numbers as unknown words.
"""

import numbers
from collections.abc import Iterable, Sequence
from reprlib import Repr
from typing import TYPE_CHECKING, Any

from elmo_zh.config.declare import LAYER_NAMES, Layers, Value, values_of
from elmo_zh.errors import ElmoZhError
from elmo_zh.language import N_, _

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The tokens of a sentence, and the position of one of them.
Place = tuple[Sequence[str], int]

_REPR = Repr()
_REPR.maxstring, _REPR.maxother = 40, 60


def refusal(kind: type[Exception], call: str, name: str, value: object, expected: str) -> Exception:
    """Return the error to raise for a wrong argument."""
    say = _ if issubclass(kind, ElmoZhError) else N_  # ValueErrors stay English
    message = say(N_("{call}: {name} is {value}; expected {expected}"))
    return kind(message.format(call=call, name=name, value=_show(value), expected=expected))


def _show(value: object) -> str:
    # A shortened repr would not show that this is a table.
    is_table = hasattr(value, "columns") and hasattr(value, "shape")
    return "a whole table" if is_table else " ".join(_REPR.repr(value).split())


def check_arguments(call: str, group: type, kind: type[Exception] = ValueError, **values: Any) -> None:
    """Raise `kind` for a value that is not allowed by the field with its name in the dataclass `group`."""
    for name, value in values.items():
        check_value(values_of(group)[name], value, call, kind)


def check_value(declared: Value, value: object, call: str, kind: type[Exception] = ValueError) -> Any:
    """Return an argument in its declared type; raise `kind` if its declaration does not allow it."""
    try:
        return declared.convert(value)
    except ValueError:
        raise refusal(kind, call, declared.name, value, declared.allowed(str)) from None


def check_choice(value: object, known: Iterable[str], call: str, name: str) -> None:
    """Raise ValueError unless a value is one of the known names."""
    if value not in (names := list(known)):
        raise refusal(ValueError, call, name, value, ", ".join(names))


def check_top(top: object, call: str) -> None:
    """Raise ValueError unless the number of results to return is a whole number of at least 1."""
    if not isinstance(top, numbers.Integral) or top < 1:
        raise refusal(ValueError, call, "top", top, "a whole number (x>=1)")


def check_layers(
    value: object,
    num_layers: int,
    call: str,
    name: str = "layers",
    *,
    among: Sequence[str] = LAYER_NAMES,
    kind: type[Exception] = ValueError,
) -> Layers:
    """Return `value` as `Layers`; raise `kind` unless it is a name in `among` or numbers of the model's layers."""
    try:
        return Layers(value).require(num_layers, *among)
    except ValueError:
        say = _ if issubclass(kind, ElmoZhError) else N_  # ValueErrors stay English
        expected = say(N_("{names}, or numbers from 0 to {last}, each once"))
        raise refusal(kind, call, name, value, expected.format(names=", ".join(among), last=num_layers - 1)) from None


def check_list(values: Any, call: str, name: str, expected: str) -> Iterable[Any]:
    """Return `values` if it is an iterable of items; raise TypeError for a string, bytes, a table or a scalar."""
    is_scalar = not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0
    if is_scalar or isinstance(values, str | bytes | bytearray) or hasattr(values, "columns"):
        raise refusal(TypeError, call, name, values, expected)
    return values  # type: ignore[no-any-return]


def check_strings(
    values: object, call: str, name: str = "sentences", each: str = "a string", what: str = "a list of strings"
) -> list[str]:
    """Return strings as a list; raise TypeError for anything else, such as a single string."""
    listed = check_list(values, call, name, what)
    strings = list(listed)
    for place, value in enumerate(strings):
        if not isinstance(value, str):
            raise refusal(TypeError, call, f"{name}[{place}]", value, each)
    return strings


def check_tokens(tokens: Any, call: str, name: str, expected: str = "a list of tokens") -> Sequence[str]:
    """Return one sentence's tokens as a list or tuple; raise TypeError for anything else, such as a single string."""
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


def check_vectors(given: Any, shape: tuple[int | None, ...], call: str, name: str) -> "NDArray[np.float32]":
    """Return `given` as float32; raise TypeError if it is not numeric, ValueError if not finite or not of this shape.

    None in `shape` stands for any length.
    """
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
