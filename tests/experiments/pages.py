"""Pages read without a browser: their tags, their text, what their policy would refuse."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Collection
from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br", "input", "hr", "use"}
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


class Page(HTMLParser):
    """Tags with their attributes, whether they close in order, and the text outside scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.broken: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.broken.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def faults(text: str, beside: Collection[str] = ()) -> list[str]:
    """Faults of a page: unclosed tags, duplicate ids, broken links, and elements that its policy
    refuses.

    Args:
        beside: files beside the page that its links may lead to.
    """
    page = Page(text)
    ids = Counter(attributes["id"] for _, attributes in page.tags if "id" in attributes)
    links = [str(a["href"]) for tag, a in page.tags if tag == "a"]
    return [
        *(f"tag {tag} does not close" for tag in page.broken),
        *(f"id {name} stands {n} times" for name, n in ids.items() if n > 1),
        *(
            f"link {to} leads nowhere"
            for to in links
            if to != "#" and to.removeprefix("#") not in ids and to not in beside
        ),
        *forbidden(text, beside),
    ]


def forbidden(text: str, beside: Collection[str] = ()) -> list[str]:
    """What a page holds that its own content security policy would refuse or must not admit.

    A browser loads a drawing in the page whatever its policy says, and an image in that drawing
    only where `img-src` admits it.
    """
    page = Page(text)
    policy = next(a["content"] for _, a in page.tags if "http-equiv" in a) or ""
    admitted = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    hashes = {admitted.pop("script-src", "")}
    expected = {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    refused = [] if admitted == expected else [f"policy {policy}"]
    for script in re.findall(r"<script>(.*?)</script>", text, flags=re.S):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        if hashes != {f"'sha256-{digest}'"}:
            refused.append(f"script {script[:40]}")
    loads = {"src", "srcset", "href", "xlink:href", "action", "data", "poster"}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            image = tag in ("img", "image") and str(value).startswith("data:image/png;")
            stays = image or str(value)[:1] == "#" or (tag == "a" and value in beside)
            if name.startswith("on") or (name in loads and not stays):
                refused.append(f"{tag} {name}={value}")
        if tag in ("iframe", "object", "embed", "base", "form", "link"):
            refused.append(tag)
    if "@import" in text or set(re.findall(r"url\((.)", text)) - {"#"}:
        refused.append("an address in a style")
    return refused
