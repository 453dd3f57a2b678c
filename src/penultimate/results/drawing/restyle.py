"""Preparing matplotlib's SVG for the page: prefixed ids, local styles, the page's colours, named marks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from penultimate.results.drawing import palette
from penultimate.results.drawing.palette import Mark

SVG = "http://www.w3.org/2000/svg"
XLINK = "{http://www.w3.org/1999/xlink}href"
INK, MUTED, RULE, PAPER = "#010101", "#020202", "#030303", "#040404"
HEAT = tuple(f"#0505{step:02x}" for step in range(palette.HEAT_STEPS))
"""Colours that stand for the page's colours in a drawing; no mark has them."""

ON_PAGE = {INK: "currentColor", MUTED: "var(--muted)", RULE: "var(--rule)", PAPER: "var(--paper)"}
ON_PAGE |= {reserved: f"var(--heat-{step})" for step, reserved in enumerate(HEAT)}
IN_FILE = {
    INK: palette.INK[0],
    MUTED: palette.MUTED[0],
    RULE: palette.RULE[0],
    PAPER: palette.PAPER[0],
    **dict(zip(HEAT, palette.HEAT[0], strict=True)),
}
FONT = re.compile(r"font: (?P<before>[^;]*?)(?P<size>[\d.]+)px [^;]*")
LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
UNTURNED = re.compile(r"rotate[(]-?0 [^)]*[)]")
REFERENCE = re.compile(r"#([^)]+)")
GROUP, DEFINITIONS, TITLE, PATH, USE, TEXT = (
    f"{{{SVG}}}{name}" for name in ("g", "defs", "title", "path", "use", "text")
)


@dataclass(frozen=True)
class Note:
    """The meaning of the mark with the id `noteN`: its objective's slug, and the words of its tooltip."""

    objective: str
    text: str


def restyle(
    drawing: str, notes: Sequence[Note], marks: Mapping[str, Mark], prefix: str, description: str, page: bool
) -> str:
    """Return the drawing as one `<svg>` element without declaration, metadata or global rules."""
    root = ElementTree.fromstring(drawing)
    colours = dict(ON_PAGE if page else IN_FILE)
    if page:
        colours |= {mark.light: f"var({mark.variable}, {mark.light})" for mark in marks.values()}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        _own(element, prefix, colours, page)
    by_id = {element.get("id"): element for element in root.iter()}
    for index, note in enumerate(notes):
        group = by_id.get(f"{prefix}-note{index}")
        if group is not None:
            title = ElementTree.Element(TITLE)
            title.text = note.text
            group.insert(0, title)
            if note.objective and page:
                group.set("data-mark", marks[note.objective].key)
    _thin(root, {name for element in root.iter() for name in _referred(element)})
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.set("role", "img")
    root.set("aria-label", description)
    root.set("style", "stroke-linejoin: round; stroke-linecap: butt")
    if not page:
        root.set("font-family", "sans-serif")
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r"<(/?)svg:", r"<\1", text.replace("xmlns:svg=", "xmlns="))


def _own(element: ElementTree.Element, prefix: str, colours: Mapping[str, str], page: bool) -> None:
    """Prefix an element's ids and references, and restyle it."""
    if "id" in element.attrib:
        element.set("id", f"{prefix}-{element.attrib['id']}")
    reference = element.attrib.pop(XLINK, None)
    if reference is not None:
        element.set("href", f"#{prefix}-{reference.removeprefix('#')}")
    clip = element.attrib.get("clip-path", "")
    if clip.startswith("url(#"):
        element.set("clip-path", clip.replace("url(#", f"url(#{prefix}-"))
    for key in ("d", "x", "y", "transform"):
        if key in element.attrib:
            element.set(key, LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}", element.attrib[key]))
    if UNTURNED.fullmatch(element.attrib.get("transform", "")):
        del element.attrib["transform"]
    style = element.attrib.get("style")
    if style is not None:
        style = FONT.sub(r"font-size: \g<size>px", style)
        style = re.sub(r"font-family: [^;]*;?\s*", "", style)
        style = re.sub(r"#[0-9a-f]{6}\b", lambda found: colours.get(found[0], found[0]), style)
        element.set("style", style)
    if element.tag == TEXT and "fill" not in element.attrib.get("style", ""):
        element.set("style", f"{element.attrib.get('style', '')}; fill: {colours[INK]}".removeprefix("; "))


def _referred(element: ElementTree.Element) -> list[str]:
    """Return the ids that an element refers to."""
    named = (element.get(key, "") for key in ("href", "clip-path"))
    return [found[1] for value in named if (found := REFERENCE.search(value))]


def _thin(element: ElementTree.Element, referred: Collection[str]) -> None:
    """Remove what nobody sees: idle groups, ids without references, blanks between elements."""
    seen: list[ElementTree.Element] = []
    for child in element:
        _thin(child, referred)
        if child.get("id") not in referred:
            child.attrib.pop("id", None)
        if child.tag == GROUP:
            seen += _opened(child)
        elif len(child) or child.tag != DEFINITIONS:
            seen.append(child)
    element[:] = seen
    if element.tag not in (TEXT, TITLE):
        for blank in seen:
            blank.tail = None
        element.text = None


def _opened(group: ElementTree.Element) -> list[ElementTree.Element]:
    """Return a group's shapes if they need no group (one shape takes its attributes), or the group itself."""
    said, shapes = group.findall(TITLE), [child for child in group if child.tag != TITLE]
    if not shapes or not (said or group.attrib):
        return shapes
    first = shapes[0]
    if len(shapes) > 1 or first.tag not in (GROUP, PATH, USE) or len(first.findall(TITLE)):
        return [group]
    if not set(group.attrib) <= {"data-mark"}:
        return [group]
    first.attrib |= group.attrib
    first[:0] = said
    return [first]


ElementTree.register_namespace("svg", SVG)
