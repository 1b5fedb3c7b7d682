"""Readers of what foreign memory stores hold, which becomes facts."""
