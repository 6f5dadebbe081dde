"""Checks of the sentences given to the Python interface: another kind is an error that shows the right call.

Without them a string would be taken for a list of its characters, and bytes, None and numbers for unknown words.
"""

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

_SHOWN_CHARACTERS, _SHOWN_TOKENS = 20, 4
_TEXTS, _TOKEN_LISTS = "a list of strings", "a list of sentences, each a list of tokens"
# For each sentence, spans of characters.
Spans = Sequence[Sequence[tuple[int, int]]]
WORDS_EITHER_WAY = "a list of strings or of lists of words"
_EXAMPLES = {_TEXTS: '["今天天气很好"]', _TOKEN_LISTS: '[["今天", "天气"]]', WORDS_EITHER_WAY: '["今天 天气 很 好"]'}


def check_texts(given: object, call: str, name: str = "sentences") -> list[str]:
    """Return raw sentences as a list.

    Args:
        given: The argument: an iterable of strings.
        call: The function, for the message: embed.
        name: Name of the argument, for the message.

    Raises:
        TypeError: If it is anything else, such as a single string.
    """
    return [check_text(text, call, f"{name}[{place}]") for place, text in enumerate(iterate(given, call))]


def single_string(text: str, call: str) -> str:
    """Return the message for a single string where a list of strings is expected."""
    return f"{call} takes {_TEXTS}, found the single string {_show(text)}. Call {call}([{_show(text)}])."


def list_strings(X: object, call: str) -> list[str]:
    """Return the input of an estimator of scikit-learn as a list of strings.

    Raises:
        ValueError: If it is a single string, as scikit-learn's own vectorizers do.
        TypeError: If it is anything else but strings.
    """
    refuse_single_string(X, call)
    return check_texts(X, call, "X")


def refuse_single_string(X: object, call: str) -> None:
    """Raise ValueError for a single string where an estimator expects several."""
    if isinstance(X, str):
        raise ValueError(single_string(X, call))


def check_text(text: object, call: str, name: str) -> str:
    """Return one raw sentence.

    Raises:
        TypeError: If it is not a string.
    """
    if isinstance(text, str):
        return text
    tokens = text.tolist() if isinstance(text, np.ndarray) else text
    if not isinstance(tokens, list | tuple) or not all(isinstance(token, str) for token in tokens):
        advice = _advice_for(text, "''")
    elif call == "embed":
        advice = f"Sentences as lists of tokens go to embed_tokens([{_show_tokens(tokens)}])."
    else:
        advice = f"Give it as it was before it was segmented: {_show(''.join(tokens))}."
    raise TypeError(f"{call}: {name} is {_describe(text)}, expected a string. {advice}")


def check_token_sentences(given: object, call: str, name: str = "sentences") -> list[Sequence[str]]:
    """Return segmented sentences as a list of lists.

    Args:
        given: The argument: an iterable of sentences, each an iterable of strings.
        call: The function, for the message: embed_tokens.
        name: Name of the argument, for the message.

    Raises:
        TypeError: If it is anything else, such as a string, or a list of strings.
    """
    if isinstance(given, str):
        right = f"[{_show_tokens(given.split())}]"
        raise TypeError(f"{call} takes {_TOKEN_LISTS}, found the string {_show(given)}. Call {call}({right}).")
    if type(given) is not list:
        given = list(iterate(given, call, _TOKEN_LISTS))
    return [_check_sentence(tokens, given, call, f"{name}[{place}]") for place, tokens in enumerate(given)]


def _check_sentence(tokens: object, sentences: Sequence[object], call: str, name: str) -> Sequence[str]:
    if isinstance(tokens, str):
        raise TypeError(f"{call}: {name} is {_describe(tokens)}, expected a list of tokens. {_fix(sentences, call)}")
    return check_tokens(tokens, call, name)


def _fix(sentences: Sequence[object], call: str) -> str:
    """Return the right call for strings where lists of tokens are expected."""
    texts = [text for text in sentences if isinstance(text, str)]
    if any(" " in text for text in texts):
        advice = f"Call {call}([{_show_tokens(texts[0].split())}])"
    else:
        advice = f"For one sentence of these tokens call {call}([{_show_tokens(texts)}])"
    raw = f", for raw text embed([{_show(texts[0])}])" if call == "embed_tokens" else ""
    return f"{advice}{raw}."


def check_tokens(tokens: object, call: str, name: str) -> Sequence[str]:
    """Return the tokens of one sentence, those of an array or an iterator as a list.

    Raises:
        TypeError: If it is not an iterable of strings.
    """
    if isinstance(tokens, str):
        right = f"{call}({_show_tokens(tokens.split())})"
        raise TypeError(f"{call}: {name} is {_describe(tokens)}, expected a list of tokens. Call {right}.")
    if not isinstance(tokens, list | tuple):
        if _is_no_list(tokens) or not isinstance(tokens, Iterable):
            raise TypeError(
                f"{call}: {name} is {_describe(tokens)}, expected a list of tokens. {_advice_for(tokens, '[]')}"
            )
        tokens = tokens.tolist() if isinstance(tokens, np.ndarray) else list(tokens)
    try:
        # The fastest way to find out whether all are strings.
        "".join(tokens)
    except TypeError:
        place, wrong = next((place, token) for place, token in enumerate(tokens) if not isinstance(token, str))
        raise TypeError(
            f"{call}: {name}[{place}] is {_describe(wrong)}, expected a string. {_advice_for(wrong, repr('<UNK>'))}"
        ) from None
    return tokens


