"""Penultimate features: extracted from images and kept in feature banks."""
