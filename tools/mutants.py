"""Finds what can be changed in a C++ file so that a test should notice: the mutants of tools/mutate.py.

There is no parser, only a lexer, matched brackets, and the habits of clang-format: a binary operator has a space on both sides, the angle
bracket of a template has not. What is guessed wrong does not compile, and is drawn again.
"""

import bisect
import dataclasses
import hashlib
import re

TOKEN = re.compile(r"""
    (?P<space>\s+) | (?P<comment>//[^\n]*|/\*.*?\*/) | (?P<directive>\#(?:[^\n\\]|\\.)*)
  | (?P<string>(?:u8|[uUL])?(?:R"(?P<tag>[^()\s\\]*)\(.*?\)(?P=tag)"|"(?:[^"\\\n]|\\.)*")) | (?P<char>'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*) | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><=>|<<=|>>=|\.\.\.|::|->|\+\+|--|&&|\|\||<<|>>|[-+*/%&|^<>=!]=|.)""", re.VERBOSE | re.DOTALL)

BINARY = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
          "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("*",), "<<": (">>",), ">>": ("<<",), "&": ("|",), "|": ("&",),
          "^": ("&",), "&&": ("||",), "||": ("&&",), "+=": ("-=",), "-=": ("+=",), "*=": ("/=",), "/=": ("*=",), "%=": ("*=",),
          "&=": ("|=",), "|=": ("&=",), "^=": ("&=",), "<<=": (">>=",), ">>=": ("<<=",)}
STEP = {"++": "--", "--": "++"}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
CLOSING = {")": "(", "]": "[", "}": "{"}
JUMPS = {"continue", "break", "return"}
KEYWORDS = JUMPS | set("""alignas alignof auto bool case catch char class const constexpr consteval constinit decltype default delete do
    double else enum explicit extern float for friend if inline int long mutable namespace new noexcept operator private protected public
    requires short signed sizeof static static_assert struct switch template throw try typedef typename union unsigned using virtual void
    volatile while""".split())

# Calls whose arguments only word a message, or that the tests' build leaves out.
MESSAGE = re.compile(r"(fail|refuse)(_\w+)?|\w+Error|assert|static_assert")
SENTENCE = re.compile(r"[a-z]+ [a-z]+ [a-z]+")
COMMUTATIVE = {"min", "max", "gcd", "lcm", "hypot"}
DURABLE = re.compile(r"(f|fdata)?sync(_\w+)?|rename(_\w+)?")
OPTIONS = re.compile(r"o|options_?|\w+_options_?")
EXPRESSION = re.compile(r"[*+:]*n([.:]n|<(?=[(:])|[(\[+])*=?")  # of the shape that _expression_ends() makes
NOT_BUILT = re.compile(r"__CUDA|__SANITIZE")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one file: `after` in place of the text `before` at `offset`. `id` stays while the line stays, wherever it moves."""

    id: str
    file: str
    line: int
    kind: str
    offset: int
    before: str
    after: str

    def applied_to(self, text):
        end = self.offset + len(self.before)
        assert text[self.offset:end] == self.before
        return text[:self.offset] + self.after + text[end:]


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


def tokens_of(text):
    """The tokens that the tests' build compiles: no comments or directives, nothing below an #if that asks for CUDA or a sanitizer."""
    tokens, conditions = [], []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup != "tag" else "string"
        if kind == "directive":
            word, _, rest = match.group().lstrip("# ").partition(" ")
            if word in ("if", "ifdef", "ifndef"):
                conditions.append(bool(NOT_BUILT.search(rest)) and word != "ifndef")
            elif word in ("else", "elif"):
                conditions[-1] = False
            elif word == "endif":
                conditions.pop()
        elif kind not in ("space", "comment") and not any(conditions):
            tokens.append(Token(kind, match.group(), match.start(), match.end()))
    return tokens


