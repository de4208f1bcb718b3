"""Tile IR: loops over tiles whose statements load, compute or store; one schedule that three machines spell."""
