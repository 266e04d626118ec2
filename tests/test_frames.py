"""Tables: what is recognised in them, what is refused and in which words, and the recipe for new ones."""

import datetime
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cadlag import data, recipes
from cadlag.frames import Kind, read_frame, recognise, suggest, to_csv, write_csv
from cadlag.recipes import Input, Recipe

TABLE = (
    "day,shop,price,open,sales\n2024-01-01,north,1.5,true,10\n2024-01-02,south,2,false,20.5\n"
    "2024-01-04,west,.5,true,-3e1\n"
)


@pytest.fixture
def table(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def learn(path, target="sales", **options):
    frame = read_frame(path)
    recipe, _ = Recipe.learn(frame, target, **options)
    return frame, recipe


def test_columns_become_numbers(table):
    frame, recipe = learn(table(TABLE), categories=["shop"])
    assert [column.kind for column in recipe.inputs] == ["date", "category", "number", "boolean"]
    assert recipe.columns == ["day", "shop=north", "shop=south", "shop=west", "price", "open"]
    found = recipe.encode(frame, with_target=True)
    first = (datetime.date(2024, 1, 1) - datetime.date(1970, 1, 1)).days
    expected = [[first, 1, 0, 0, 1.5, 1], [first + 1, 0, 1, 0, 2, 0], [first + 3, 0, 0, 1, 0.5, 1]]
    np.testing.assert_array_equal(found.X, expected)
    np.testing.assert_array_equal(found.y, [10, 20.5, -30])
    assert recipe.inputs[0].text(first + 3.0) == "2024-01-04"


def test_two_categories_are_one_column(table):
    frame, recipe = learn(table("kind,sales\nb,1\na,2\nb,3\na,5\n"))
    assert recipe.columns == ["kind=b"]
    np.testing.assert_array_equal(recipe.encode(frame).X[:, 0], [1, 0, 1, 0])


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-2.5", "+3e-4", ".5"], Kind("number")),
        (["True", "False", "True"], Kind("boolean")),
        (["0", "1", "1"], Kind("number")),
        (["2024-01-01", "2024-02-29T12:30:00+02:00"], Kind("date", "iso")),
        (["2024-01-01", "2024-02-29T00:00:00"], Kind("date", "day")),
        (["31/12/2024", "01/02/2024"], Kind("date", "%d/%m/%Y")),
        (["12/31/2024", "01/02/2024"], Kind("date", "%m/%d/%Y")),
        (["1.2.2024 08:15", "3.2.2024 23:00"], Kind("date", "%d.%m.%Y %H:%M")),
        (["2024-01", "2024-02"], Kind("date", "%Y-%m")),
        (["1_000", "x", "y"], Kind("category")),
        (["a", "b", "NA"], Kind("category")),
    ],
)
def test_kinds(table, cells, kind):
    frame = read_frame(table("c,d\n" + "".join(f"{cell},1\n" for cell in cells)))
    assert recognise(frame, "c") == kind


def test_dates_against_the_calendar():
    reader = Input("t", "date", "iso")
    for text, days in (("1970-01-02", 1.0), ("1970-01-01T12:00", 0.5), ("1970-01-01T02:00+02:00", 0.0)):
        frame = type("", (), {"cells": lambda self, name, text=text: [text]})()
        assert reader.encode(frame)[0, 0] == days
    assert reader.text(0.5) == "1970-01-01T12:00:00"
    assert Input("t", "date", "day").text(30.9) == "1970-02-01"
    assert Input("t", "number").text(30.9) == "30.9"


def test_delimiters_decimals_and_encodings(table):
    plain = read_frame(table("a,b\n1.5,2\n"))
    for text in ("a;b\n1.5;2\n", "a\tb\r\n1.5\t2\r\n", "\ufeffa|b\n\n 1.5 | 2\n\n", '"a","b"\n"1.5","2"\n'):
        assert read_frame(table(text)).columns == plain.columns
    comma = read_frame(table("a;b\n1,5;2\n2,25;3\n"))
    assert recognise(comma, "a") == Kind("number", ",")
    assert Input("a", "number", ",").encode(comma)[:, 0].tolist() == [1.5, 2.25]
    latin = read_frame(table("größe,b\n1,2\n".encode("cp1252")))
    assert list(latin.columns) == ["größe", "b"]
    assert "Windows-1252" in latin.notes[0]


