"""A YAML file as sections that are read strictly: every key is known, every value of its kind.

The file is composed, not constructed: nodes keep their lines, texts stay as they are written
(``no`` is a text where a text is wanted), and no tag can make anything. Keys that come twice, tags
and merges are refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeVar

import yaml

from remuda.errors import InputError
from remuda.spark.pipeline.errors import PipelineInvalid
from remuda.spark.pipeline.variables import check

_TAG: Final = "tag:yaml.org,2002:"
_TRUE: Final = ("true", "yes", "on")
_FALSE: Final = ("false", "no", "off")
_NUMBERS: Final = (f"{_TAG}int", f"{_TAG}float")
_KNOWN: Final = frozenset(
    f"{_TAG}{kind}"
    for kind in ("str", "int", "float", "bool", "null", "timestamp", "merge", "seq", "map")
)
C = TypeVar("C", bound=str)
T = TypeVar("T")


def open_document(text: str, file: str) -> Section:
    """The section that the file is. Raises ``PipelineInvalid``."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 0 if mark is None else mark.line + 1
        raise PipelineInvalid(
            f"{file}:{line}: this is no YAML: {error.problem or error.context}",
            hint="Indents are spaces. Texts with ': ' or '#' stand in quotes, and between { and } "
            "those with ${...}, too.",
        ) from None
    except yaml.YAMLError as error:
        first = (str(error).splitlines() or ["unreadable"])[0]
        raise PipelineInvalid(f"{file}:1: this is no YAML: {first}") from None
    except RecursionError:
        raise PipelineInvalid(f"{file}:1: this is no pipeline: it is nested too deeply") from None
    if node is None:
        raise PipelineInvalid(f"{file}:1: the file is empty", hint="docs/pipelines.md has examples")
    return Section.of(node, file, "")


def nearest(word: str, allowed: Sequence[str]) -> str:
    """A hint that names what was probably meant, and "" if nothing is near."""
    lower = {name.lower(): name for name in allowed}
    found = difflib.get_close_matches(word.lower(), list(lower), 1, 0.6)
    return f'Did you mean "{lower[found[0]]}"?' if found else ""


