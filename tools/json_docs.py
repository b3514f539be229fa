#!/usr/bin/env python3
"""json_docs.py [PAGE]: writes docs/json.md, or PAGE: the members of every answer of `tearless … --json`, by their paths.

Types are those of the answers that tools/json_answers.py asks for; meanings stand in tools/json_members.toml, a section for each
command and for each object that several answers have. It fails, naming it, for a member without a meaning or with none in any answer.

A meaning begins, in braces, with what is not learnt: {NAME} for an object that has a section of its own, {any} for what people's
settings and programs decide, {null}, {text} or {absent} for what no answer of ours has. A path that ends in .* stands for all members
of an object whose names are data.
"""

import collections
import pathlib
import re
import sys
import textwrap
import tomllib
import typing

import json_answers

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEMBERS = ROOT / "tools/json_members.toml"
OBJECT = "object "  # begins the sections of objects
KINDS = {str: "text", bool: "yes/no", int: "whole number", float: "number", dict: "object", list: "list", type(None): "null"}
ORDER = ["text", "yes/no", "whole number", "number", "object", "list", "any", "null", "absent"]
HEAD = """# What `--json` prints

Written by `tools/json_docs.py` from answers of each command that prints JSON. A test compares this page with what
the program prints, so a member that is new, gone, renamed or of another type changes this page. How to drive
`tearless` by these: [automation.md](automation.md).

An answer is one JSON value on standard output, and numbers have all their digits. Of the paths below, `a.b` is the
member `b` of the object `a`, `a[]` is each element of a list, `a.*` each member of an object whose names are data,
such as the names of scores, and `.` the answer itself. A number that is not finite is null, a text that does not
apply is `""`. *Absent*: not every answer has it.

`run`, `watch`, `serve`, `daemon`, `worker` and `wrap` have no answer: they follow what trains, for a person, until it
ends. A program types `submit` and `wait`.
"""


class Member(typing.NamedTuple):
    meaning: str
    refers: str = ""  # to the object of this name; "any": to anything
    declared: frozenset = frozenset()  # types beside those that are learnt


def members_in(sections):
    """Section -> path -> Member, of the texts of tools/json_members.toml; the path "" has what is said below a section's heading."""
    def member(text):
        refers, meaning = re.fullmatch(r"(?:\{(.+?)\} )?(.*)", text, re.DOTALL).groups()
        return Member(meaning, "", frozenset([refers])) if refers in ("null", "text", "absent") else Member(meaning, refers or "")

    return {section: {path: member(text) for path, text in paths.items()} for section, paths in sections.items()}


def read_members(file):
    return members_in(tomllib.loads(file.read_text()))


def has_data_names(paths, at):
    """Whether the members of the object whose paths begin with `at` are data."""
    return any(path.startswith(at + "*") for path in paths)


class Learnt:
    """The types of each path that the answers have. `members`: as members_in() has them."""

    def __init__(self, members):
        self.members = members
        self.types = {section: {} for section in members}  # section -> path -> set of KINDS' names
        self.objects, self.present = collections.Counter(), collections.Counter()  # by section and path: objects seen; those with it

    def look(self, value, section, path=""):
        known = self.members.setdefault(section, {})
        refers, types = known[path].refers if path in known else "", self.types.setdefault(section, {}).setdefault(path, set())
        types.add("any" if refers == "any" and value is not None else KINDS[type(value)])
        if refers == "any":
            return
        if isinstance(value, list):
            for item in value:
                self.look(item, section, path + "[]")
        elif isinstance(value, dict):
            if refers:
                section, path = OBJECT + refers, ""
            self.objects[section, path] += 1
            at = f"{path}." if path else ""
            is_map = has_data_names(self.members.setdefault(section, {}), at)
            for name, item in value.items():
                self.look(item, section, at + ("*" if is_map else name))
                self.present[section, path, name] += 1

    def rows(self, section):
        """Path -> its types, without lists and objects of which the paths of their elements say all."""
        for of, path, name in self.present:
            if of == section and self.present[of, path, name] < self.objects[of, path]:
                self.types[section].get(f"{path}.{name}" if path else name, set()).add("absent")
        types = {path: set(member.declared) for path, member in self.members[section].items() if member.declared}
        for path, learnt in self.types[section].items():
            types[path] = types.get(path, set()) | learnt
        return {path: of for path, of in types.items() if (path or self.refers(section, path)) and of != {"list"}
                and not (of == {"object"} and (path not in self.members[section] or has_data_names(types, f"{path}.")))}

    def refers(self, section, path):
        return self.members[section][path].refers if path in self.members[section] else ""

    def mistakes(self):
        for section, meanings in self.members.items():
            rows, types = self.rows(section), self.types.get(section, {})
            yield from (f"{section}: no meaning of {path}" for path in rows if path not in meanings)
            yield from (f"{section}: no answer has {path}" for path in meanings if path and path not in rows)
            yield from (f"{section}: {path} has no element in any answer" for path in types
                        if "list" in types[path] and path + "[]" not in {**types, **rows} and self.refers(section, path) != "any")
            yield from (f"{section}: the meaning of {path} is empty" for path, member in meanings.items() if not member.meaning)
            yield from (f"{section}: {path} is learnt: leave out the braces" for path, member in meanings.items()
                        if member.declared & types.get(path, set()))
            for word in ("null", "absent"):
                yield from (f"{section}: {path} {'may' if word in rows[path] else 'cannot'} be {word}, and its meaning says otherwise"
                            for path in rows if path in meanings and (word in rows[path]) != (f"{word}: " in meanings[path].meaning))


