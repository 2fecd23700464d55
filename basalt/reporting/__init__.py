"""Findings to text and JSON. A format is a pure function; colours and excerpts belong to the text format only."""
