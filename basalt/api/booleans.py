"""Switches as Go's strconv.ParseBool reads them from a text: flags, annotations and Volcano's arguments go through it.
Any other text is refused, or counts as not said."""

TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
EITHER = TRUE | FALSE
