"""The screen on which sessions are reviewed before they are published: a list, a preview, a key for each decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from rich.markup import escape
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import DataTable, Footer, Input, Static

from funes.errors import FunesError
from funes.ui.human import local_time
from funes.ui.safe import clean, one_line

if TYPE_CHECKING:
    from funes.ui.views import ReviewItem, SessionPreview

PROMPTS_SHOWN = 400
PROMPT_CHARACTERS = 4000
TITLE_CHARACTERS = 120
COMPLAINT_SECONDS = 15.0
Verdict = Literal["include", "exclude"]

_STYLES = {"included": "green", "excluded": "red", "pending": "yellow", "grown": "yellow"}
_COLUMNS = ("status", "day", "agent", "turns", "title")


class Reviewer(Protocol):
    """What the screen asks and tells."""

    memory: str
    repo: str

    def items(self) -> Sequence[ReviewItem]:
        """The sessions with their status, in the order in which to show them."""
        ...

    def preview(self, session: str) -> SessionPreview:
        """What to look at before deciding about a session."""
        ...

    def decide(self, sessions: Sequence[str], verdict: Verdict | None) -> None:
        """Store a decision about sessions at once; None makes them pending."""
        ...


class ReviewApp(App[None]):
    """The screen.

    Args:
        reviewer: gives the sessions and stores what is decided.
    """

    CSS = """
    #search { height: 3; }
    #list { width: 55%; }
    #preview { width: 45%; border-left: solid $primary; padding: 0 1; }
    #summary { height: 1; padding: 0 1; background: $boost; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "decide('include')", "include"),
        Binding("x", "decide('exclude')", "exclude"),
        Binding("p", "decide('')", "pending"),
        Binding("I", "decide_all('include')", "with sub-agents", key_display="I X P"),
        Binding("X", "decide_all('exclude')", show=False),
        Binding("P", "decide_all('')", show=False),
        Binding("o", "open_only", "undecided only"),
        Binding("slash", "search", "search"),
        Binding("escape", "leave_search", show=False),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, reviewer: Reviewer) -> None:
        super().__init__()
        self.reviewer = reviewer
        self.items: dict[str, ReviewItem] = {}
        self.undecided_only = False

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Static(id="summary")
        yield Input(placeholder="search titles, ids, agents", id="search")
        with Horizontal():
            yield DataTable(id="list", cursor_type="row", zebra_stripes=True)
            with VerticalScroll(id="preview"):
                yield Static(id="text")
        yield Footer()

    def on_mount(self) -> None:
        """Fill the list and put the cursor on its first session."""
        self.title = f"{self.reviewer.memory}: {self.reviewer.repo}"
        for name in _COLUMNS:
            self.table.add_column(name, key=name)
        self.items = {item.id: item for item in self.reviewer.items()}
        self._fill()
        self.table.focus()

    @property
    def table(self) -> DataTable[Text]:
        """The list."""
        found: DataTable[Text] = self.query_one("#list", DataTable)
        return found

    @property
    def current(self) -> str:
        """Id of the session under the cursor, empty in an empty list."""
        if not self.table.row_count:
            return ""
        return str(self.table.coordinate_to_cell_key(self.table.cursor_coordinate).row_key.value)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list to what was typed."""
        self._fill()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on in the list."""
        self.table.focus()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show the session under the cursor."""
        self._show()

    def action_search(self) -> None:
        """Type what to look for."""
        self.query_one("#search", Input).focus()

    def action_leave_search(self) -> None:
        """Show all sessions again."""
        self.query_one("#search", Input).value = ""
        self.table.focus()

    def action_open_only(self) -> None:
        """Show only what is still to be decided, or everything."""
        self.undecided_only = not self.undecided_only
        self._fill()

    def action_decide(self, verdict: str) -> None:
        """Decide about the session under the cursor and go on to the next."""
        if self.current:
            self._decide([self.current], verdict)

    def action_decide_all(self, verdict: str) -> None:
        """Decide about the session under the cursor and its sub-agents' sessions."""
        if self.current:
            self._decide([self.current, *self._helpers(self.current)], verdict)

    def _helpers(self, session: str) -> list[str]:
        """Ids of the sub-agents' sessions of a session, theirs included."""
        found: list[str] = []
        for helper in self.items[session].helpers:
            found += [helper, *self._helpers(helper)]
        return found

    def _decide(self, sessions: list[str], verdict: str) -> None:
        chosen: Verdict | None = "include" if verdict == "include" else "exclude" if verdict == "exclude" else None
        row = self.table.cursor_row
        try:
            self.reviewer.decide(sessions, chosen)
            self.items = {item.id: item for item in self.reviewer.items()}
        except FunesError as error:
            # Nothing was stored: the list goes on showing what is.
            self._complain(error)
            return
        self._fill(row if self.undecided_only else row + 1)

    def _fill(self, row: int | None = None) -> None:
        """Write the list anew, with the cursor on a row, or on the session that it was on."""
        before = self.current
        words = self.query_one("#search", Input).value.lower().split()
        self.table.clear()
        shown = [item for item in self.items.values() if self._is_shown(item, words)]
        for item in shown:
            self.table.add_row(*_cells(item), key=item.id)
        ids = [item.id for item in shown]
        if row is None:
            row = ids.index(before) if before in ids else 0
        if shown:
            self.table.move_cursor(row=max(0, min(row, len(shown) - 1)))
        self.query_one("#summary", Static).update(self._summary(len(shown)))
        self._show()

    def _is_shown(self, item: ReviewItem, words: list[str]) -> bool:
        if self.undecided_only and item.status not in ("pending", "grown"):
            return False
        text = " ".join((item.id, item.status, item.day, item.harness, item.title)).lower()
        return all(word in text for word in words)

    def _summary(self, shown: int) -> Text:
        numbers = Counter("pending" if item.status == "grown" else item.status for item in self.items.values())
        parts = ", ".join(f"{numbers[name]} {name}" for name in ("included", "excluded", "pending"))
        hidden = f"; {shown} shown" if shown < len(self.items) else ""
        return Text(
            one_line(f"{self.reviewer.memory}: sessions of {self.reviewer.repo}: {parts}{hidden}"), style="bold"
        )

    def _show(self) -> None:
        """Show the preview of the session under the cursor."""
        text = self.query_one("#text", Static)
        if not self.current:
            text.update(Text("no session" if not self.items else "nothing found", style="dim"))
            return
        try:
            text.update(preview_text(self.items[self.current], self.reviewer.preview(self.current)))
        except FunesError as error:
            text.update(Text("this session cannot be shown", style="dim"))
            self._complain(error)
            return
        self.query_one("#preview", VerticalScroll).scroll_home(animate=False)

    def _complain(self, error: FunesError) -> None:
        """Say what went wrong, and go on."""
        self.notify(escape(one_line(error.message)), title="funes", severity="error", timeout=COMPLAINT_SECONDS)