def test_row_labels_are_left_out(table):
    frame = read_frame(table('"","a"\n"1",3\n"2",4\n'))
    assert list(frame.columns) == ["a"]
    assert "row labels" in frame.notes[0]


def test_parquet_is_the_same_table(table, tmp_path):
    frame = pd.DataFrame(
        {"day": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-04"]), "shop": ["north", "south", "west"],
         "price": [1.5, 2.0, np.nan], "open": [True, False, True], "sales": [10.0, 20.5, -30.0]}
    )  # fmt: skip
    frame.to_parquet(tmp_path / "data.parquet")
    csv_frame, recipe = learn(table(TABLE.replace(",.5,", ",,")), categories=["shop"])
    read = read_frame(tmp_path / "data.parquet")
    for one in (recipe, Recipe.learn(read, "sales", categories=["shop"])[0]):
        assert one.columns == recipe.columns
        ours, theirs = (one.encode(f, drop_missing=True) for f in (csv_frame, read))
        np.testing.assert_array_equal(ours.X, theirs.X)
        assert ours.rows.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        (",\n\u00a0, ,\n", "is empty"),
        (b"a,b\n1,\0\n", "is not a table"),
        ("a,b\n", "has no rows of data"),
        ("1,2\n3,4\n", "numbers in its first line"),
        ("a,a\n1,2\n", "two columns of the name 'a'"),
        ("a,b\n1,2\n\n3\n", r"row 2 \(line 4\) has 1 cells and the first line 2 names"),
        ("a,b\n1,2,3\n", r"row 1 \(line 2\) has 3 cells"),
        (b"PAR1 and nothing more", "damaged Parquet"),
    ],
)
def test_what_is_not_a_table(table, text, words):
    with pytest.raises(ValueError, match=words):
        read_frame(table(text))


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_frame(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is a directory"):
        read_frame(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,sales\n1,2\n2,3\n", None),
        ("x,sale\n1,2\n2,3\n", r"no column 'sales': did you mean 'sale'\?"),
        ("x,sales\n1,a\n2,b\n", "the target 'sales' is text"),
        ("x,sales\n1,2024-01-01\n2,2024-01-02\n", "the target 'sales' is dates"),
        ("x,sales\n1,5\n2,5\n", "does not vary"),
        ("sales\n1\n2\n", "no column to predict 'sales' from"),
        ("x,sales\n7,1\n7,2\n", "no column to predict 'sales' from"),
        ("x,sales\n1,1\n2,2\nabc,3\n4,4\n", r"row 3 \(line 4\), column 'x' holds 'abc' among numbers"),
        ("x,sales\n1,1\n2,inf\n", r"row 2 .*column 'sales' holds 'inf'"),
        ("x,sales\n01/02/2024,1\n02/03/2024,2\n", "day and month cannot be told apart"),
        ('x,sales\n"1,200",1\n"2,500.5",2\n', "numbers such as '1,200': write them plainly"),
        ("x,sales\n$5,1\n$6,2\n", "numbers such as"),
        ("x,sales\n12%,1\n6%,2\n", "numbers such as"),
        ("x,sales\n" + "".join(f"name{i},{i}\n" for i in range(9)), "9 different texts in 9 rows.*--ignore x"),
    ],
)
def test_what_cannot_be_learned(table, text, words):
    if words is None:
        assert learn(table(text))[1].columns == ["x"]
        return
    with pytest.raises(ValueError, match=words):
        learn(table(text))


def test_missing_values_are_refused_by_name_or_left_out(table):
    frame, recipe = learn(table("x,k,sales\n1,a,1\n,b,2\n3,a,3\n4,NA,4\n5,b,?\n"))
    with pytest.raises(
        ValueError, match=r"row 2 \(line 3\), column 'x' is missing; 3 rows are like this.*--drop-missing"
    ):
        recipe.encode(frame, with_target=True)
    found = recipe.encode(frame, with_target=True, drop_missing=True)
    np.testing.assert_array_equal(found.X, [[1, 0], [3, 0]])
    assert found.rows.tolist() == [0, 2]
    assert recipe.encode(frame, drop_missing=True).rows.tolist() == [0, 2, 4]
    assert "rows left out: 3 of 5" in found.notes[0]


