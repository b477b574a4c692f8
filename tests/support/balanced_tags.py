"""Whether every tag of a piece of HTML is closed."""

from html.parser import HTMLParser


class Tags(HTMLParser):
    """Which tags are open at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def is_balanced(text: str) -> bool:
    tags = Tags()
    tags.feed(text)
    return not tags.open
