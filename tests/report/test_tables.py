"""Tables as CSV, LaTeX and text: harmless to spreadsheets, TeX and terminals."""

from __future__ import annotations

import csv
import io
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penultimate.report import exhibit, render_exhibit_text
from penultimate.report.base import Built, Cell, Column, Curve, ExhibitTable, Figure, Panel, Point, TableRow
from penultimate.report.tables import latex_escape, points_csv, to_csv, to_latex
from penultimate.report.terminal import panel_table, to_text, width
from tests.report.reading import glyphs
from tests.report.synthetic import HOSTILE, study


def table(label: str, *cells: Cell, notes: tuple[str, ...] = ()) -> ExhibitTable:
    columns = tuple(Column(f"c{i}", f"C{i}") for i in range(len(cells)))
    return ExhibitTable("t", "Title", "Objective", columns, (TableRow(label, cells),), notes=notes)


@pytest.mark.parametrize(
    "label",
    [
        *("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r\n=1", "＝1", " =1", "=cmd()", "@x"),
        *("+1 +cmd|' /C calc'!A0", "+1%+SUM(A1)", "-1 points|' /C calc'!A0", "+", "-x"),
    ],
)
def test_csv_runs_in_no_spreadsheet(label: str) -> None:
    rows = list(csv.reader(io.StringIO(to_csv(table(label, Cell(label))))))
    for cell in (rows[1][0], rows[1][1]):
        assert cell.startswith("'")
        assert cell.lstrip("' ").strip()


@pytest.mark.parametrize(
    "text",
    ["+0.43 points", "-3", "+0.10 (−1.04 to 1.24)", "-1.5 %", "-2e-05", "+.2 points (p = 0.03); 3 runs"],
)
def test_csv_leaves_a_signed_number_with_its_unit_as_it_is(text: str) -> None:
    _, row = csv.reader(io.StringIO(to_csv(table("softmax", Cell(text)))))
    assert row[1] == text


def test_csv_keeps_numbers_whole_and_tells_the_source() -> None:
    content = to_csv(table("softmax", Cell("−0.3 ± 0.1", -1 / 3, 0.1, 3), Cell("–")))
    header, row = csv.reader(io.StringIO(content))
    assert header == ["Objective", "c0", "c0_se", "c0_n", "c1", "source"]
    assert float(row[1]) == -1 / 3
    assert row[2:] == ["0.1", "3", "–", "ours"]


def test_csv_of_an_exhibit_reads_back_to_its_numbers() -> None:
    made = exhibit("table1", study((0, 1))).tables[0]
    rows = list(csv.DictReader(io.StringIO(to_csv(made))))
    for row, read in zip(made.rows, rows, strict=True):
        for column, cell in zip(made.columns, row.cells, strict=True):
            assert float(read[column.key]) == cell.value
            assert float(read[f"{column.key}_se"]) == cell.error


@pytest.mark.parametrize("name", ["table1", "table4", "tableC5", "tableC6", "tableE3"])
def test_no_two_columns_of_a_csv_file_are_called_alike(name: str) -> None:
    for made in exhibit(name, glyphs()).tables:
        (header, *_) = csv.reader(io.StringIO(to_csv(made)))
        assert len(set(header)) == len(header), made.name


@pytest.mark.parametrize(
    ("text", "set_as"),
    [
        ("[0.5] of it", "{[}0.5{]} of it"),
        ("*", "{*}"),
        ('the "best"', "the ''best''"),
        ("--grid CIFAR-10 – x", "-{}-grid CIFAR-10 -- x"),
    ],
)
def test_latex_takes_no_sign_for_an_option_a_dash_or_another_encoding(text: str, set_as: str) -> None:
    """Behind the end of a row a bracket is a distance and an asterisk vanishes; OT1 has no double quote."""
    assert latex_escape(text) == set_as
    assert f"\\midrule\n{set_as} & " in to_latex(table(text, Cell("1", 1.0)))