def test_the_target_of_a_row_left_out_goes_with_it(table):
    frame, recipe = learn(table("x,sales\n1,10\n,20\n3,30\n4,40\n"))
    numbers = recipe.encode(frame, with_target=True, drop_missing=True)
    np.testing.assert_array_equal(numbers.X[:, 0], [1.0, 3.0, 4.0])
    np.testing.assert_array_equal(numbers.y, [10.0, 30.0, 40.0])
    np.testing.assert_array_equal(numbers.rows, [0, 2, 3])


def test_new_tables_are_read_by_the_recipe(table):
    _, recipe = learn(table("x,k,c,sales\n1,a,9,1\n2,b,9,2\n3,c,9,4\n4,a,9,5\n5,b,9,6\n6,c,9,0\n"))
    assert recipe.columns == ["x", "k=a", "k=b", "k=c"]
    again = Recipe.from_tree(recipe.to_tree())
    assert again == recipe
    new = read_frame(table("extra,k,x\n0,b,7\n1,a,8\n"))
    np.testing.assert_array_equal(again.encode(new).X, [[7, 0, 1, 0], [8, 1, 0, 0]])
    remarks = " ".join(again.remarks(new))
    assert "another order" in remarks
    assert "not used: 'extra'" in remarks
    with pytest.raises(ValueError, match=r"row 1 .*category 'z', which the model never saw \(known: 'a', 'b', 'c'\)"):
        again.encode(read_frame(table("k,x\nz,7\n")))
    with pytest.raises(ValueError, match="has no column 'x'"):
        again.encode(read_frame(table("k,z\na,7\n")))
    with pytest.raises(ValueError, match="holds 'high', not a number"):
        again.encode(read_frame(table("k,x\na,high\n")))
    with pytest.raises(ValueError, match="every row has a missing value"):
        again.encode(read_frame(table("k,x\nz,7\n")), drop_missing=True)


@pytest.mark.parametrize("change", [{"inputs": None}, {"target": {}}, {"inputs": [{"name": "x", "kind": "code"}]}])
def test_damaged_recipe(change):
    tree = {**Recipe.of_numbers(["x"]).to_tree(), **change}
    with pytest.raises(ValueError, match="recipe in the model file is damaged"):
        Recipe.from_tree(tree)


@pytest.mark.parametrize("names", [["y", "x"], ["x", "z"], ["x"], []])
def test_recipe_of_other_inputs_is_refused(names):
    """As many inputs under other names, or in another order, would be read as if they were the model's."""
    tree = Recipe.of_numbers(["x", "y"]).to_tree()
    assert Recipe.of_model(SimpleNamespace(recipe_=tree, feature_names_in_=np.array(["x", "y"]))).columns == ["x", "y"]
    with pytest.raises(ValueError, match="does not fit its model"):
        Recipe.of_model(SimpleNamespace(recipe_=tree, feature_names_in_=np.array(names)))


def test_written_tables_are_read_again(tmp_path):
    rows = [[0.1 + 0.2, 1e-300], [float("nan"), -5.0]]
    assert to_csv(["a", "b"], rows) == "a,b\n0.30000000000000004,1e-300\n,-5.0\n"
    write_csv(tmp_path / "out.csv", ["a", "b"], rows)
    assert read_frame(tmp_path / "out.csv").columns == {"a": ["0.30000000000000004", ""], "b": ["1e-300", "-5.0"]}
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_suggestions():
    assert suggest("Sale", ["price", "sales"]).startswith("did you mean 'sales'?")
    assert suggest("zzz", ["a"]) == "There is 'a'"
    assert suggest("zzz", [str(i) for i in range(20)]).endswith("and 8 more")


# Hostile and unlucky tables ------------------------------------------------------------------------------------------

THIRTY = [f"{i},{i * i % 7},s{i % 3}" for i in range(30)]


def thirty(**changed):
    """Thirty rows of three columns, some of them written otherwise."""
    rows = [changed.get(f"row{i}", row) for i, row in enumerate(THIRTY)]
    return "\n".join(["x,sales,kind", *rows]) + "\n"