def check_keep(keep: Spans | None, texts: Sequence[str]) -> Spans:
    """Return the spans to keep together in each text.

    Raises:
        ValueError: If there is not one entry a text, unless `keep` is None.
        TypeError: If it is no list, or an entry is not a list of pairs of whole numbers.
    """
    if keep is None:
        return [()] * len(texts)
    if isinstance(keep, str | bytes | Mapping) or not isinstance(keep, Iterable):
        raise TypeError(
            f"embed: keep is {_describe(keep)}, expected for each sentence a list of spans of characters, such as"
            " [[(0, 2)]]."
        )
    keep = keep if isinstance(keep, Sequence | np.ndarray) else list(keep)
    if len(keep) != len(texts):
        raise ValueError(f"embed: keep has {len(keep)} entries for {len(texts)} sentences, expected one each")
    for place, spans in enumerate(keep):
        check_kept(spans, "embed", f"keep[{place}]")
    return keep


def check_kept(spans: object, call: str, name: str) -> None:
    """Raise TypeError unless the spans to keep together in one text are a list of pairs of whole numbers."""
    if not isinstance(spans, Sequence | np.ndarray) or not all(map(_is_span, spans)):
        raise TypeError(
            f"{call}: {name} is {_describe(spans)}, expected a list of spans of characters, such as [(0, 2)]."
        )


def _is_span(value: object) -> bool:
    """Return whether a value is a pair of whole numbers."""
    return isinstance(value, Sequence | np.ndarray) and len(value) == 2 and all(map(is_whole_number, value))


def check_sentence(sentence: object, call: str, name: str) -> str | Sequence[str]:
    """Return one sentence: a raw one as a string, a segmented one as its tokens.

    Raises:
        TypeError: If it is neither a string nor an iterable of strings.
    """
    if isinstance(sentence, str):
        return sentence
    if _is_no_list(sentence):
        advice = _advice_for(sentence, "[]")
        raise TypeError(f"{call}: {name} is {_describe(sentence)}, expected a string or a list of tokens. {advice}")
    return check_tokens(sentence, call, name)


def iterate(given: object, call: str, expected: str = _TEXTS) -> Iterable[object]:
    """Return the argument if it is a list of some kind.

    Raises:
        TypeError: If it is a single string, a table, whose items would be the names of its columns, or no iterable.
    """
    if isinstance(given, str):
        raise TypeError(single_string(given, call))
    if hasattr(given, "columns"):
        raise TypeError(f"{call} takes {expected}, found a table. Give one of its columns: {call}(table['text']).")
    if _is_no_list(given):
        raise TypeError(f"{call} takes {expected}, found {_describe(given)}. Call {call}({_EXAMPLES[expected]}).")
    assert isinstance(given, Iterable)
    return given


def _is_no_list(value: object) -> bool:
    is_scalar = not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0
    return is_scalar or isinstance(value, bytes | bytearray)


def is_whole_number(value: object) -> bool:
    """Return whether a value is a whole number, also one of NumPy's; True and False are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_whole_number(value: object, call: str, name: str, least: int, most: int | None = None) -> None:
    """Raise ValueError unless an argument is a whole number from `least` to `most`; None for no limit."""
    if not is_whole_number(value) or value < least or (most is not None and value > most):  # type: ignore[operator]
        expected = f"of {least} or more" if most is None else f"from {least} to {most}"
        raise ValueError(f"{call}: {name}={value!r:.60}, expected a whole number {expected}")


def is_missing(value: object) -> bool:
    """Return whether a value stands for a missing one: None, NaN, or one of those that pandas reads empty fields as."""
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _describe(value: object) -> str:
    """Return a value with its type."""
    if value is None:
        return "None"
    kind = type(value).__name__
    if isinstance(value, str):
        return f"the string {_show(value)}"
    shown = repr(value)
    return f"{kind} {shown if len(shown) <= 2 * _SHOWN_CHARACTERS else f'{shown[: 2 * _SHOWN_CHARACTERS]}…'}"


def _advice_for(value: object, empty: str) -> str:
    """Return how to convert a value; `empty` stands for a missing one."""
    if isinstance(value, bytes | bytearray):
        return "Decode it: value.decode('utf-8')."
    if is_missing(value):
        return f"Leave it out, or give {empty}."
    if isinstance(value, int | float | np.number):
        return "Convert it: str(value)."
    return "See docs/python.md."


def _show(text: str) -> str:
    return repr(str(text) if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…")


def _show_tokens(tokens: Sequence[str]) -> str:
    shown = [_show(token) for token in tokens[:_SHOWN_TOKENS]]
    return f"[{', '.join(shown + ['...'] * (len(tokens) > _SHOWN_TOKENS))}]"
