"""Readers of other people's images: where each image lies, and which label it has."""