@pytest.mark.parametrize(
    ("changed", "line", "words"),
    [
        ({"row10": '10,2,"6 inches'}, 12, "never closed"),
        ({"row10": '"10,2,s1'}, 12, "never closed"),
        ({"row29": '29,1,"s2'}, 31, "never closed"),
        ({"row10": '10,2,"6 inches', "row20": '20,1,"8 inches'}, 12, "closed only on line 22"),
        ({"row10": '10,2,"6 inches', "row20": '20,1,8"'}, 12, "closed only on line 22"),
        ({"row10": '10,2,"6 inches', "row11": '11,2,8"'}, 12, "closed only on line 13"),
        ({"row10": '10,2,"6 inches', "row11": '11,2,"s2"'}, 12, "closed only on line 13"),
        ({"row10": '"10,2,s1', "row12": '12",4,s0'}, 12, "closed only on line 14"),
        ({"row10": '10,"2,s1', "row15": '","s,0 "'}, 12, "closed only on line 17"),
    ],
)
def test_an_unclosed_quote_does_not_swallow_rows(table, changed, line, words):
    with pytest.raises(ValueError, match=f"line {line} has a quote that is {words}.*leave it out"):
        read_frame(table(thirty(**changed)))


@pytest.mark.parametrize(
    ("cell", "becomes"),
    [
        ('"a"b', "ab"), ('5" pipe', '5" pipe'), ('"two ""inches"""', 'two "inches"'), ('a "b"', 'a "b"'), ('""', ""),
        ('"two\nlines"', "two\nlines"), ('"a, b"', "a, b"), ('"a,\nb,\nc"', "a,\nb,\nc"),
        ('"two, or\nthree,\nlines"', "two, or\nthree,\nlines"),
    ],
)  # fmt: skip
def test_harmless_quotes_are_still_taken(table, cell, becomes):
    frame = read_frame(table(thirty(row10=f"10,2,{cell}", row11=f"11,2,{cell}")))
    assert frame.n_rows == 30
    assert frame.columns["kind"][9:13] == ["s0", becomes, becomes, "s0"]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ('"a, b, c";t;y', ["a, b, c", "t", "y"]),
        ('a, "b; c; d; e", y', ["a", "b; c; d; e", "y"]),
        ('"a\n,,,b";t;y', ["a\n,,,b", "t", "y"]),
        ('5" pipe;t;y', ['5" pipe', "t", "y"]),
        ("a\u2028b;t;y", ["a\u2028b", "t", "y"]),
    ],
)
def test_the_delimiter_is_not_guessed_from_quoted_text(table, header, names):
    mark = "," if header.startswith("a,") else ";"
    frame = read_frame(table(f"{header}\n1{mark}2{mark}3\n4{mark}5{mark}6\n"))
    assert list(frame.columns) == names
    assert frame.columns["y"] == ["3", "6"]


@pytest.mark.parametrize("cell", ["1" * 100_000 + "x", "1" * 100_000 + ",x", "." * 100_000, "1 " * 50_000 + "x"])
@pytest.mark.parametrize("mark", [",", ";"])
def test_a_long_cell_is_no_long_wait_and_no_long_message(table, cell, mark):
    start = time.process_time()
    frame = read_frame(table(f'x{mark}sales\n1{mark}2\n"{cell}"{mark}3\n'))
    with pytest.raises(ValueError, match=r"row 2 .* among numbers") as caught:
        recognise(frame, "x")
    assert len(str(caught.value)) < 500
    assert time.process_time() - start < 2.0


def test_many_columns_are_no_long_wait(table):
    count = 50_000
    start = time.process_time()
    names = [f"c{j}" for j in range(count)]
    rows = [",".join([str((i * j) % 7) for j in range(count)]) for i in range(3)]
    frame, recipe = learn(table("\n".join([",".join(names), *rows])), target="c5")
    assert recipe.encode(frame).X.shape[0] == 3
    assert recipe.remarks(frame)[0].startswith("not used")
    with pytest.raises(ValueError, match=r"has no column 'c_x': .* and 49988 more"):
        frame.cells("c_x")
    assert time.process_time() - start < 20.0


