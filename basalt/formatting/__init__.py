"""YAML laid out anew: the text changes, its values and its comments do not. Pure functions of texts."""
