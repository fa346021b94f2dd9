"""Templates of ``to_char`` and ``to_number`` for numbers.

The places of a template's characters are PostgreSQL's, which took it from Oracle: blanks for
missing leading digits, one for the sign of a positive number, ``#`` for a number that does not fit,
none of it behind FM.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Final

from remuda.datatypes.times.calendar import ordinal_suffix
from remuda.errors import InvalidText, NotSupported, NumericOverflow, SqlSyntaxError

_TOKEN: Final = re.compile(
    r'"((?:[^"\\]|\\.)*)"?|(EEEE|FM|MI|PL|PR|SG|RN|TH|[90.,DGSLVB])|(rn|th|fm|mi|pl|pr|sg|eeee|'
    r"[dgslvb])|(.)",
    re.DOTALL,
)
_ROMAN: Final = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
    (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip
_FLOAT_DIGITS: Final = 15
_EXACT: Final = Context(prec=1000, rounding=ROUND_HALF_UP)


@dataclass(slots=True)
class Template:
    """``nodes``: (name, text); the name is empty for plain text. ``zero_start`` and ``zero_end``
    are the places of the first and last 0, counted in digits."""

    nodes: list[tuple[str, str]] = field(default_factory=list)
    before: int = 0
    after: int = 0
    multiplied: int = 0
    zero_start: int = -1
    zero_end: int = 0
    sign: str = ""
    """``pre`` or ``post`` for S, ``brackets`` for PR, ``own`` for MI, PL or SG."""
    digits_before_sign: int = 0
    plus_only: bool = False
    point: bool = False
    shifts: bool = False
    fills: bool = True
    roman: bool = False
    scientific: bool = False


@lru_cache(maxsize=512)
def template_of(text: str) -> Template:
    """Raises SqlSyntaxError for parts that exclude each other."""
    found = Template()
    for match in _TOKEN.finditer(text):
        quoted, upper, lower, other = match.groups()
        if quoted is not None:
            found.nodes.append(("", re.sub(r"\\(.)", r"\1", quoted)))
        elif other is not None:
            found.nodes.append(("", other))
        else:
            name = upper or lower
            kept = name if name in ("rn", "th") else name.upper()
            found.nodes.append((kept, name))
            _describe(found, name.upper())
    return found


def _describe(found: Template, name: str) -> None:
    match name:
        case "9" | "0":
            _digit(found, name)
        case "." | "D" | "V":
            _point(found, name)
        case "FM":
            found.fills = False
        case "S" | "MI" | "PL" | "SG" | "PR":
            _sign(found, name)
        case "RN":
            found.roman = True
        case "EEEE":
            if found.sign or not found.fills or found.roman or found.shifts:
                raise SqlSyntaxError(
                    '"EEEE" is incompatible with other formats',
                    detail='"EEEE" may only be used together with digit and decimal point '
                    "patterns.",
                )
            found.scientific = True


def _point(found: Template, name: str) -> None:
    if found.point and name != "V":
        raise SqlSyntaxError("multiple decimal points")
    if found.shifts or (name == "V" and found.point):
        raise SqlSyntaxError('cannot use "V" and decimal point together')
    found.shifts = name == "V"
    found.point = name != "V"


def _sign(found: Template, name: str) -> None:
    """S, PR, and the others exclude each other."""
    kind = {"S": "anchored", "PR": "brackets"}.get(name, "own")
    known = "anchored" if found.sign in ("pre", "post") else found.sign
    if known and kind == known == "anchored":
        raise SqlSyntaxError('cannot use "S" twice')
    if known and (kind != known or kind == "brackets"):
        raise SqlSyntaxError('cannot use "S", "PR" and "PL"/"MI"/"SG" together')
    if kind == "anchored":
        found.sign = "post" if found.point else "pre"
        found.digits_before_sign = found.before
        return
    found.plus_only = name == "PL" and (found.plus_only or not found.sign)
    found.sign = kind


def _digit(found: Template, name: str) -> None:
    if found.shifts and name == "9":
        found.multiplied += 1
        return
    if name == "0" and found.zero_start < 0 and not found.point:
        found.zero_start = found.before
    if found.point:
        found.after += 1
    else:
        found.before += 1
    if name == "0":
        found.zero_end = found.before + found.after


# --- to_char ---------------------------------------------------------------------------------


def number_to_char(value: Decimal | float, template: str) -> str:
    found = template_of(template)
    if found.roman:
        return _roman(value, found)
    finite = not isinstance(value, float) or value - value == 0
    if found.scientific:
        return _scientific(value, found, finite)
    if finite:
        negative, digits = _digits(value, found)
    else:
        negative, digits = value < 0, "NaN" if value != value else "Infinity"  # noqa: PLR0124
    whole = digits.split(".")[0]
    before = found.before + found.multiplied
    spaces = max(before - len(whole), 0)
    if len(whole) > before:
        digits = "#" * before + ("." + "#" * found.after if found.after or found.point else "")
    return _Printer(found, digits, negative, spaces).result()


def _digits(value: Decimal | float, found: Template) -> tuple[bool, str]:
    after = found.after
    if isinstance(value, float):
        value *= 10.0**found.multiplied
        whole = len(f"{abs(value):.0f}")
        after = max(0, min(after, _FLOAT_DIGITS - whole))
        text = f"{abs(value):.{after}f}"
        negative = value < 0 or (value == 0 and str(value).startswith("-"))
    else:
        scaled = value.scaleb(found.multiplied, _EXACT)
        rounded = scaled.quantize(Decimal(1).scaleb(-after), ROUND_HALF_UP, _EXACT)
        negative = rounded < 0
        text = f"{abs(rounded):f}"
    return negative, text


class _Printer:
    """PostgreSQL's walk over template and digits."""

    def __init__(self, found: Template, digits: str, negative: bool, spaces: int) -> None:
        self.template = found
        self.number = digits
        self.at = 0
        self.negative = negative
        self.spaces = spaces
        self.place = 0
        self.inside = False
        self.out: list[str] = []
        self.brackets = found.sign == "brackets" and (negative or found.fills)
        self.sign = found.sign
        if found.sign == "pre" and found.before == found.digits_before_sign:
            self.sign = "post"
        if found.sign == "own":
            self.sign_done = not found.plus_only
        else:
            self.sign_done = not negative and not found.fills and found.sign not in ("pre", "post")
        self.count = found.after + found.before + found.multiplied - 1
        self.last: int | None = None
        if not found.fills and found.point:
            self.last = self._last_relevant()
        if not self.sign_done and spaces == 0:
            self.count += 1

    def _last_relevant(self) -> int | None:
        point = self.number.find(".")
        if point < 0:
            return None
        last = point
        for place in range(point + 1, len(self.number)):
            if self.number[place] != "0":
                last = place
        if self.template.zero_end > self.spaces:
            zero = min(len(self.number) - 1, self.template.zero_end - self.spaces)
            last = max(last, zero)
        return last

    def result(self) -> str:
        for name, text in self.template.nodes:
            if name in ("9", "0", ".", "D"):
                self._digit(name)
            elif name in (",", "G"):
                if self.inside:
                    self.out.append(",")
                elif self.template.fills:
                    self.out.append(" ")
            else:
                self._other(name, text)
        return "".join(self.out)

    def _other(self, name: str, text: str) -> None:
        fills = self.template.fills
        match name:
            case "":
                self.out.append(text)
            case "L":
                self.out.append(" ")
            case "MI":
                self.out.append("-" if self.negative else " " if fills else "")
            case "PL":
                self.out.append("+" if not self.negative else " " if fills else "")
            case "SG":
                self.out.append("-" if self.negative else "+")
            case "TH" | "th":
                if not (self.negative or "#" in self.number or self.template.point):
                    if not self.number:
                        raise InvalidText(
                            f"{name} in a template for numbers has no digit before it",
                            hint='Write digits as 9 or 0 (999TH), and text in quotes ("month").',
                        )
                    suffix = ordinal_suffix(self.number)
                    self.out.append(suffix.upper() if name == "TH" else suffix)

    def _blank_zero(self) -> bool:
        """0.5 is printed without its 0, unless there is a 0 in the template."""
        return (
            self.template.zero_start < 0
            and self.at == 0
            and self.number.startswith("0")
            and self.template.after != 0
        )

    def _ends_with_point(self) -> bool:
        return self.last is not None and self.number[self.last] == "."

    def _digit(self, name: str) -> None:
        self.inside = False
        zero, spaces = self.template.zero_start, self.spaces
        if (
            not self.sign_done
            and (self.place >= spaces or zero == self.place)
            and (not self._blank_zero() or self._ends_with_point())
        ):
            self._write_sign()
        if self.place < spaces and (zero < 0 or zero > self.place):
            if self.template.fills:
                self.out.append(" ")
        elif self.place < spaces:
            self.out.append("0")
            self.inside = True
        else:
            self._write_digit(name)
        end = self.count + (1 if spaces else 0) + (1 if self.template.point else 0)
        if self.last is not None and self.last == self.at:
            end = self.place
        if self.place + 1 == end:
            if self.sign_done and self.brackets:
                self.out.append(">" if self.negative else " ")
            elif self.sign == "post":
                self.out.append("-" if self.negative else "+")
        self.place += 1

    def _write_sign(self) -> None:
        if self.sign in ("pre", "post"):
            if self.sign == "pre":
                self.out.append("-" if self.negative else "+")
                self.sign_done = True
            return
        if self.brackets:
            self.out.append("<" if self.negative else " ")
        elif self.negative:
            self.out.append("-")
        elif self.template.fills:
            self.out.append(" ")
        self.sign_done = True

    def _write_digit(self, name: str) -> None:
        here = self.number[self.at : self.at + 1]
        if here == ".":
            if not self._ends_with_point() or not self.template.fills:
                self.out.append(".")
        elif self.last is not None and self.at > self.last and name != "0":
            pass
        elif self._blank_zero():
            if self.template.fills:
                self.out.append(" ")
            elif self._ends_with_point():
                self.out.append("0")
        else:
            self.out.append(here)
            self.inside = True
        if here:
            self.at += 1


