"""The paper's claims and ours: each a sentence, its place, and a rule that judges runs and printed means."""
