"""Redaction of whole blocks with both engines."""

from __future__ import annotations

import pickle
import random
import types
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funes.errors import FunesError
from funes.secrets import Redactor, canaries, engines, gap_rules, kingfisher, redactor, self_test
from funes.secrets.findings import EngineError, Finding
from tests.support.secret_samples import ALNUM, FILLER, Inventor, positives

inventor = Inventor(17)
PASSWORD = "Copper.velvet" + "78!"
TOKEN = inventor.alnum(40)


@pytest.fixture(scope="module")
def both() -> Redactor:
    """A redactor with both engines; without Kingfisher's wheel the test is skipped."""
    made = Redactor()
    if made.missing_engine:
        pytest.skip(made.missing_engine)
    return made


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Redactor:
    """A redactor where Kingfisher is not installed."""
    _without_kingfisher(monkeypatch)
    return Redactor()


def _without_kingfisher(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> kingfisher.Kingfisher:
        raise kingfisher.EngineUnavailableError("kingfisher-secret-scanner is not installed")

    monkeypatch.setattr(kingfisher, "engine", missing)


def test_only_the_value_is_replaced(both: Redactor) -> None:
    redaction = both.redact(f"DATABASE_URL=postgresql://app:{PASSWORD}@db.internal/app\nPORT=1\n")
    assert redaction.text == "DATABASE_URL=postgresql://app:[REDACTED:url-password]@db.internal/app\nPORT=1\n"
    assert redaction.counts == {"url-password": 1}
    assert redaction.dropped == ""


def test_clean_text_comes_back_as_it_is(both: Redactor) -> None:
    for text in ("", "a", "no secrets here – 谢谢 \ud800 \0", *FILLER):
        redaction = both.redact(text)
        assert redaction.text == text
        assert redaction.counts == Counter()


def test_positions_are_right_behind_characters_of_several_bytes(both: Redactor) -> None:
    stripe = Inventor(2).stripe()
    assert (
        both.redact(f"🦊 déjà vu – \ud800 谢谢: {stripe} 🦊").text
        == "🦊 déjà vu – \ud800 谢谢: [REDACTED:stripe-key] 🦊"
    )


def test_a_byte_order_mark_does_not_shift_positions(both: Redactor) -> None:
    assert both.redact(f"\ufeffkey {Inventor(2).stripe()}.").text == "\ufeffkey [REDACTED:stripe-key]."


def test_nul_characters_hide_nothing(both: Redactor) -> None:
    text = f"a\0b {TOKEN[:4]}\0SERVICE_TOKEN={TOKEN}\0TERM=xterm\0"
    assert both.redact(text).text == f"a\0b {TOKEN[:4]}\0SERVICE_TOKEN=[REDACTED:secret-value]\0TERM=xterm\0"


def test_utf16_read_as_something_else_hides_nothing(both: Redactor) -> None:
    text = f"token = {Inventor(2).github()}\r\n".encode("utf-16-le").decode("latin-1")
    redacted = both.redact(text).text
    assert redacted is not None
    assert redacted.startswith("t\0o\0k\0e\0n\0 \0=\0 \0[REDACTED:github")
    assert redacted.endswith("\r\0\n\0")


@pytest.mark.parametrize(
    "comment",
    [
        "gitleaks:allow",
        "betterleaks:allow",
        "kingfisher:ignore",
        "pragma: allowlist secret",
        "nosec",
        "trufflehog:ignore",
    ],
)
@pytest.mark.parametrize("shape", ["STRIPE_KEY={} # {}", "{} // {}", "/* {1} */ key = '{0}'", "# {1}\nSTRIPE_KEY={0}"])
def test_a_comment_switches_nothing_off(both: Redactor, shape: str, comment: str) -> None:
    stripe = Inventor(5).stripe()
    redacted = both.redact(shape.format(stripe, comment)).text
    assert redacted is not None
    assert stripe not in redacted
    assert comment in redacted


def test_markers_survive_and_are_no_findings(both: Redactor) -> None:
    text = "https://user:[REDACTED:url-password]@host/ token=[REDACTED:stripe-access-token] [REDACTED:private-key]"
    assert both.redact(text).text == text


def test_markers_of_kingfisher_survive_where_it_is_missing(own: Redactor) -> None:
    text = (
        "https://user:[REDACTED:url-password]@host/ STRIPE_TOKEN=[REDACTED:stripe-access-token] Bearer [REDACTED:jwt]"
    )
    assert own.redact(text).text == text


def test_a_secret_in_the_form_of_a_marker_is_a_secret(both: Redactor) -> None:
    token = Inventor(2).github()
    redacted = both.redact(f"see [REDACTED:{token}]").text
    assert redacted is not None
    assert token not in redacted


def test_secrets_in_a_block_longer_than_a_window_are_found_wherever_they_stand(both: Redactor) -> None:
    token = Inventor(9).github()
    step = redactor.WINDOW - redactor.OVERLAP
    filler = "the quick brown fox jumps over the lazy dog\n" * 30_000
    for position in (0, step - 20, step, redactor.WINDOW - 20, 3 * step - 10, len(filler)):
        text = f"{filler[:position]} {token} {filler[position:]}"
        assert len(text) > redactor.WHOLE
        redacted = both.redact(text).text
        assert redacted is not None
        assert token not in redacted
        assert len(text) - len(redacted) == len(token) - redacted.count("[REDACTED:") * len(
            "[REDACTED:github-pat]"
        ) or (redacted.count("[REDACTED:") == 1)


def test_a_long_block_without_a_line_end_is_scanned(both: Redactor) -> None:
    token = Inventor(9).github()
    text = "x " * 300_000 + token + " y" * 300_000
    redacted = both.redact(text).text
    assert redacted is not None
    assert token not in redacted


# -------------------------------------------------------------------------------------------------- failing closed
@pytest.mark.parametrize(
    ("error", "reason"), [(TimeoutError(), "kingfisher timed out"), (RuntimeError("x"), "kingfisher failed")]
)
def test_a_failing_engine_drops_the_block_under_its_own_name(
    both: Redactor, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    class Failing:
        def scan(self, data: bytes, timeout: float) -> list[object]:
            raise error

    monkeypatch.setattr(kingfisher.engine(), "_scanner", Failing())
    redaction = both.redact("nothing to see")
    assert redaction.text is None
    assert redaction.dropped == reason
    assert redaction.counts == {f"block dropped: {reason}": 1}


def test_a_fault_of_our_own_rules_drops_the_block(both: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> list[Finding]:
        raise RecursionError

    monkeypatch.setattr(gap_rules, "scan", broken)
    assert both.redact("nothing to see").dropped == "own rules failed"


@pytest.mark.parametrize(("start", "end"), [(0, 4), (-1, 3), (5, 5), (0, 10_000)])
def test_a_position_that_does_not_fit_the_secret_drops_the_block(
    both: Redactor, monkeypatch: pytest.MonkeyPatch, start: int, end: int
) -> None:
    location = {"start_offset": start, "end_offset": end}
    odd = types.SimpleNamespace(
        visible=True, is_base64_encoded=False, rule_id="betterleaks.x", secret="abc", location=location
    )

    class Wrong:
        def scan(self, data: bytes, timeout: float) -> list[types.SimpleNamespace]:
            return [odd]

    monkeypatch.setattr(kingfisher.engine(), "_scanner", Wrong())
    assert both.redact("nothing to see").dropped.startswith("kingfisher gave")


def test_a_block_that_never_scans_clean_is_dropped(own: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[str] = []

    def always(text: str) -> list[Finding]:
        scans.append(text)
        return [Finding(0, 1, "password")]

    monkeypatch.setattr(gap_rules, "scan", always)
    redaction = own.redact("nothing to see")
    assert redaction.text is None
    assert redaction.counts == {"block dropped: never clean": 1}
    assert len(scans) == 1 + redactor.EXTRA_PASSES


def test_a_second_pass_removes_what_the_first_uncovers(own: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter([[Finding(0, 3, "password")], [Finding(0, 1, "password")], []])
    monkeypatch.setattr(gap_rules, "scan", lambda text: next(rounds))
    assert own.redact("abcdef").counts == {"password": 2}


# ----------------------------------------------------------------------------------------------- engines, processes
def test_without_kingfisher_our_rules_work_and_say_so(own: Redactor) -> None:
    assert own.engines == ["gap"]
    assert "kingfisher-secret-scanner is not installed" in own.missing_engine
    assert own.redact(f"SERVICE_TOKEN={TOKEN}").text == "SERVICE_TOKEN=[REDACTED:secret-value]"


def test_both_engines_can_be_demanded(monkeypatch: pytest.MonkeyPatch) -> None:
    _without_kingfisher(monkeypatch)
    with pytest.raises(FunesError, match="pip install kingfisher-secret-scanner"):
        Redactor(require_both=True)


def test_both_engines_are_named(both: Redactor) -> None:
    assert both.engines == engines() == ["kingfisher", "gap"]
    assert both.missing_engine == ""


def test_a_redactor_can_be_sent_to_another_process(both: Redactor) -> None:
    again = pickle.loads(pickle.dumps(both))
    assert again.redact(f"SERVICE_TOKEN={TOKEN}").text == "SERVICE_TOKEN=[REDACTED:secret-value]"


def test_threads_share_a_redactor(both: Redactor) -> None:
    texts = [sample.text for sample in positives(4)] * 2
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(both.redact, texts)) == [both.redact(text) for text in texts]


def test_the_engines_pass_their_own_test(both: Redactor) -> None:
    assert self_test() == []


def test_a_blind_engine_fails_the_self_test(both: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kingfisher.engine(), "scan", lambda text: [])
    monkeypatch.setattr(canaries.gap_rules, "scan", lambda text: [])
    faults = self_test()
    assert "Kingfisher misses an invented Stripe key." in faults
    assert "The own rules miss an invented private key." in faults


def test_an_engine_that_flags_everything_fails_the_self_test(both: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kingfisher.engine(), "scan", lambda text: [Finding(0, len(text), "all")])
    assert "Kingfisher flags a commit." in self_test()


def test_a_missing_or_failing_engine_fails_the_self_test(monkeypatch: pytest.MonkeyPatch, both: Redactor) -> None:
    def failing(text: str) -> list[Finding]:
        raise EngineError("kingfisher timed out")

    monkeypatch.setattr(kingfisher.engine(), "scan", failing)
    assert self_test() == ["Kingfisher does not work: kingfisher timed out."]
    _without_kingfisher(monkeypatch)
    assert self_test() == ["Kingfisher cannot be used: kingfisher-secret-scanner is not installed."]


# ------------------------------------------------------------------------------------------------------- properties
pieces = st.one_of(
    st.sampled_from(FILLER),
    st.text(max_size=40),
    st.sampled_from(["password: ", "token=", '{"api_key":"', "https://u:", "@h ", "\\n", "[REDACTED:password]", "\0"]),
    st.integers(0, 10**9).map(lambda seed: next(_one(seed))),
)


def _one(seed: int):
    yield random.Random(seed).choice(list(positives(seed % 50, per_kind=1))).text


@settings(max_examples=150, deadline=None)
@given(st.lists(pieces, max_size=6).map("".join))
def test_redaction_is_idempotent(text: str) -> None:
    made = Redactor()
    once = made.redact(text)
    assert once.text is not None
    twice = made.redact(once.text)
    assert twice.text == once.text
    assert twice.counts == Counter()


@settings(max_examples=100, deadline=None)
@given(st.lists(pieces, max_size=6).map("".join))
def test_text_outside_the_findings_is_unchanged(text: str) -> None:
    made = Redactor()
    findings = made.scan(text)
    redacted = made.redact(text).text
    assert redacted is not None
    position = 0
    for start, end in zip([0, *(f.end for f in findings)], [*(f.start for f in findings), len(text)], strict=True):
        kept = text[start:end]
        if "[REDACTED:" not in kept and made.scan(kept) == []:
            position = redacted.index(kept, position) + len(kept)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60), st.text(alphabet=ALNUM, min_size=20, max_size=60), st.text(max_size=60))
def test_the_secret_is_gone_whatever_stands_around_its_line(before: str, value: str, after: str) -> None:
    value = f"{value}{TOKEN}"
    redacted = Redactor().redact(f"{before}\nSERVICE_TOKEN={value}\n{after}").text
    assert redacted is not None
    assert value not in redacted