def preview_text(item: ReviewItem, preview: SessionPreview) -> Text:
    """The facts about a session, what was redacted in it, and what people said."""
    text = Text(one_line(item.title, TITLE_CHARACTERS) or "(no title)", style="bold")
    text.append(f"\n{one_line(item.id)}\n", style="cyan")
    for line in item.about:
        text.append(f"{one_line(line)}\n", style="default")
    if preview.redactions:
        rules = ", ".join(f"{rule} {count:,}" for rule, count in preview.redactions.items())
        text.append(f"redacted: {one_line(rules)}\n", style="red")
    for moment, prompt in preview.prompts[:PROMPTS_SHOWN]:
        text.append(f"\n{local_time(moment)}\n", style="dim default")
        text.append(clean(prompt[:PROMPT_CHARACTERS]), style="not bold")
        if len(prompt) > PROMPT_CHARACTERS:
            text.append(f"\n({len(prompt) - PROMPT_CHARACTERS:,} characters more)", style="dim default")
        text.append("\n")
    if len(preview.prompts) > PROMPTS_SHOWN:
        text.append(f"\n({len(preview.prompts) - PROMPTS_SHOWN:,} prompts more)\n", style="dim default")
    if not preview.prompts:
        text.append("\n(no prompts)\n", style="dim default")
    return text


def _cells(item: ReviewItem) -> list[Text]:
    style = _STYLES.get(item.status, "default")
    return [
        Text(item.status, style=style),
        Text(item.day),
        Text(one_line(item.harness)),
        Text(f"{item.turns:,}", justify="right"),
        Text(one_line(item.title, TITLE_CHARACTERS) or "(no title)"),
    ]
