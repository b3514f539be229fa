"""DataFrames of what the program prints. A column's type is the same whatever it holds: text is "string", a whole number int64, or Int64 where it
may be missing, any other number float64 with NaN where there is none, truth bool. Only labels and settings, which a grid names, are what they look like."""

import csv
import importlib
import io
import json
import os
import re
from typing import Any, Callable, Dict, Iterator, List, MutableMapping, Optional, Sequence

import pandas

Row = MutableMapping[str, Any]
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


class Table(pandas.DataFrame):
    """The cells of tables; what is selected from it is a plain DataFrame."""

    _draw: Optional[Callable[[], str]] = None

    @property
    def _constructor(self) -> Callable[..., pandas.DataFrame]:
        return pandas.DataFrame

    def html(self) -> str:
        """The tables in print, of the results that there are now."""
        return self._draw() if self._draw else pandas.DataFrame(self).to_html()

    def _repr_html_(self) -> str:
        return self.html()


class Figure(pandas.DataFrame):
    """The points of figures; what is selected from it is a plain DataFrame."""

    _draw: Optional[Callable[[], Dict[str, str]]] = None

    @property
    def _constructor(self) -> Callable[..., pandas.DataFrame]:
        return pandas.DataFrame

    def svgs(self) -> Dict[str, str]:
        """The figures, drawn of the results that there are now: name -> SVG."""
        return self._draw() if self._draw else {}

    def _repr_svg_(self) -> Optional[str]:
        drawn = list(self.svgs().values())
        return drawn[0] if len(drawn) == 1 else None

    def _repr_html_(self) -> str:
        return "\n".join(self.svgs().values()) or pandas.DataFrame(self).to_html()


# --- columns --------------------------------------------------------------------------------------------------------------
Column = Callable[[Sequence[Any]], "pandas.Series[Any]"]
Columns = Dict[str, "pandas.Series[Any]"]


def of_type(dtype: str) -> Column:
    return lambda values: pandas.Series(list(values), dtype=dtype)


numbers, whole, maybe_whole, truth, lists = map(of_type, ("float64", "int64", "Int64", "bool", "object"))


def texts(values: Sequence[Optional[str]]) -> "pandas.Series[Any]":
    """What has no text has an empty one, as in CSV: a comparison with a missing one would be false, `!=` too."""
    return of_type("string")([value or "" for value in values])