def type_text(types, refers):
    """ "whole number or null"; an object with a section of its own is a link."""
    words = [word for word in ORDER if word in types and not (word == "whole number" and "number" in types)]
    if refers and refers != "any":
        words[words.index("object")] = f"[{refers}](#{refers.replace(' ', '-')})"
    return ", ".join(words[:-1]) + (" or " if len(words) > 1 else "") + words[-1]


def page_of(learnt, answers):
    lines = [HEAD]
    for section, meanings in learnt.members.items():
        if section.startswith(OBJECT) and "## Objects\n" not in lines:
            lines.append("## Objects\n")
        lines.append(f"##{'#' * section.startswith(OBJECT)} {section.removeprefix(OBJECT)}\n")
        said = "" if learnt.refers(section, "") else meanings.get("", Member("")).meaning
        example = f"`{answers[section][0][0]}`" + (": " if said else "") if section in answers else ""
        lines += [textwrap.fill(example + said, 118, break_long_words=False, break_on_hyphens=False) + "\n"] if example or said else []
        lines += ["| member | type | |", "|---|---|---|"]
        rows = learnt.rows(section)
        lines += [f"| `{path or '.'}` | {type_text(rows[path], member.refers)} | {member.meaning} |" for path, member in meanings.items()
                  if path or member.refers]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def read_page(text):
    """Section -> path -> the types that the page says, and the object that it refers to."""
    sections, section, objects = {}, None, False
    for line in text.splitlines():
        if line.startswith("#"):
            objects = objects or line == "## Objects"
            section = sections.setdefault((OBJECT if line.startswith("### ") else "") + line.lstrip("# "), {})
        elif row := re.match(r"\| `(.+?)` \| (.+?) \|", line):
            refers = re.search(r"\[(.+?)\]", row[2])
            section[row[1].removeprefix(".") if row[1] == "." else row[1]] = (set(re.split(", | or ", re.sub(r"\[.+?\)", "object", row[2]))), refers[1] if refers else "")
    return sections


def faults(page, value, section, path=""):
    """What the page does not say of an answer: "status: sweeps[].id is null"."""
    rows = page.get(section, {})
    types, refers = rows.get(path, (set(), ""))
    kind = KINDS[type(value)]
    if "any" in types and value is not None:
        return
    inside = {"list": path + "[]", "object": path and path + "."}.get(kind)
    is_container = inside is not None and any(row.startswith(inside) for row in rows)
    is_number = kind == "whole number" and "number" in types
    if kind not in types and not is_number and not (path not in rows and is_container):
        yield f"{section}: {path} is {kind}" if path in rows else f"{section}: the page has no {path}"
    elif isinstance(value, list):
        for item in value:
            yield from faults(page, item, section, path + "[]")
    elif isinstance(value, dict):
        if refers:
            section, path, rows = OBJECT + refers, "", page.get(OBJECT + refers, {})
        at = f"{path}." if path else ""
        is_map = has_data_names(rows, at)
        for name, item in value.items():
            yield from faults(page, item, section, at + ("*" if is_map else name))
        names = set() if is_map else {re.split("[.[]", row[len(at):])[0] for row in rows if row.startswith(at)} - {""} - value.keys()
        yield from (f"{section}: {at}{name} is absent" for name in sorted(names) if "absent" not in rows.get(at + name, [()])[0])


def made():
    """The page and the answers of which it was made. It exits with what is missing."""
    answers = json_answers.answers()
    learnt = Learnt(read_members(MEMBERS))
    for section, asked in answers.items():
        for _, answer in asked:
            learnt.look(answer, section)
    commands = json_answers.commands_with_json()
    mistakes = [*learnt.mistakes(), *(f"{command}: no answer was asked for" for command in commands if command not in answers)]
    if mistakes:
        sys.exit("tools/json_members.toml, tools/json_answers.py:\n  " + "\n  ".join(mistakes))
    return page_of(learnt, answers), answers


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/json.md"
    target.write_text(made()[0])
