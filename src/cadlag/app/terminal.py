"""Any text -> what a terminal may show: no character that moves its cursor, and no word that fills its screen.

Names of columns and cells come from files that somebody else may have written.
"""

import re

LONGEST_WORD = 200

# C0 and C1 controls, line and paragraph separators, what turns the direction of writing, halves of a character.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LONG = re.compile(rf"\S{{{LONGEST_WORD},}}")


def readable(text: str) -> str:
    """A text from anywhere, for a terminal."""
    seen = _UNSEEN.sub(lambda found: repr(found[0])[1:-1], text)
    return _LONG.sub(lambda found: f"{found[0][:80]}[...]{found[0][-40:]}", seen)
