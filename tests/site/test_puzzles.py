# SPDX-License-Identifier: Apache-2.0
"""Each puzzle fails with its hole, and with a wrong answer in it, by what it checks; its answer is right."""

import importlib.util
from pathlib import Path

import pytest

from website import notebook

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "puzzles"
SPEC = importlib.util.spec_from_file_location("puzzle_answers", FOLDER / "answers.py")
answers = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(answers)
FILES = answers.files()
WRONG = {
    1: ["(1, 4)", "(1, 8)"],
    2: ["((1, 2), (4, 8))", "((1, 8), (2, 4))"],
    3: ["[0, 1]"],
    4: ["(4, 2)", "8"],
    5: ["(4, 1)"],
    6: ["True", "i < 99"],
    7: ["arch.sync_warp()", "pass"],
    8: ["34", "35"],
    9: ["(3, 0, 5)", "(5, 0, 6)"],
    10: ["2"],
    11: ["3"],
    12: ["64", "64 * 4"],
    13: ["(i + 1) % 2", "0"],
    14: ["pass", "arch.sync_threads()"],
    15: ["3"],
    16: ["pass"],
    17: ["1", "blocks + 1"],
    18: ["rank", "rank + 1"],
    19: ["False"],
    20: ["top - highest", "0.0"],
}


def run(number, answer, folder):
    """Run a puzzle with what stands in its hole; in a file, since errors and kernels want their source."""
    code = FILES[number].read_text()
    assert code.count("___") == 1
    file = folder / FILES[number].name
    file.write_text(code if answer is None else code.replace("___", answer))
    exec(compile(file.read_text(), str(file), "exec"), {"__name__": "puzzle", "__file__": str(file)})


def test_there_are_twenty_puzzles_with_a_hint_an_answer_and_wrong_ones():
    numbers = set(range(1, 21))
    assert set(FILES) == set(answers.HINTS) == set(answers.ANSWERS) == set(WRONG) == numbers


@pytest.mark.parametrize("number", FILES)
def test_answer_is_right(number, tmp_path, capsys):
    run(number, answers.ANSWERS[number], tmp_path)
    assert capsys.readouterr().out == "right\n"


@pytest.mark.parametrize("number", FILES)
def test_hole_and_wrong_answers_fail(number, tmp_path):
    for i, answer in enumerate((None, *WRONG[number])):
        (tmp_path / str(i)).mkdir()
        with pytest.raises(Exception) as caught:
            run(number, answer, tmp_path / str(i))
        # a hole is a name that there is not; a wrong answer is told by what the puzzle checks, or by the simulator
        assert (answer is None) == ("___" in str(caught.value)), (answer, caught.value)


@pytest.mark.slow
def test_the_notebook_plays():
    """In a notebook's own process, with the answers in the holes."""
    client, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.reads(notebook.notebook(), 4)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    for number, cell in enumerate(cells, 1):
        cell.source = cell.source.replace("___", answers.ANSWERS[number])
    client.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    assert ["".join(out.text for out in cell.outputs) for cell in cells] == ["right\n"] * 20


def test_the_notebook_has_the_puzzles():
    assert notebook.FILE.read_text() == notebook.notebook(), "python -m website.notebook"
