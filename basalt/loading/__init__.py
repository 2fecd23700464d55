"""Text to documents. What is wrong with a text is a Fault with its position, never an exception of a parser."""
