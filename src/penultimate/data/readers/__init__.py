"""Reading images that others made: what lies where, and which label it has."""