def settings(values: Sequence[Any]) -> "pandas.Series[Any]":
    """Int64, boolean, float64 or string, which values of several kinds become: lists and numbers among texts are JSON."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and all(value is None or abs(value) < 2**63 for value in values):
        return maybe_whole(values)
    if kinds == {bool}:
        return of_type("boolean")(values)
    if kinds and kinds <= {int, float}:
        return numbers(values)
    return of_type("string")([value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values])


def labels(values: Sequence[Optional[str]]) -> "pandas.Series[Any]":
    """Numbers if all labels are, and no two of them the same one."""
    there = {value for value in values if value is not None}
    if all(NUMBER.fullmatch(label) for label in there) and len({float(label) for label in there}) == len(there):
        values = [None if value is None else json.loads(value) for value in values]
    return settings(values)


def times(values: Sequence[Optional[str]]) -> "pandas.Series[Any]":
    return pandas.Series(pandas.to_datetime(pandas.Series(list(values), dtype="object"), utc=True))


def fields(rows: Sequence[Row], /, **columns: Column) -> Columns:
    return {name: column([row.get(name) for row in rows]) for name, column in columns.items()}


def members(rows: Sequence[Row], of: str, column: Column, keys: Sequence[str] = ()) -> Columns:
    """A column for each key of the objects row[of]: `keys`, or all that there are."""
    keys = keys or sorted({key for row in rows for key in row.get(of, {})})
    return {key: column([row.get(of, {}).get(key) for row in rows]) for key in keys}


def frame(*groups: Columns, order: Sequence[int] = ()) -> pandas.DataFrame:
    """The columns of all groups, in the order of these. Names are unique as the program makes them: the second `place` is `place:2`."""
    names = [name for group in groups for name in group]
    taken, seen = set(names), set()
    parts: List[List["pandas.Series[Any]"]] = []
    for group in groups:
        parts.append([])
        for name, column in group.items():
            unique, number = name, 2
            while unique in seen or unique != name and unique in taken:
                unique, number = f"{name}:{number}", number + 1
            seen.add(unique)
            parts[-1].append(column.rename(unique))
    return pandas.concat([column for place in order or range(len(groups)) for column in parts[place]], axis=1)


# --- what the program prints ----------------------------------------------------------------------------------------------
def sweeps(rows: Sequence[Row], states: Sequence[str]) -> pandas.DataFrame:
    return frame(fields(rows, sweep=texts, name=texts, title=texts, grid_file=texts, state=texts, reason=texts, priority=whole, submitted_at=times,
                        runs=whole, **dict.fromkeys(states, whole)))


def runs(rows: Sequence[Row]) -> pandas.DataFrame:
    for row in rows:
        row["resume"] = row["resume"] and row["resume"]["outcome"]
    found = fields(rows, **{"run": texts, "sweep": texts, "name": texts, "place": maybe_whole, "seed": maybe_whole, "state": texts,
                            "class": texts, "reason": texts, "step": whole, "updates": whole, "resume": texts, "stale": texts, "mixed": truth})
    return frame(found, members(rows, "coordinates", labels), members(rows, "scores", numbers), members(rows, "settings", settings))


def result(row: Row) -> pandas.DataFrame:
    names = list(row["scores"])
    kinds = ["measured" if "measured." in name else "score" for name in names]
    found = frame({"name": texts(names), "kind": texts(kinds), "value": numbers(list(row["scores"].values()))})
    found.attrs = {key: value for key, value in row.items() if key != "scores"}
    return found


def metrics(text: str) -> pandas.DataFrame:
    lines = list(csv.reader(io.StringIO(text)))[1:]
    return frame({"run": texts([line[0] for line in lines]), "step": whole([int(line[1]) for line in lines]), "name": texts([line[2] for line in lines]),
                  "value": numbers([float(line[3] or "nan") for line in lines])})


def joined(parts: Sequence[pandas.DataFrame]) -> pandas.DataFrame:
    return pandas.concat(parts, ignore_index=True)


def rows(found: Sequence[Row]) -> pandas.DataFrame:
    return frame(fields(found, **{name: settings for name in found[0]})) if found else pandas.DataFrame()


def cells(tables: Sequence[Row]) -> Iterator[Row]:
    for number, table in enumerate(tables, 1):
        for row in table["rows"]:
            for column, cell in zip(table["columns"], row["cells"]):
                seeds = sorted(cell["values"], key=int)
                published = cell["published"]
                yield {**cell, "table": number, "score": column["score"], "labels": {**row["labels"], **column["labels"]},
                       "added": row["added"] or column["added"], "seeds": list(map(int, seeds)), "values": [cell["values"][seed] for seed in seeds],
                       "published": published if isinstance(published, (int, float)) else None,
                       "published_text": published if isinstance(published, str) else None}


def table(answer: Any, draw: Callable[[], str]) -> Table:
    tables = answer if isinstance(answer, list) else [answer]
    found = list(cells(tables))
    axes = list(dict.fromkeys(axis for each in tables for axis in each["row_axes"] + each["column_axes"]))
    made = Table(frame(
        fields(found, table=whole),
        fields(found, score=texts, state=texts, mean=numbers, spread=numbers, n=whole, expected=whole, diverged=whole, below=whole, failed=whole,
               scoreless=whole, missing=whole, stale=whole, mixed=whole, seeds=lists, values=lists, delta=numbers, ratio=numbers, p=numbers,
               corrected_p=numbers, published=numbers, published_text=texts,
               difference=numbers, bold=truth, chosen=texts, tied=truth, repeats=truth, added=truth, runs=lists, reason=texts,
               equivalent=truth),
        members(found, "labels", labels, axes) if axes else {}, order=[0, 2, 1]))
    made.attrs = {"notes": [each["notes"] for each in tables]}
    made._draw = draw
    return made


def claims(answer: Row) -> pandas.DataFrame:
    found = [*answer["claims"], *answer["cells"]]
    made = frame(fields(found, grid=texts, name=texts, text=texts, source=texts, kind=texts, score=texts, limit=texts),
                 fields(found, verdict=texts, estimate=numbers, low=numbers, high=numbers, unit=texts, n=lists, level=numbers,
                        look=numbers, looks=numbers, seeds=numbers, reason=texts, caveats=lists, declared=texts, hash=texts),
                 members(found, "place", labels), order=[0, 2, 1])
    made.attrs = {"counts": answer["counts"]}
    return made


def figure(text: str, draw: Callable[[], Dict[str, str]]) -> Figure:
    header, *lines = csv.reader(io.StringIO(text))
    columns = {name: [line[place] or None for line in lines] for place, name in enumerate(header)}
    over_numbers = all(x is None or NUMBER.fullmatch(x) for x in columns["x"])
    types: Dict[str, Column] = {**dict.fromkeys(header, labels), "figure": texts, "y": texts, "x": numbers if over_numbers else texts, "mean": numbers,
                                "low": numbers, "high": numbers, "runs": maybe_whole, "source": texts, "diverged": numbers}
    made = Figure(frame({name: types[name](values) for name, values in columns.items()}))
    made._draw = draw
    return made


def plan(answer: Row) -> pandas.DataFrame:
    parts = answer.get("parts", [answer])
    found = [{**run, "grid": part["file"], "run": run["id"]} for part in parts for run in part["runs"]]
    made = frame(fields(found, grid=texts, run=texts), fields(found, seed=whole, plan=texts, state=texts, updates=whole, parameters=maybe_whole),
                 members(found, "coordinates", labels), order=[0, 2, 1])
    made.attrs = {key: value for key, value in answer.items() if key not in ("runs", "parts", "axes", "errors")}
    return made


def write_parquet(path: str, parts: Iterator[pandas.DataFrame]) -> None:
    pyarrow: Any = importlib.import_module("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    part = path + ".part"
    schema = None
    try:
        for each in parts:
            found = pyarrow.Table.from_pandas(each, schema=schema, preserve_index=False)
            if schema is None:
                schema = found.schema
                writer = parquet.ParquetWriter(part, schema)
            writer.write_table(found)
        writer.close()
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)
