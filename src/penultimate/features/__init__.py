"""Penultimate features: extracted from images, kept in banks."""