class Source:
    """A file's tokens with its brackets: `partner[i]` is the other bracket of a pair, `parent[i]` the bracket around token i, or -1."""

    def __init__(self, file, text):
        self.file, self.text = file, text
        self.tokens = tokens_of(text)
        self.partner, self.parent = {}, []
        stack = []
        for i, token in enumerate(self.tokens):
            if token.kind == "mark" and token.text in CLOSING and stack:
                self.partner[i] = stack.pop()
                self.partner[self.partner[i]] = i
            self.parent.append(stack[-1] if stack else -1)
            if token.kind == "mark" and token.text in CLOSING.values():
                stack.append(i)
        self.is_code = {i: self._opens_code(i) for i, token in enumerate(self.tokens) if token.text == "{" and i in self.partner}
        self.skipped = self._skipped()

    def at(self, i):
        """The text of token i; "" beyond the ends."""
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def between(self, first, last):
        """The text from token `first` up to the end of token `last`."""
        return self.text[self.tokens[first].start:self.tokens[last].end]

    def is_spaced(self, i):
        token = self.tokens[i]
        return self.text[token.start - 1].isspace() and self.text[token.end:token.end + 1].isspace()

    def is_name(self, i):
        return 0 <= i < len(self.tokens) and self.tokens[i].kind == "name" and self.at(i) not in KEYWORDS

    def around(self, i):
        """The brackets around token i, innermost first."""
        while (i := self.parent[i]) != -1:
            yield i

    def in_code(self, i):
        return any(self.is_code.get(bracket) for bracket in self.around(i))

    def closing_angle(self, i):
        """The token that closes the angle bracket i of a template."""
        depth = 0
        while i < len(self.tokens):
            depth += {"<": 1, ">": -1, ">>": -2}.get(self.at(i), 0)
            if depth <= 0:
                break
            i += 1
        return i

    def next_at_depth(self, i, ends):
        """The first token from i on, in no deeper bracket, whose text is in `ends`; None where the bracket around i ends before."""
        while i < len(self.tokens) and self.at(i) not in ends:
            if self.at(i) in CLOSING:
                return None
            i = self.partner.get(i, i) + 1
        return i if i < len(self.tokens) else None

    def elements(self, bracket):
        """First and last token of each of the comma-separated elements within a bracket."""
        first, last = bracket + 1, self.partner[bracket] - 1
        while first <= last:
            comma = self.next_at_depth(first, {","})
            end = last if comma is None else comma - 1
            yield first, end
            first = end + 2

    def function_of(self, i):
        """The name of the function that token i stands in; of a constructor with initialisers, one of these."""
        name = ""
        for bracket in self.around(i):
            if self.is_code.get(bracket):
                close = bracket - 1
                while self.at(close) in ("const", "noexcept", "override", "final"):
                    close -= 1
                name = self.at(self.partner[close] - 1) if self.at(close) == ")" and close in self.partner else name
        return name

    def _opens_code(self, brace):
        """Whether a { opens statements: not a class, a namespace or a list of values."""
        before = self.at(brace - 1)
        if before in (")", "else", "do", "try", "const", "noexcept", "override", "final", "mutable", "]"):
            return True
        i = brace - 1
        while i >= 0 and self.at(i) not in (";", "{", "}", "=", ",", "(", "return"):
            if self.at(i) == "->":  # the type that a function returns
                return True
            i = self.partner.get(i, i) - 1
        # The body of a constructor after an initialiser in braces.
        return before == "}" and i >= 0 and self.at(self.partner[brace - 1] - 1) != "=" and self.is_name(self.partner[brace - 1] - 1)

    def _skipped(self):
        """Tokens that are no behaviour: messages, assertions, attributes, the parameters of templates."""
        skipped = set()
        for i, token in enumerate(self.tokens):
            after = i + 1
            if token.kind == "name" and self.at(after) == "(" and after in self.partner:
                message = MESSAGE.fullmatch(token.text) or (self.at(i - 1) == "::" and self.at(i - 2) == "spdlog")
                words = self.tokens[after + 1]
                if token.text == "format" and words.kind == "string" and SENTENCE.search(words.text):
                    message = True
                if message:
                    skipped.update(range(i, self.partner[after] + 1))
            elif token.text == "[" and self.at(after) == "[" and i in self.partner:
                skipped.update(range(i, self.partner[i] + 1))
            elif token.text == "template" and self.at(after) == "<":
                skipped.update(range(i, self.closing_angle(after) + 1))
        return skipped

    # --- what can be changed: each yields (kind, first token, last token, text instead) ---------------------------------------------

    def changes(self):
        for i in range(len(self.tokens)):
            yield from self._dropped_statement(i)
            if i not in self.skipped:
                for find in (self._operator, self._constant, self._condition, self._swap, self._durable_call, self._ignored_option):
                    yield from find(i)

    def _operator(self, i):
        text = self.at(i)
        if self.tokens[i].kind != "mark" or self.at(i - 1) == "operator":
            return
        if text in STEP:
            yield "operator", i, i, STEP[text]
        elif text in BINARY and i > 0 and self.is_spaced(i):
            before, after = self.tokens[i - 1], self.tokens[i + 1]
            is_operand = before.kind in ("number", "char") or before.text in (")", "]", "}") or self.is_name(i - 1)
            if is_operand and "string" not in (before.kind, after.kind):
                for other in BINARY[text]:
                    yield "operator", i, i, other

    def _constant(self, i):
        token = self.tokens[i]
        if token.text in ("true", "false"):
            yield "constant", i, i, "false" if token.text == "true" else "true"
        elif token.kind == "number" and not (self.at(i - 1) == "=" and self.at(i - 2) in (")", "const", "noexcept")):  # = 0 of a method
            digits = token.text.replace("'", "")
            if whole := re.fullmatch(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlLzZ]*)", digits):
                value, suffix = int(whole[1], 0) if whole[1].lower()[:2] in ("0x", "0b") else int(whole[1]), whole[2]
                other = {0: 1, 1: 0}.get(value, value + 1)
                yield "constant", i, i, (hex(other) if whole[1][:2].lower() == "0x" else str(other)) + suffix
            elif real := re.fullmatch(r"([0-9.]+(?:[eE][+-]?\d+)?)([fFlL]?)", digits):
                value = float(real[1])
                yield "constant", i, i, repr({0.0: 1.0, 1.0: 0.0}.get(value, value + 1)) + real[2]

    def _condition(self, i):
        if self.at(i) in ("if", "while"):
            bracket = i + 2 if self.at(i + 1) == "constexpr" else i + 1
            if self.at(bracket) == "(" and bracket in self.partner:
                first, last = bracket + 1, self.partner[bracket] - 1
                while (end := self.next_at_depth(first, {";"})) is not None:
                    first = end + 1
                if not (self.at(last) == "true" and first == last):
                    yield "condition", first, last, f"!({self.between(first, last)})"
        elif self.at(i) == "?":
            yield "condition", i, i, "&& false ?"

    def _swap(self, i):
        if self.at(i) not in ("(", "{") or i not in self.partner or not self.in_code(i):
            return
        elements = list(self.elements(i))
        if self.at(i) == "{":
            values = [(first + 3, last) for first, last in elements if self.at(first) == "." and self.at(first + 2) == "="]
            if len(values) != len(elements):
                return
        elif self.is_name(i - 1) and self.at(i - 1) not in COMMUTATIVE:
            values = elements
        else:
            return
        for (first, last), (next_first, next_last) in zip(values, values[1:]):
            left, right = self.between(first, last), self.between(next_first, next_last)
            # What seldom compiles: a format for its argument, a pointer or a lambda for a value.
            is_alike = left[0] == right[0] or not {left[0], right[0]} & {'"', "&", "[", "{"}
            if left != right and is_alike and ";" not in left + right:
                between = self.text[self.tokens[last].end:self.tokens[next_first].start]
                yield "swap", first, next_last, right + between + left

    def _durable_call(self, i):
        """`sys::fsync(fd)` within an expression: done without doing it."""
        if self.at(i + 1) == "(" and i + 1 in self.partner and self.is_name(i) and DURABLE.fullmatch(self.at(i)) and self.in_code(i):
            first = i
            while self.at(first - 1) == "::":
                first -= 2 if self.is_name(first - 2) else 1
            if not self._starts_statement(first) and self.at(first - 1) not in (".", "->"):
                yield "sync", first, self.partner[i + 1], "0"

    def _ignored_option(self, i):
        """`options.field`: the default of the field instead of what was read."""
        if not (self.is_name(i) and OPTIONS.fullmatch(self.at(i)) and self.at(i + 1) == "." and self.in_code(i)):
            return
        is_written = self.at(i + 3) in ASSIGNMENTS or self.at(i - 1) in ("&", "++", "--")
        if self.at(i - 1) not in (".", "->", "::") and not is_written and self.function_of(i) != "describe":
            yield "setting", i, i, f"std::remove_cvref_t<decltype({self.at(i)})>{{}}"

    def _starts_statement(self, i):
        if not self.is_code.get(self.parent[i]):
            return False
        before = self.at(i - 1)
        if before == ")":
            header = self.partner.get(i - 1, 0) - 1
            return self.at(header) in ("if", "for", "while", "constexpr")
        return before in (";", "{", "}", "else", "do")

    def _dropped_statement(self, i):
        if not self._starts_statement(i) or self.at(i) in ("spdlog", "assert"):
            return
        end = self.next_at_depth(i, {";"})
        if end is None:
            return
        nothing = ";" + "\n" * self.between(i, end).count("\n")
        if self.at(i) in JUMPS:
            # `return value;` at the end of a function has nothing to fall through to.
            if end == i + 1 or self.at(i - 1) in (")", "else"):
                yield "jump", i, end, nothing
        elif self.at(i) == "throw":
            yield "statement", i, end, nothing
        elif called := self._expression_ends(i, end):
            kind = "sync" if DURABLE.fullmatch(called) else "setting" if self.function_of(i) == "describe" else "statement"
            yield kind, i, end, nothing

    def _expression_ends(self, i, end):
        """Follows `a.b<c>(d)->e = …` to the last name called or assigned to if that is a statement, "" where it declares something."""
        shape, names = "", []  # a name is n, brackets are ( or [, and what is within them is left out
        while i < end:
            text = self.at(i)
            if self.is_name(i):
                names.append(text)
                shape += "n"
            elif text == "<" and not self.is_spaced(i):
                i = self.closing_angle(i)
                shape += "<"
            elif (text in ASSIGNMENTS or text == "<<") and self.is_spaced(i):
                shape += "="
                break
            else:
                i = self.partner[i] if text in ("(", "[") else i
                shape += {".": ".", "->": ".", "::": ":", "(": "(", "[": "[", "*": "*"}.get(text, "+" if text in STEP else "?")
            i += 1
        is_effect = "=" in shape or "(" in shape or "+" in shape
        return names[-1] if is_effect and EXPRESSION.fullmatch(shape) else ""


def mutants_of(file, text):
    """All mutants of a file, in the order of their position."""
    source = Source(file, text)
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    lines = text.split("\n")
    seen, nth = {}, []  # how many lines of the same text stand above each
    for line in lines:
        nth.append(seen.get(line.strip(), 0))
        seen[line.strip()] = nth[-1] + 1

    mutants = []
    for kind, first, last, after in source.changes():
        offset, before = source.tokens[first].start, source.between(first, last)
        line = bisect.bisect_right(starts, offset) - 1
        stripped = lines[line].strip()
        column = offset - starts[line] - lines[line].find(stripped)
        key = "\0".join([file, stripped, str(nth[line]), str(column), before, after])
        mutants.append(Mutant(hashlib.sha1(key.encode()).hexdigest()[:8], file, line + 1, kind, offset, before, after))
    return sorted(mutants, key=lambda mutant: (mutant.offset, mutant.kind, mutant.after))
