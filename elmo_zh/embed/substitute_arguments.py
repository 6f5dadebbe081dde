"""Checks of what `ElmoEmbedder.substitutes` is given."""

from collections.abc import Iterable, Sequence
from typing import Any

from elmo_zh.embed.substitutes import Place
from elmo_zh.text.sentence_arguments import check_tokens, is_whole_number

_RIGHT_CALL = "Call substitutes(['我', '吃', '苹果'], 2, top=20)."
_RIGHT_CALLS = "Call substitutes_many([(['我', '吃', '苹果'], 2)], top=20)."


def check_substitutes(places: Sequence[Place], top: object) -> list[Place]:
    """Return pairs of tokens and a position as the search takes them; it checks that positions are in their sentences.

    Raises:
        TypeError: If it is no list of pairs, tokens are not a list of strings, or a position or `top` is not a whole
            number.
        ValueError: If `top` is negative.
    """
    if not is_whole_number(top):
        raise TypeError(f"substitutes: top={top!r:.60}, expected a whole number. {_RIGHT_CALL}")
    if top < 0:  # type: ignore[operator]
        raise ValueError(f"substitutes: top={top}, expected 0 or more. {_RIGHT_CALL}")
    if isinstance(places, str | bytes) or not isinstance(places, Iterable):
        raise TypeError(
            f"substitutes_many: {places!r:.60} is no list of pairs of tokens and a position. {_RIGHT_CALLS}"
        )
    return [_pair(place) for place in places]


def _pair(given: Any) -> Place:
    is_pair = isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2
    if not is_pair or all(isinstance(part, str) for part in given):
        raise TypeError(f"substitutes_many: {given!r:.60} is no pair of tokens and a position. {_RIGHT_CALLS}")
    return check_place(*given)


def check_place(tokens: object, position: object) -> Place:
    """Return the tokens of a sentence and the place of one of them.

    Raises:
        TypeError: If the tokens are not a list of strings, or the position is not a whole number.
    """
    checked = check_tokens(tokens, "substitutes", "tokens")
    if not is_whole_number(position):
        raise TypeError(
            f"substitutes: position={position!r:.60}, expected the place of a token, a whole number from 0."
            f" {_RIGHT_CALL}"
        )
    return checked, int(position)  # type: ignore[call-overload]
