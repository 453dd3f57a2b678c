"""Sphinx's settings. Nothing is fetched: no other inventory, no fonts and no scripts from elsewhere."""

from __future__ import annotations

project = "penultimate"
author = "The developers of penultimate"
copyright = author
extensions = ["myst_parser", "sphinx_design"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # generated sections may skip a level
smartquotes = False  # two dashes begin an option, and quotes are copied into a shell
source_suffix = {".md": "markdown"}
html_theme = "pydata_sphinx_theme"
html_title = "penultimate"
html_static_path = ["_static"]
html_css_files = ["marks.css", "site.css"]
html_js_files = ["copy.js"]
html_show_sourcelink = False
html_copy_source = False
html_use_index = False  # pages declare no entries, and the page of the index would be empty
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_depth": 3,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
templates_path: list[str] = []
exclude_patterns: list[str] = []
nitpicky = True
html_favicon = "_static/mark.svg"
html_logo = "_static/mark.svg"
