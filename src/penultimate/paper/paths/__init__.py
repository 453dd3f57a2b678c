"""The main claim on every path: each defensible choice that costs no training, and what was trained."""