@pytest.mark.parametrize("other", ["k=a", "k=b"])
def test_a_number_does_not_go_by_the_name_of_a_category(table, other):
    rows = "\n".join(f"{'abc'[i % 3]},{i % 5},{i}" for i in range(12))
    with pytest.raises(ValueError, match=f"'k' and '{other}' both become '{other}'.*rename one"):
        learn(table(f"k,{other},sales\n{rows}"))


def test_two_categories_do_not_go_by_one_name(table):
    rows = "\n".join(f"{('a=b', 'c', 'd')[i % 3]},{'bxy'[i % 3]},{i}" for i in range(12))
    with pytest.raises(ValueError, match="'k' and 'k=a' both become 'k=a=b'"):
        learn(table(f"k,k=a,sales\n{rows}"))


@pytest.mark.parametrize(
    "changes",
    [
        {"form": "%Q("}, {"form": "(((("}, {"form": "%d.%m.%Y%"}, {"kind": "number", "form": "iso"}, {"kind": "money"},
        {"kind": "category", "form": "", "categories": ["a", "b", "c"], "name": "x"},
    ],
)  # fmt: skip
def test_a_foreign_recipe_is_refused(table, changes):
    _, recipe = learn(table("day,x,x=a,sales\n" + "".join(f"2024-01-{i:02d},{i},{i},{i}\n" for i in range(1, 9))))
    tree = recipe.to_tree()
    tree["inputs"][0] |= changes
    with pytest.raises(ValueError, match="recipe in the model file is damaged"):
        Recipe.from_tree(tree)


# Parquet and odd forms -----------------------------------------------------------------------------------------------


@pytest.fixture
def parquet(tmp_path):
    def write(columns, names=None):
        path = tmp_path / "data.parquet"
        arrays = list(columns.values()) if isinstance(columns, dict) else columns
        pq.write_table(pa.table(arrays, names=names or list(columns)), path)
        return path

    return write


NUMBERS = pa.array([1.0, 2.0, 4.0, 8.0])


def test_coded_categories_of_parquet_are_categories(parquet):
    coded = pa.array([3, 5, 3, 7]).dictionary_encode()
    _, recipe = learn(parquet({"code": coded, "sales": NUMBERS}))
    assert recipe.columns == ["code=3", "code=5", "code=7"]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([b"a", b"b", b"c", b"d"]), "holds a bytes"),
        (pa.array([[1], [2], [], [3]]), "holds a list"),
        (pa.array([{"a": 1}] * 4), "holds a dict"),
        (pa.array([10**12] * 4, pa.timestamp("s")), "out of range|year"),
        (pa.array([10**8] * 4, pa.date32()), "out of range|ordinal"),
        (pa.array([1, 2, 3, 4], pa.time32("s")), "holds times of day: give hours"),
    ],
    ids=["bytes", "list", "struct", "timestamp", "date", "time"],
)
def test_a_parquet_column_that_is_no_text_can_be_left_out(parquet, column, words):
    path = parquet({"odd": column, "x": NUMBERS, "sales": NUMBERS})
    with pytest.raises(ValueError, match=f"column 'odd' .*({words})"):
        learn(path)
    frame, recipe = learn(path, ignore=["odd"])
    assert recipe.columns == ["x"]
    assert recipe.remarks(frame) == ["not used: 'odd'"]


def test_durations_are_days(parquet):
    path = parquet({"d": pa.array([0, 12, 24, 48], pa.duration("s")), "sales": NUMBERS})
    frame, recipe = learn(path)
    np.testing.assert_allclose(recipe.encode(frame).X[:, 0], np.array([0, 12, 24, 48]) / 86400)
    assert "column 'd' holds durations, taken as days" in frame.notes


def test_numbers_may_name_columns_of_parquet(parquet):
    frame, recipe = learn(parquet([NUMBERS, NUMBERS], ["0", "1"]), target="1")
    assert (frame.n_rows, recipe.columns) == (4, ["0"])


def test_names_of_parquet_are_checked_before_it_is_called_damaged(parquet):
    with pytest.raises(ValueError, match="two columns of the name 'x'"):
        read_frame(parquet([NUMBERS, NUMBERS], ["x", "x"]))


def test_an_empty_parquet_is_said_to_be_empty(parquet):
    with pytest.raises(ValueError, match="has no rows of data"):
        read_frame(parquet({}, []))


