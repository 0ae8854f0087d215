"""English function words: their tokens are not stored, and a question's are not asked for.

They are a quarter of a passage's tokens and say little about it. Leaving them out on both sides costs nothing in
ranking and a quarter of the bytes (docs/models.md).
"""

from __future__ import annotations

_WORDS = (
    "a an and are as at be been but by can could did do does for from had has have he her him his how i if in into is "
    "it its just let me my no not of on or our she so some than that the their them then there these they this those "
    "to too up us was we were what when where which who why will with would you your s t"
)

STOP_WORDS = frozenset(_WORDS.split())
