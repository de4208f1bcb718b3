"""Placement: passes that turn structured Tile IR into what one family of device targets can spell, one folder per family."""