def test_latex_sets_words_to_the_left_and_wraps_sentences() -> None:
    sentence = "A sentence that is longer than a column of a paper may be, and so is broken."
    made = table("Softmax", Cell("0.5", 0.5), Cell("few words"), Cell(sentence))
    source = to_latex(made)
    wrapped = r">{\raggedright\arraybackslash}p{0.70\linewidth}"
    assert rf"\begin{{tabular}}{{lrl{wrapped}}}" in source
    assert r"\usepackage{booktabs,array}" in source.splitlines()[0]
    assert "array" not in to_latex(table("Softmax", Cell("0.5", 0.5)))


def test_latex_rules_off_the_headings_of_groups() -> None:
    columns = tuple(Column(f"c{i}", f"C{i}", group) for i, group in enumerate(("", "One", "One", "Two")))
    row = TableRow("a", tuple(Cell("1", 1.0) for _ in columns))
    source = to_latex(ExhibitTable("t", "T", "", columns, (row,)))
    assert "\\\\\n\\cmidrule(lr){3-4}\\cmidrule(lr){5-5}\n" in source
    assert "cmidrule" not in to_latex(table("a", Cell("1", 1.0)))


def test_below_a_latex_table_stand_its_notes_and_the_legends_that_it_needs() -> None:
    legends = ("Bold: the best.", "† of classes.", "Another note.")
    plain, bold = Cell("1", 1.0), Cell("1", 1.0, best=True)
    for label, cell, notes, said in (
        ("a", plain, (), None),
        ("a", plain, ("50 % so.",), r"50 \% so."),
        ("a", bold, ("One.",), r"One. \par Bold: the best."),
        ("a†", plain, (), "† of classes."),
        ("a†", bold, (), r"Bold: the best. \par † of classes."),
    ):
        found = re.findall(
            r"\\footnotesize (.*)}$", to_latex(table(label, cell, notes=notes), "", legends), re.M
        )
        assert found == ([] if said is None else [said])


def test_a_dagger_of_the_papers_columns_is_explained_where_ours_have_none() -> None:
    text = render_exhibit_text(exhibit("table2", glyphs()))
    assert "Pets†" in text
    assert text.count("† mean per-class accuracy") == 1


def test_latex_specials_are_escaped() -> None:
    specials = r"\ & % $ # _ { } ~ ^ < >"
    escaped = latex_escape(specials)
    stripped = escaped
    for command in (
        r"\textbackslash{}",
        r"\textasciitilde{}",
        r"\textasciicircum{}",
        r"\textless{}",
        r"\textgreater{}",
    ):
        assert command in escaped
        stripped = stripped.replace(command, "")
    for special in "&%$#_{}":
        assert f"\\{special}" in stripped
    assert latex_escape("\\input{/etc/passwd}") == r"\textbackslash{}input\{/etc/passwd\}"


@pytest.mark.parametrize("name", ["table1", "tableA1", "iclr_tableA2", "tableE2"])
def test_latex_holds_no_letter_that_tex_must_be_taught(name: str) -> None:
    """Greek letters, subscripts and norms stop pdflatex; dashes, quotes and daggers it knows."""
    made = exhibit(name, study((0, 1, 2)))
    assert made.tables
    strange = {c for table in made.tables for c in to_latex(table) if ord(c) > 127}
    assert strange <= set("†‡—’…")


