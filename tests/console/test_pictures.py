"""Every page against what was looked at and committed: its outline word by word, its picture with a
tolerance. ``--rewrite`` renews both: look at the pictures before they are committed.

Times, sizes and counts differ from run to run, so each text with a digit becomes ``0`` first. The
page hears nothing any more from then on, and has one font.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here (Debian: apt-get install chromium)"
)
PICTURES = Path(__file__).parent / "pictures"
FONT = "DejaVu Sans"
PAGES = {
    "cluster": ("cluster", "271 / 271"),
    "partitions": ("partitions", "all 271 complete"),
    "map": ("maps/numbers", "Partitioned by"),
    "statements": ("statements", "Nothing runs."),
    "transactions": ("transactions", "No transaction is open."),
    "sql": ("sql", "Ctrl+Enter"),
    "streams": ("streams", "Nobody listens to changes."),
    "snapshots": ("snapshots", "No snapshot has been made yet"),
    "settings": ("settings", "heartbeat_interval"),
}
FORMS = [
    *((page, "light") for page in PAGES),
    ("cluster", "dark"), ("partitions", "dark"), ("map", "dark"), ("statements", "dark"),
    ("cluster", "telephone"), ("map", "telephone"), ("sql", "telephone"),
]  # fmt: skip
SCALE = 8
"""Pixels in a row of a block; the mean colours of blocks are compared."""
COLOUR = 40
"""A block differs if one of its three colours does by more than this, of 255."""
SHARE = 0.003
"""So many of the blocks may differ: edges of letters, lengths of bars."""

STILL = f"""(async () => {{
    dispatchEvent(new Event("pagehide"));
    const frame = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = () => 0;
    await new Promise((done) => frame(() => frame(done)));
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`* {{ font-family: "{FONT}" !important; caret-color: transparent !important;
        animation: none !important; transition: none !important; }}`);
    document.adoptedStyleSheets = [sheet];
    document.activeElement?.blur();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) if (/\\d/.test(texts.currentNode.data)) texts.currentNode.data = "0";
    for (const field of document.querySelectorAll("input, textarea")) field.value = "";
}})()"""
OUTLINE = """(() => {
    const lines = [];
    const walk = (element, depth) => {
        if (element.hidden) return;
        const role = element.getAttribute("role"), name = element.tagName.toLowerCase();
        const own = [...element.childNodes].filter((n) => n.nodeType === 3)
            .map((n) => n.data.trim()).filter(Boolean).join(" ");
        const classes = [...element.classList].map((c) => `.${c}`).join("");
        const line = `${"  ".repeat(depth)}${name}${classes}${role ? ` role=${role}` : ""}`;
        lines.push(own ? `${line} ${JSON.stringify(own)}` : line);
        if (["svg", "tbody", "datalist"].includes(name)) return;
        for (const child of element.children) walk(child, depth + 1);
    };
    walk(document.getElementById("app"), 0);
    return lines.filter((line, place) => line !== lines[place - 1]).join("\\n");
})()"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    opened = Browser()
    yield opened
    opened.close()


def has_font() -> bool:
    """Whether this machine draws the letters of the committed pictures."""
    if shutil.which("fc-match") is None:
        return False
    found = subprocess.run(["fc-match", FONT], capture_output=True, text=True, check=True)
    return f'"{FONT}"' in found.stdout


def difference(browser: Browser, one: bytes, other: bytes) -> float:
    """The share of blocks whose colours differ; 1 if the sizes do."""
    texts = [base64.b64encode(picture).decode() for picture in (one, other)]
    browser.open("about:blank")
    found = browser.run(f"""(async () => {{
        const load = async (text) => {{
            const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
            const picture = await createImageBitmap(new Blob([bytes], {{ type: "image/png" }}));
            const width = Math.floor(picture.width / {SCALE});
            const height = Math.floor(picture.height / {SCALE});
            const canvas = new OffscreenCanvas(width, height);
            const context = canvas.getContext("2d");
            context.imageSmoothingQuality = "high";
            context.drawImage(picture, 0, 0, width, height);
            return context.getImageData(0, 0, width, height);
        }};
        const [one, other] = [await load("{texts[0]}"), await load("{texts[1]}")];
        if (one.width !== other.width || one.height !== other.height) return 1;
        let differ = 0;
        for (let at = 0; at < one.data.length; at += 4) {{
            const far = (place) => Math.abs(one.data[place] - other.data[place]) > {COLOUR};
            if (far(at) || far(at + 1) || far(at + 2)) differ += 1;
        }}
        return differ / (one.data.length / 4);
    }})()""")
    return float(found)


@pytest.mark.parametrize(("page", "form"), FORMS, ids=["-".join(form) for form in FORMS])
def test_a_page_looks_as_it_was_seen(
    browser: Browser,
    face: Any,
    golden: Any,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    page: str,
    form: str,
) -> None:
    address, text = PAGES[page]
    browser.dark(form == "dark")
    browser.size(*((390, 760) if form == "telephone" else (1200, 760)))
    browser.open("about:blank")
    browser.open(f"http://{face.http}/#/{address}")
    browser.wait_text(text)
    browser.wait("document.documentElement.hasAttribute('data-complete')")
    browser.run(STILL)
    if form == "light":
        golden.check(f"console/{page}.txt", browser.run(OUTLINE) + "\n")
    seen, known = tmp_path / f"{page}-{form}.png", PICTURES / f"{page}-{form}.png"
    browser.picture(seen)
    if request.config.getoption("--rewrite"):
        shutil.copy(seen, known)
        return
    if not has_font():
        pytest.skip(f"no font {FONT} here: the outline was compared, the picture was not")
    share = difference(browser, seen.read_bytes(), known.read_bytes())
    assert share <= SHARE, f"{share:.1%} of {seen} differ from {known}: look, and pytest --rewrite"
    assert browser.problems == []


def test_the_comparison_sees_other_pages_and_themes(browser: Browser) -> None:
    def picture(name: str) -> bytes:
        return (PICTURES / f"{name}.png").read_bytes()

    assert difference(browser, picture("cluster-light"), picture("cluster-light")) == 0
    assert difference(browser, picture("cluster-light"), picture("cluster-dark")) > 0.5
    for page in PAGES:
        others = [other for other in PAGES if other != page]
        shares = [
            difference(browser, picture(f"{page}-light"), picture(f"{other}-light"))
            for other in others
        ]
        assert min(shares) > SHARE, dict(zip(others, shares, strict=True))
