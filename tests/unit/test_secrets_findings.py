"""Uniting and replacing spans."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from funes.secrets.findings import GENERIC, POSITIONAL, SPECIFIC, Finding, Patience, count, merge, splice

spans = st.builds(
    lambda start, length, rule, rank: Finding(start, start + length, rule, rank),
    st.integers(0, 60),
    st.integers(1, 30),
    st.sampled_from(["a-rule", "b-rule"]),
    st.sampled_from([SPECIFIC, POSITIONAL, GENERIC]),
)


def test_an_overlap_is_named_by_the_most_specific_rule_and_covers_both() -> None:
    generic, vendor = Finding(0, 20, "secret-value", GENERIC), Finding(5, 25, "github-token", SPECIFIC)
    assert merge([generic, vendor]) == [Finding(0, 25, "github-token", SPECIFIC)]


def test_of_two_equally_specific_rules_the_longer_span_names_the_finding() -> None:
    assert merge([Finding(3, 9, "short"), Finding(0, 9, "long")]) == [Finding(0, 9, "long")]


def test_neighbours_stay_apart() -> None:
    assert len(merge([Finding(0, 5, "a-rule"), Finding(5, 9, "b-rule")])) == 2


@given(st.lists(spans, max_size=12))
def test_merged_findings_are_disjoint_sorted_and_cover_the_same(findings: list[Finding]) -> None:
    merged = merge(findings)
    assert all(a.end <= b.start for a, b in pairwise(merged))
    assert _covered(merged) == _covered(findings)


@given(st.text(min_size=90, max_size=120), st.lists(spans, max_size=6))
def test_text_outside_the_findings_stays_as_it_is(text: str, findings: list[Finding]) -> None:
    merged = merge(findings)
    outside = [
        text[a:b] for a, b in zip([0, *(f.end for f in merged)], [*(f.start for f in merged), None], strict=True)
    ]
    markers = [f"[REDACTED:{finding.rule}]" for finding in merged]
    assert splice(text, merged) == "".join(a + b for a, b in zip(outside, [*markers, ""], strict=True))


def test_findings_are_counted_by_rule() -> None:
    assert count([Finding(0, 1, "a-rule"), Finding(2, 3, "a-rule"), Finding(4, 5, "b-rule")]) == {
        "a-rule": 2,
        "b-rule": 1,
    }


def test_patience_ends_only_in_a_run_of_overlapping_candidates() -> None:
    apart, nested = Patience(), Patience()
    assert not any(apart.run(start * 10, start * 10 + 5) for start in range(1000))
    spans = [nested.run(start, 500) for start in range(Patience.LIMIT + 1)]
    assert spans[:-1] == [None] * Patience.LIMIT
    assert spans[-1] == (0, 500)


def _covered(findings: list[Finding]) -> set[int]:
    return {position for finding in findings for position in range(finding.start, finding.end)}
