"""Floor 2: one folder per backend, each a function from Tile IR to text."""