def _roman(value: Decimal | float, found: Template) -> str:
    lower = any(name == "rn" for name, _ in found.nodes)
    finite = not isinstance(value, float) or value - value == 0
    number = int(Decimal(value).to_integral_value(ROUND_HALF_UP)) if finite else 0
    if not 0 < number < 4000:
        return "#" * 15
    text = ""
    for size, letters in _ROMAN:
        times, number = divmod(number, size)
        text += letters * times
    text = text if not found.fills else text.rjust(15)
    return text.lower() if lower else text


def _scientific(value: Decimal | float, found: Template, finite: bool) -> str:
    if not finite:
        return " " + "#" * found.before + "." + "#" * (found.after + 4)
    mantissa, exponent = f"{Decimal(value):.{found.after}e}".lower().split("e")
    power = int(exponent) if value else 0  # a zero has the exponent of its last digit
    text = f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    return text if text.startswith("-") else " " + text


# --- to_number -------------------------------------------------------------------------------


def to_number(text: str, template: str) -> Decimal:
    """The number that ``text`` shows in the form of ``template``."""
    found = template_of(template)
    if found.roman or found.scientific:
        raise NotSupported(
            f'"{"EEEE" if found.scientific else "RN"}" not supported for input',
            hint="Give the number in digits, or cast the text to NUMERIC or DOUBLE PRECISION.",
        )
    reader = _Reader(text, found)
    for name, plain in found.nodes:
        if reader.at >= len(text):
            break
        reader.take(name, plain)
    if not any(digit.isdecimal() for digit in reader.digits):
        raise InvalidText(f'invalid input syntax for type numeric: "{text}"')
    number = Decimal("".join(reader.digits))
    precision, whole = found.before + found.multiplied, abs(int(number))
    if whole and len(str(whole)) > precision:
        after = reader.digits_after
        raise NumericOverflow(
            "numeric field overflow",
            detail=f"A field with precision {precision + after}, scale {after} must round to an "
            f"absolute value less than 10^{precision}.",
        )
    number = number.scaleb(-found.multiplied, _EXACT)
    if number.adjusted() > 37:
        raise NumericOverflow("numeric field overflow")
    return -number if reader.sign == "-" else number