def test_utf_16_is_read_with_a_note(table):
    frame = read_frame(table("x,sales\n1,2\né,3\n".encode("utf-16")))
    assert frame.columns == {"x": ["1", "é"], "sales": ["2", "3"]}
    assert "UTF-16" in frame.notes[0]


def test_a_point_among_decimal_commas_is_refused(table):
    with pytest.raises(ValueError, match=r"holds '1\.234' among numbers"):
        learn(table("x;sales\n1,5;1\n1.234;2\n2,5;3\n3,5;4\n"))


def test_a_comma_before_decimals_is_told_of_the_target_too(table):
    _, notes = Recipe.learn(read_frame(table("x;sales\n1;1,234\n2;2,345\n")), "sales")
    assert notes == ["column 'sales' is read with a comma before decimals"]


def test_dates_without_marks_are_told(table):
    _, notes = Recipe.learn(read_frame(table("x,sales\n20240131,1\n20240201,2\n")), "sales")
    assert notes == ["column 'x' is read as numbers; if they are dates, write them as YYYY-MM-DD"]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["1", "1.0", "1e0"], "is the same in every row and"),
        (["0", "-0", "0"], "is the same in every row and"),
        (["a", "", "a"], "is the same in every row that has it and"),
        (["", "", ""], "is empty and"),
    ],
)
def test_columns_that_do_not_vary_are_left_out(table, cells, words):
    rows = "\n".join(f'"{cell}",{i},{i}' for i, cell in enumerate(cells))
    recipe, notes = Recipe.learn(read_frame(table(f"odd,x,sales\n{rows}\n")), "sales")
    assert recipe.columns == ["x"]
    assert notes == [f"column 'odd' {words} is left out"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ignore": ["sales"]}, "with --ignore and with --target"),
        ({"categories": ["sales"]}, "with --category and with --target"),
        ({"categories": ["shop"], "ignore": ["shop"]}, "with --ignore and with --category"),
        ({"ignore": ["nowhere"]}, "has no column 'nowhere'"),
    ],
)
def test_options_that_exclude_each_other_are_refused(table, options, words):
    with pytest.raises(ValueError, match=words):
        learn(table(TABLE), **options)


def test_an_empty_target_is_said_to_be_empty(table):
    with pytest.raises(ValueError, match="the target 'sales' is empty"):
        learn(table("x,sales\n1,\n2,\n3,\n"))


def test_a_huge_number_is_named_by_its_place(table):
    with pytest.raises(ValueError, match=r"row 2 \(line 3\), column 'x' holds '-1e200', too large a number: rescale"):
        learn(table("x,sales\n1,1\n-1e200,2\n3,3\n"))
    assert recipes.LARGEST == data.LARGEST


def test_texts_of_no_kind_are_no_long_wait(table):
    """Every form of date was tried on every text."""
    start = time.process_time()
    frame = read_frame(table("id,sales\n" + "".join(f"id-{i},{i}\n" for i in range(30_000))))
    assert recognise(frame, "id") == Kind("category")
    assert time.process_time() - start < 3.0


@pytest.mark.parametrize(("count", "advice"), [(900, "or insist with --category id"), (1100, "--ignore id$")])
def test_nobody_is_advised_to_make_more_columns_than_there_is_room_for(table, count, advice):
    path = table("id,sales\n" + "".join(f"id-{i},{i}\n" for i in range(count)))
    with pytest.raises(ValueError, match=f"{count} different texts.*{advice}"):
        learn(path)
    if count < 1000:
        assert len(learn(path, categories=["id"])[1].columns) == count
    else:
        with pytest.raises(ValueError, match="1100 different texts"):
            learn(path, categories=["id"])


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("x,k\n1,a\n,\n3,a\n", [["1", "", "3"], ["a", "", "a"]]),
        ("x,k\n1,a\n\n3,a\n  \n", [["1", "3"], ["a", "a"]]),
        ('x\n1\n""\n3\n', [["1", "", "3"]]),
        ("x\n1\n\n3\n\n", [["1", "3"]]),
    ],
)
def test_a_row_of_empty_cells_is_a_row(table, text, rows):
    """As pandas and spreadsheets write it; predictions must not lose their places."""
    assert list(read_frame(table(text)).columns.values()) == rows
