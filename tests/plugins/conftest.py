"""These files are plug-ins for the tests to load; pytest itself imports none of them."""

collect_ignore_glob = ["*.py"]
