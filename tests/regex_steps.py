"""How many steps a backtracking matcher takes: the cost of a pattern, without a clock.

A second reading of `re`'s parsed patterns that counts every character it looks at. It backtracks as
`re` does, so that what is quadratic here is quadratic there; it leaves out shortcuts of `re` that
save a constant share (a literal beginning looked for at once). It needs as many frames as a
pattern repeats a group: raise the limit of recursion for long texts, in a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from re import _constants as op
from re import _parser as parser
from typing import Any

Then = Callable[[int], int]
Node = Callable[[int, Then], int]
NO = -1
_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)


class Steps:
    """A pattern that counts."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        tree = parser.parse(pattern, flags)
        self.n = 0
        self._text, self._groups = "", {}
        self._root = self._seq(tree, tree.state.flags)

    def match(self, text: str, at: int = 0, *, full: bool = False) -> int:
        """Where a match that begins here ends; -1 for none."""
        self._text, self._groups = text, {}
        end = len(text)
        return self._root(at, lambda p: NO if full and p != end else p)

    def finditer(self, text: str, at: int = 0) -> Iterator[tuple[int, int]]:
        """Every match, as `re.finditer` has it."""
        nonempty_only = NO
        while at <= len(text):
            self.n += 1
            end = self.match(text, at)
            if end == at == nonempty_only:
                self._text, self._groups = text, {}
                start = at
                end = self._root(at, lambda p, start=start: NO if p == start else p)
            if end == NO:
                at += 1
                continue
            yield at, end
            nonempty_only, at = end, end

    def search(self, text: str, at: int = 0) -> tuple[int, int] | None:
        return next(self.finditer(text, at), None)

    def _seq(self, tree: Any, flags: int) -> Node:
        nodes = [self._node(code, value, flags) for code, value in tree]
        if len(nodes) == 1:
            return nodes[0]

        def run(at: int, then: Then) -> int:
            def go(i: int, p: int) -> int:
                if i == len(nodes):
                    return then(p)
                return nodes[i](p, lambda q: go(i + 1, q))

            return go(0, at)

        return run

    def _node(self, code: Any, value: Any, flags: int) -> Node:
        if (one := self._one(code, value, flags)) is not None:
            return lambda at, then: then(at + 1) if self._is(one, at) else NO
        if code in _REPEATS:
            return self._repeat(code, *value, flags)
        if code is op.AT:
            return self._at(value, flags)
        if code is op.BRANCH:
            return self._branch([self._seq(tree, flags) for tree in value[1]])
        if code is op.SUBPATTERN:
            group, added, taken, tree = value
            return self._group(group, self._seq(tree, (flags | added) & ~taken))
        if code is op.ATOMIC_GROUP:
            return self._atomic(self._seq(value, flags))
        if code in (op.ASSERT, op.ASSERT_NOT):
            return self._look(value[0], value[1], code is op.ASSERT, flags)
        if code is op.GROUPREF:
            return self._ref(value)
        raise NotImplementedError(str(code))

    def _is(self, one: Callable[[str], bool], at: int) -> bool:
        self.n += 1
        return at < len(self._text) and one(self._text[at])

    def _one(self, code: Any, value: Any, flags: int) -> Callable[[str], bool] | None:
        """The test of one character, of what matches exactly one."""
        fold = bool(flags & re.IGNORECASE)
        if code in (op.LITERAL, op.NOT_LITERAL):
            cases = _cases(chr(value)) if fold else {chr(value)}
            wanted = code is op.LITERAL
            return lambda c: (c in cases) is wanted
        if code is op.ANY:
            return (lambda c: True) if flags & re.DOTALL else (lambda c: c != "\n")
        if code is op.IN:
            return _one_of(value, fold)
        return None

    def _repeat(self, code: Any, low: int, high: int, tree: Any, flags: int) -> Node:
        one = self._one(*tree[0], flags) if len(tree) == 1 else None
        if one is not None:
            return self._repeat_one(code, low, high, one)
        body = self._seq(tree, flags)
        lazy = code is op.MIN_REPEAT

        def run(at: int, then: Then) -> int:
            def again(p: int, k: int) -> int:
                def more() -> int:
                    if k >= high:
                        return NO
                    return body(p, lambda q: NO if q == p and k >= low else again(q, k + 1))

                self.n += 1
                if k < low:
                    return more()
                first, second = (lambda: then(p), more) if lazy else (more, lambda: then(p))
                end = first()
                return second() if end == NO else end

            return again(at, 0)

        if code is op.POSSESSIVE_REPEAT:
            return self._atomic(run)
        return run

    def _repeat_one(self, code: Any, low: int, high: int, one: Callable[[str], bool]) -> Node:
        def run(at: int, then: Then) -> int:
            limit = min(at + int(high), len(self._text))
            p = at
            if code is op.MIN_REPEAT:
                while p < at + low:
                    if p >= limit or not self._is(one, p):
                        return NO
                    p += 1
                while True:
                    if (end := then(p)) != NO:
                        return end
                    if p >= limit or not self._is(one, p):
                        return NO
                    p += 1
            while p < limit and self._is(one, p):
                p += 1
            if p < at + low:
                return NO
            if code is op.POSSESSIVE_REPEAT:
                return then(p)
            while p >= at + low:
                self.n += 1
                if (end := then(p)) != NO:
                    return end
                p -= 1
            return NO

        return run

    def _at(self, where: Any, flags: int) -> Node:
        many = bool(flags & re.MULTILINE)

        def word(p: int) -> bool:
            return 0 <= p < len(self._text) and _is_word(self._text[p])

        def holds(p: int) -> bool:
            text, n = self._text, len(self._text)
            if where is op.AT_BEGINNING_STRING:
                return p == 0
            if where is op.AT_BEGINNING:
                return p == 0 or (many and text[p - 1] == "\n")
            if where is op.AT_END_STRING:
                return p == n
            if where is op.AT_END:
                return p == n or text[p] == "\n" if many else p == n or text[p:] == "\n"
            return (word(p - 1) != word(p)) is (where is op.AT_BOUNDARY)

        def run(at: int, then: Then) -> int:
            self.n += 1
            return then(at) if holds(at) else NO

        return run

    def _branch(self, nodes: list[Node]) -> Node:
        def run(at: int, then: Then) -> int:
            for node in nodes:
                if (end := node(at, then)) != NO:
                    return end
            return NO

        return run

    def _group(self, group: int | None, node: Node) -> Node:
        if group is None:
            return node

        def run(at: int, then: Then) -> int:
            before = self._groups.get(group)

            def closed(p: int) -> int:
                inner = self._groups.get(group)
                self._groups[group] = (at, p)
                end = then(p)
                if end == NO:
                    self._groups[group] = inner
                return end

            end = node(at, closed)
            if end == NO:
                self._groups[group] = before
            return end

        return run

    def _atomic(self, node: Node) -> Node:
        def run(at: int, then: Then) -> int:
            end = node(at, lambda p: p)
            return NO if end == NO else then(end)

        return run

    def _look(self, way: int, tree: Any, wanted: bool, flags: int) -> Node:
        node = self._seq(tree, flags)
        width = tree.getwidth()[0]

        def run(at: int, then: Then) -> int:
            start = at if way == 1 else at - width
            found = start >= 0 and node(start, lambda p: p) != NO
            self.n += 1
            return then(at) if found is wanted else NO

        return run

    def _ref(self, group: int) -> Node:
        def run(at: int, then: Then) -> int:
            span = self._groups.get(group)
            if span is None:
                return NO
            said = self._text[slice(*span)]
            self.n += len(said)
            return then(at + len(said)) if self._text.startswith(said, at) else NO

        return run


def _is_word(c: str) -> bool:
    return c.isalnum() or c == "_"


_CATEGORIES = {
    op.CATEGORY_DIGIT: str.isdecimal,
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_WORD: _is_word,
    op.CATEGORY_NOT_DIGIT: lambda c: not c.isdecimal(),
    op.CATEGORY_NOT_SPACE: lambda c: not c.isspace(),
    op.CATEGORY_NOT_WORD: lambda c: not _is_word(c),
}


def _cases(c: str) -> set[str]:
    return {c, *(x for x in (c.lower(), c.upper()) if len(x) == 1)}


def _one_of(items: Any, fold: bool) -> Callable[[str], bool]:
    wanted = items[0][0] is not op.NEGATE
    tests: list[Callable[[str], bool]] = []
    for code, value in items:
        if code is op.LITERAL:
            tests.append(chr(value).__eq__)
        elif code is op.RANGE:
            low, high = map(chr, value)
            tests.append(lambda c, low=low, high=high: low <= c <= high)
        elif code is op.CATEGORY:
            tests.append(_CATEGORIES[value])

    def run(c: str) -> bool:
        cases = _cases(c) if fold else (c,)
        return any(test(x) for test in tests for x in cases) is wanted

    return run