def test_latex_tables_are_whole_and_set_the_best_in_bold() -> None:
    made = exhibit("table1", study((0,), label=HOSTILE)).tables[0]
    content = to_latex(made)
    rows = [line for line in content.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert len(rows) == 1 + len(made.rows)
    assert all(line.count("&") == len(made.columns) for line in rows)
    assert content.count(r"\textbf{") == sum(cell.best for row in made.rows for cell in row.cells)
    assert "<script>" not in content
    assert "measured here" in content
    assert content.count("{") == content.count("}")


def test_text_is_aligned_and_harmless_in_a_terminal() -> None:
    made = table(
        "日本 \x1b[31mred\x07", Cell("1.25", 1.25, best=True), Cell("words\x9b31m"), notes=("n\x1b]0;x",)
    )
    text = to_text(made)
    assert not any(unicodedata.category(c) == "Cc" and c != "\n" for c in text)
    assert "1.25*" in text
    made = exhibit("table1", study()).tables[0]
    lines = to_text(made).splitlines()
    ends = {width(line) for line in lines[4:-1]}
    assert max(ends) - min(ends) <= 1
    assert width("日本") == 4


@pytest.mark.parametrize("name", ["table1", "table3", "tableE1", "tableA2", "figure1", "figure5", "figureD1"])
def test_every_exhibit_can_be_read_in_a_terminal(name: str) -> None:
    text = render_exhibit_text(exhibit(name, study((0, 1), label=HOSTILE)))
    assert "measured here" in text
    assert "published in the paper" in text
    assert render_exhibit_text(exhibit(name, study(limited=True), allow_limited=True)).startswith(
        "LIMITED RUN"
    )


def test_sentences_stand_below_each_other_in_a_terminal() -> None:
    long = "A sentence that is longer than the column of a terminal may be, and so is broken. " * 2
    made = ExhibitTable(
        "t",
        "T",
        "Claim",
        (Column("one", "One"), Column("two", "A longer name"), Column("three", "Three")),
        (TableRow("first", (Cell(long), Cell(long), Cell("1", 1.0))), TableRow("second", (Cell("a"),) * 3)),
        notes=("A note.",),
    )
    lines = to_text(made).splitlines()
    assert max(map(width, lines)) <= 100
    first = lines.index("first")
    begun = [line[2:17].strip() for line in lines if line.startswith("  ") and line[2] != " "]
    assert begun == ["One", "A longer name", "Three"] * 2
    assert " ".join(" ".join(line[17:] for line in lines[first + 1 : lines.index("second") - 1]).split()) == (
        f"{long}{long}1"
    )
    assert lines[-1] == "A note."


def test_columns_stand_under_their_groups_in_a_terminal() -> None:
    groups = ("", "One", "One", "A heading that needs room", "")
    columns = tuple(Column(f"c{i}", f"C{i}", group) for i, group in enumerate(groups))
    row = TableRow("a", tuple(Cell(f"1{i}", 10.0 + i) for i in range(5)))
    _, _, heads, labels, _, numbers, *_ = to_text(ExhibitTable("t", "T", "", columns, (row,))).splitlines()
    assert heads.strip().split("  ") == ["One ──", "A heading that needs room"]
    assert heads.index("One") == labels.index("C1")
    end = heads.index("room") + len("room ")
    assert labels[:end].endswith("C3")
    assert labels.index("C4") == numbers.index("14")
    assert "One" not in to_text(table("a", Cell("1", 1.0)))
    made = to_text(exhibit("table1", study((0, 1, 2))).tables[1])
    assert "Glyphs, test ─" in to_text(exhibit("table1", study((0, 1, 2))).tables[0])
    assert "Transfer, linear ─" in made


def test_headings_over_numbers_are_broken_and_stand_on_their_rule() -> None:
    columns = (
        Column("a", "Test"),
        Column("b", "A heading of several words"),
        Column("c", "Words of a column"),
    )
    row = TableRow("Softmax", (Cell("1", 1.0), Cell("22", 22.0), Cell("words")))
    _, _, above, below, *_ = to_text(ExhibitTable("t", "T", "Objective", columns, (row,))).splitlines()
    assert above.split() == ["A", "heading", "of"]
    assert re.split(" {2,}", below) == ["Objective", "Test", "several words", "Words of a column"]


def test_coordinates_of_an_axis_have_the_same_decimals() -> None:
    points = tuple(Point(x, y, "", "a") for x, y in ((5, 0.25), (6, 12.0), (7, -3.14)))
    cells = [[cell.text for cell in row.cells] for row in panel_table(Panel("p", "", "x", "y", points)).rows]
    assert cells == [["5", "0.2"], ["6", "12.0"], ["7", "−3.1"]]
    (row,) = panel_table(Panel("p", "", "x", "y", (Point(-0.5, 0.0625, "", "a"),))).rows
    assert [cell.text for cell in row.cells] == ["−0.500", "0.062"]


def test_runs_of_one_label_are_told_apart_by_their_seeds() -> None:
    points = tuple(
        Point(1, 2, "", label, detail)
        for label, detail in (("a", "seed 0: 1"), ("a", "seed 12, x"), ("b", "seed 0"))
    )
    assert [row.label for row in panel_table(Panel("p", "", "", "", points)).rows] == [
        "a, seed 0",
        "a, seed 12",
        "b",
    ]


def test_a_terminal_has_the_caption_and_no_line_that_ends_inside_a_number() -> None:
    said = Built(
        "claims", "A title", f"Bold: told. {'word ' * 17}p = 0.03. {'word ' * 17}a 80 %. So; bold: more."
    )
    head, caption = render_exhibit_text(said).split("\n\n")
    assert head == "A title"
    lines = caption.splitlines()
    assert (lines[0][:8], lines[1][:8]) == ("* told. ", "p = 0.03")
    assert any(line.startswith("80 %.") for line in lines)
    assert "So; * more." in caption


def test_one_legend_says_what_an_asterisk_is() -> None:
    for name in ("table1", "table3", "tableA2"):
        text = render_exhibit_text(exhibit(name, study((0, 1, 2))))
        starred = any(re.search(r"\d\*", line) for line in text.splitlines())
        assert [line[:2] for line in text.splitlines() if line.startswith(("*", "Bold"))] == ["* "] * starred
    assert "‡ Not printed" in render_exhibit_text(exhibit("table1", study()))


def test_no_label_stands_twice_in_a_table_without_a_group_that_tells_them_apart() -> None:
    results = glyphs()
    for name in ("table1", "table4", "tableA1", "tableC2", "tableC3", "tableE2"):
        for made in exhibit(name, results).tables:
            heads = [(column.group, column.label) for column in made.columns]
            assert len(set(heads)) == len(heads), made.name
    labels = [column.label for column in exhibit("tableA1", results).tables[0].columns]
    assert labels.count("Chosen") == 1


def test_the_points_of_a_figure_can_be_read() -> None:
    made = exhibit("figure5", study((0, 1)))
    rows = list(csv.DictReader(io.StringIO(points_csv(made))))
    points = [point for figure in made.figures for panel in figure.panels for point in panel.points]
    assert [(float(row["x"]), float(row["y"])) for row in rows] == [(point.x, point.y) for point in points]
    assert {row["source"] for row in rows} == {"ours", "published"}


def test_lines_without_marks_can_be_read_too() -> None:
    curves = (Curve(((0.0, 1.0), (0.5, 2.0)), "a", "A line"),)
    panels = (
        Panel("lines", "", "x", "y", curves=curves),
        Panel("marks", "", "x", "y", (Point(9, 8, "a", "A mark"),), curves),
    )
    made = Built("figureE1", "", "", figures=(Figure("f", "", "", panels),))
    rows = [
        (row["panel"], row["label"], row["x"], row["y"])
        for row in csv.DictReader(io.StringIO(points_csv(made)))
    ]
    assert rows == [
        ("lines", "A line", "0.0", "1.0"),
        ("lines", "A line", "0.5", "2.0"),
        ("marks", "A mark", "9", "8"),
    ]


@pytest.mark.long
@given(st.text(max_size=30))
def test_any_text_survives_csv_latex_and_terminal(text: str) -> None:
    made = table(text, Cell(text))
    rows = list(csv.reader(io.StringIO(to_csv(made))))
    assert len(rows) == 2
    assert not rows[1][0].startswith(("=", "+", "-", "@", "\t"))
    body = to_latex(made).split(r"\midrule")[1]
    assert body.count("\\\\\n") == 1
    assert not any(unicodedata.category(c) == "Cc" and c != "\n" for c in to_text(made))


def test_what_bold_means_on_a_page_an_asterisk_means_in_a_terminal() -> None:
    notes = ("1 block1; last: the penultimate features. Bold: an earlier layer.",)
    assert to_text(table("Softmax", Cell("1", best=True), notes=notes)).endswith(
        "the penultimate features. * an earlier layer."
    )