class _Reader:
    """PostgreSQL's walk over template and text: it never looks back, and reads a sign before the
    first digit, behind the last one, or where the template has one."""

    def __init__(self, text: str, template: Template) -> None:
        self.text = text
        self.template = template
        self.at = 0
        self.digits: list[str] = []
        self.digits_before = self.digits_after = 0
        self.sign = ""
        signs = {name for name, _ in template.nodes}
        self._moves_sign = template.sign == "own" and bool(signs & {"MI", "PL", "SG"})

    @property
    def here(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, name: str, plain: str) -> None:
        """The meaning of one node of the template."""
        match name:
            case "9" | "0" | "." | "D":
                self._digit(name)
            case ",":
                self.at += self.template.fills and self.here == ","
            case "G":
                self.at += self.template.fills and self.here == ","
            case "MI" | "PL" | "SG":
                wanted = {"MI": "-", "PL": "+", "SG": "+-"}[name]
                if self.here in wanted:
                    self.sign = self.here
                    self.at += 1
                else:
                    self._skip(1)
            case "TH" | "th":
                if self.sign != "-" and not self.template.point:
                    self._skip(2)
            case "L":
                self._skip(1)
            case "":
                self.at += len(plain)

    def _skip(self, count: int) -> None:
        """At most ``count`` characters that no number has."""
        while count and self.here and self.here not in "0123456789.,+-":
            self.at += 1
            count -= 1

    def _digit(self, name: str) -> None:
        if self.here == " ":
            self.at += 1
        anchored = self.template.sign in ("pre", "post")
        if not self.sign and name in ("9", "0") and not self.digits_before + self.digits_after:
            self._leading_sign()
        is_read = self._read()
        if self.here and not self.sign and self.digits_before + self.digits_after:
            following = self.text[self.at + 1 : self.at + 2]
            if anchored and is_read and following:
                if following in "+-":
                    self.sign = following
                    self.at += 1
            elif not is_read and self._moves_sign and self.here in "+-":
                self.sign = self.here
        self.at += 1

    def _leading_sign(self) -> None:
        if self.here and self.here in "+-":
            self.sign = self.here
            self.at += 1
        elif self.template.sign == "brackets" and self.here == "<":
            self.sign = "-"
            self.at += 1

    def _read(self) -> bool:
        """Whether here is a digit, or the first point, of the number."""
        here, has_point = self.here, "." in self.digits
        if here.isdecimal():
            if has_point and self.digits_after == self.template.after:
                return False
            self.digits.append(here)
            self.digits_after += has_point
            self.digits_before += not has_point
            return True
        if here == "." and self.template.point and not has_point:
            self.digits.append(here)
            return True
        return False
