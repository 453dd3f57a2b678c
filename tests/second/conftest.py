"""`paper.py` is a plug-in that the test loads; pytest itself does not import it."""

collect_ignore = ["paper.py"]
