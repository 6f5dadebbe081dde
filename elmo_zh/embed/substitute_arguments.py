"""Checks of what `ElmoEmbedder.substitutes` is given."""

from collections.abc import Sequence

from elmo_zh.embed.substitutes import Place
from elmo_zh.text.sentence_arguments import check_tokens, is_whole_number

_RIGHT_CALL = "Call substitutes(['我', '吃', '苹果'], 2, top=20)."


def check_substitutes(places: Sequence[Place], top: object) -> list[Place]:
    """Return pairs of tokens and a position as the search takes them; it checks that positions are in their sentences.

    Raises:
        TypeError: If tokens are not a list of strings, or a position or `top` is not a whole number.
        ValueError: If `top` is negative.
    """
    if not is_whole_number(top):
        raise TypeError(f"substitutes: top={top!r:.60}, expected a whole number. {_RIGHT_CALL}")
    if top < 0:  # type: ignore[operator]
        raise ValueError(f"substitutes: top={top}, expected 0 or more. {_RIGHT_CALL}")
    return [(check_tokens(tokens, "substitutes", "tokens"), _position(at)) for tokens, at in places]


def _position(given: object) -> int:
    if not is_whole_number(given):
        raise TypeError(
            f"substitutes: position={given!r:.60}, expected the place of a token, a whole number from 0. {_RIGHT_CALL}"
        )
    return int(given)  # type: ignore[call-overload,no-any-return]
