"""The text forms: `.ptir` of Graph IR, and the lexical rules it shares with the text of Tile IR."""