@dataclass(frozen=True)
class Section:
    """A mapping of the file. ``path`` is how errors call it: ``sources[0]``."""

    file: str
    path: str
    line: int
    values: Mapping[str, yaml.Node]
    lines: Mapping[str, int]

    @classmethod
    def of(cls, node: yaml.Node, file: str, path: str) -> Section:
        if not isinstance(node, yaml.MappingNode):
            what = path or "the file"
            raise PipelineInvalid(
                f"{file}:{node.start_mark.line + 1}: {what} must hold keys and values, "
                f"not {_kind(node)}"
            )
        values: dict[str, yaml.Node] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            where = f"{file}:{line}: " + (f"{path}: " if path else "")
            if not isinstance(key, yaml.ScalarNode):
                raise PipelineInvalid(f"{where}a key must be a text, not {_kind(key)}")
            if key.value in values:
                raise PipelineInvalid(
                    f'{where}"{key.value}" comes twice', detail=f"first in line {lines[key.value]}"
                )
            if value.tag not in _KNOWN:
                raise PipelineInvalid(f'{where}"{key.value}" has the tag {value.tag}')
            values[key.value], lines[key.value] = value, line
        return cls(file, path, node.start_mark.line + 1, values, lines)

    # --- what may be there ---

    def allow(self, *keys: str) -> Section:
        """This section, after checking that it has no other keys."""
        for key in self.values:
            if key not in keys:
                self.fail(
                    key,
                    f'there is no "{key}" here',
                    detail=f"allowed: {', '.join(keys)}",
                    hint=nearest(key, keys),
                )
        return self

    def one_of(self, *keys: str) -> str:
        """The key of ``keys`` that is there; there must be exactly one."""
        found = [key for key in keys if key in self.values]
        if not found and len(keys) == 1:
            self.fail(None, f'"{keys[0]}" is missing')
        if len(found) != 1:
            names = " or ".join(f'"{key}"' for key in keys)
            said = "both are there" if found else "none is there"
            self.fail(found[-1] if found else None, f"needs either {names}: {said}")
        return found[0]

    def has(self, key: str) -> bool:
        return key in self.values

    def fail(self, key: str | None, text: str, *, detail: str = "", hint: str = "") -> NoReturn:
        """``key`` None: the section as a whole is wrong."""
        line = self.line if key is None else self.lines.get(key, self.line)
        place = ".".join(part for part in (self.path, key or "") if part)
        raise PipelineInvalid(
            f"{self.file}:{line}: " + (f"{place}: " if place else "") + text,
            detail=detail,
            hint=hint,
        )

    # --- values ---

    def text(self, key: str, default: str | None = None) -> str:
        """A text, not empty; required when there is no default."""
        node = self.values.get(key)
        if node is None:
            if default is None:
                self.fail(None, f'"{key}" is missing')
            return default
        return self._scalar(key, node)

    def maybe(self, key: str) -> str | None:
        return self.text(key) if key in self.values else None

    def parsed(self, key: str, read: Callable[[str], T]) -> T:
        """The text of ``key`` as ``read`` understands it; its ``InputError`` gets the place."""
        text = self.text(key)
        try:
            return read(text)
        except InputError as error:
            self.fail(key, error.message, detail=error.detail, hint=error.hint)

    def choice(self, key: str, allowed: Sequence[C], default: C | None = None) -> C:
        text = self.text(key, default)
        if text not in allowed:
            self.fail(
                key,
                f"{text!r} is not possible",
                detail=f"allowed: {', '.join(allowed)}",
                hint=nearest(text, allowed),
            )
        return text  # type: ignore[return-value]

    def flag(self, key: str) -> bool | None:
        """true or false; None when it is not there."""
        node = self.values.get(key)
        if node is None:
            return None
        word = node.value.lower() if isinstance(node, yaml.ScalarNode) else ""
        if word not in (*_TRUE, *_FALSE):
            self.fail(key, f"must be true or false, not {_kind(node)}")
        return word in _TRUE

    def texts(self, key: str, *, different: bool = False) -> tuple[str, ...]:
        """A text, or a list of (``different``) texts; () when it is not there."""
        node = self.values.get(key)
        if node is None:
            return ()
        if isinstance(node, yaml.SequenceNode):
            if not node.value:
                self.fail(key, "the list is empty")
            found = tuple(self._scalar(key, item) for item in node.value)
            for place, text in enumerate(found):
                if different and text in found[:place]:
                    self.fail(key, f"{text} comes twice")
            return found
        return (self._scalar(key, node),)

    def mapping(self, key: str) -> dict[str, str]:
        """Names and texts, as options are; numbers and true are taken as they are written."""
        section = self.section(key)
        return {} if section is None else {name: section.text(name) for name in section.values}

    def arguments(self, key: str) -> dict[str, str | int | float | bool | None]:
        """Names and values: numbers, true, false, null and texts are told apart."""
        section = self.section(key)
        if section is None:
            return {}
        return {name: section.value(name) for name in section.values}

    def section(self, key: str) -> Section | None:
        node = self.values.get(key)
        return None if node is None else Section.of(node, self.file, self._below(key))

    def sections(self, key: str) -> list[Section]:
        """A list of sections; [] when it is not there."""
        node = self.values.get(key)
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            self.fail(key, f"must be a list (lines that begin with '- '), not {_kind(node)}")
        return [
            Section.of(item, self.file, f"{self._below(key)}[{number}]")
            for number, item in enumerate(node.value)
        ]

    def _below(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _scalar(self, key: str, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag == f"{_TAG}null":
            self.fail(key, f"must be a text, not {_kind(node)}")
        if not node.value.strip():
            self.fail(key, "is empty")
        try:
            check(node.value)
        except InputError as error:
            self.fail(key, error.message, hint=error.hint)
        text: str = node.value
        # Only in this spelling: "no" may be a country, and "on" a word.
        plain = node.tag == f"{_TAG}bool" and text.lower() in ("true", "false")
        return text.lower() if plain else text

    def value(self, key: str) -> str | int | float | bool | None:
        """A number, true, false, null or a text, as it is written."""
        node = self.values[key]
        if isinstance(node, yaml.ScalarNode):
            if node.tag == f"{_TAG}null":
                return None
            if node.tag == f"{_TAG}bool" and node.value.lower() in ("true", "false"):
                return bool(node.value.lower() == "true")
            if node.tag in _NUMBERS:
                try:
                    whole = node.tag == _NUMBERS[0]
                    return int(node.value, 0) if whole else float(node.value)
                except ValueError:  # sexagesimals and other oddities of YAML 1.1
                    self.fail(key, f"{node.value!r} is no number", hint="Quote it, if it is text.")
        return self._scalar(key, node)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "keys and values"
    if isinstance(node, yaml.SequenceNode):
        return "a list" if node.value else "an empty list"
    if node.tag == f"{_TAG}null":
        return "nothing"
    return f"the text {node.value[:40]!r}"
