"""Annotations are checked under pytest as type checkers read them: an int serves where a float is asked."""

from __future__ import annotations

from typing import Any

from beartype import BeartypeConf, beartype

check: Any = beartype(conf=BeartypeConf(is_pep484_tower=True))
