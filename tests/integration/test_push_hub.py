"""`funes push` to a Hub: the real command and the real client against a local server."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from funes.memory.reader import MemoryReader
from funes.memory.remote.card import BEGIN
from funes.memory.remote.hub import HubClient
from tests.support.hub_memory import REPO, commits, files, snapshot
from tests.support.sharing import TOKEN, embed, reference, rows_in, texts_of, turn_rows, vectors_in
from tests.support.small_memory import header


def test_the_first_push_makes_a_private_repository(hub, machines, run):
    machines[0].remember("a", ["We moved off the streaming parser.", "It held the file in memory."], title="Parser")
    machines[0].remember("b", ["no vector yet"], vectors=False)
    code, out, err = run("push", REPO)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith(f"{REPO}: 2 passages of 1 session published, 2 with vectors, ")
    assert "created: a private dataset repository" in out
    assert "not published: 1 passage that has no vector yet" in out
    assert hub.store.meta("dataset", REPO)["private"] is True
    present = files(hub)
    assert {"README.md", "memory.json", "piece-counts.npy"} <= set(present)
    card = present["README.md"].decode()
    assert "- agent-memory" in card
    assert "| passages | 2 |" in card
    # One version of each table, and nothing of other versions.
    for table in ("chunks.lance", "vectors.lance"):
        assert len([path for path in present if path.startswith(f"{table}/_versions/")]) == 1
        assert not [path for path in present if path.startswith(f"{table}/_transactions/")]
    assert commits(hub) == 2  # the Hub's own first one, and ours
    assert [row.text for row in rows_in(snapshot())] == [
        "We moved off the streaming parser.",
        "It held the file in memory.",
        "Parser",
    ]


def test_what_was_published_is_in_the_cache_already(hub, machines, run):
    one, _ = machines
    one.remember("a", [f"turn {number}" for number in range(50)])
    run("push", REPO)
    one.remember("b", ["more"])
    hub.traffic.served.clear()
    assert "turn" in run("recall", "turn", "--memory", REPO)[1]
    assert hub.traffic.requests == 1
    run("push", REPO)
    hub.traffic.served.clear()
    assert run("push", REPO)[1].startswith(f"{REPO}: nothing new")
    assert hub.traffic.requests == 1
    assert hub.traffic.count("GET /datasets/.*/resolve/") == 0


def test_a_passage_that_several_sessions_contain_counts_once(hub, machines, run):
    first = machines[0].remember("a", ["said in both", "only here"])
    machines[0].store([reference(first[0], "b", 0)], vectors=False)
    line = run("push", REPO)[1].splitlines()[0]
    assert line.startswith(f"{REPO}: 2 passages of 2 sessions published, 2 with vectors, and 1 copy of a passage, ")
    assert line.endswith("; it holds 2 passages")
    assert f"publishes to: {REPO}: 2 passages of this machine; " in run("status")[1]
    machines[0].store([reference(row, "c", seq) for seq, row in enumerate(first)], vectors=False)
    assert "not published: 2 passages" in run("status", REPO)[1]
    assert run("push", REPO)[1].startswith(f"{REPO}: 2 copies of passages published, ")


def test_another_push_sends_what_is_new_and_nothing_twice(hub, machines, run):
    one, _ = machines
    one.remember("a", [f"turn {number} about the parser" for number in range(500)])
    run("push", REPO)
    before = set(files(hub))
    hub.traffic.served.clear()
    assert run("push", REPO)[1].startswith(f"{REPO}: nothing new to publish; it holds 500 passages")
    assert hub.traffic.received == 0
    one.remember("b", [f"news {number}" for number in range(20)])
    hub.traffic.served.clear()
    code, out, _ = run("push", REPO, "--json")
    report = json.loads(out)
    assert (code, report["rows"], report["vectors"], report["after"]) == (0, 20, 20, 520)
    assert report["sent"] < 50_000
    assert hub.traffic.received < report["sent"] + 20_000
    now = set(files(hub))
    data = {path for path in before if "/data/" in path}
    assert data <= now
    assert len({path for path in now if "/data/" in path}) == len(data) + 2
    assert len(rows_in(snapshot())) == 520


def test_two_machines_share_sessions_without_repeating_them(hub, machines, run, monkeypatch):
    one, two = machines
    one.remember("a", ["common", "only here"])
    two.remember("a", ["common"])
    two.remember("b", ["from the other machine"], title="Other")
    run("push", REPO)
    two.use(monkeypatch)
    assert run("push", REPO)[0] == 0
    folder = snapshot()
    assert sorted((row.session_id, row.text) for row in rows_in(folder)) == [
        ("a", "common"),
        ("a", "only here"),
        ("b", "Other"),
        ("b", "from the other machine"),
    ]
    assert len(vectors_in(folder)) == 3
    code, out, _ = run("recall", "other machine", "--memory", REPO, "-k", "3")
    assert code == 0
    assert "from the other machine" in out
    assert texts_of(folder, "a") == ["common", "only here"]


def test_a_memory_of_others_is_published_to_only_when_that_is_meant(hub, machines, run, monkeypatch):
    one, two = machines
    one.remember("a", ["theirs"])
    run("push", REPO)
    two.use(monkeypatch)
    two.remember("b", ["mine"])
    code, out, err = run("push", REPO)
    assert (code, out) == (1, "")
    assert err == (f"funes: {REPO} holds 1 passages and none of them is in your memory; add --yes if that is meant.\n")
    assert len(rows_in(snapshot())) == 1
    assert run("push", REPO, "--yes")[0] == 0
    two.remember("c", ["more of mine"])
    assert run("push", REPO)[0] == 0  # it is known now
    assert len(rows_in(snapshot())) == 3


def test_a_public_repository_is_published_to_only_when_that_is_meant(hub, machines, run):
    hub.publish(REPO, {"README.md": b"# Everybody's"}, private=False)
    machines[0].remember("a", ["mine"])
    code, out, err = run("push", REPO)
    assert (code, out) == (1, "")
    assert err == (
        f"funes: {REPO} is public, so anybody can read what is published there; add --yes if that is meant.\n"
    )
    assert "chunks.lance" not in " ".join(files(hub))
    assert run("push", REPO, "--yes")[0] == 0
    machines[0].remember("b", ["more"])
    assert run("push", REPO)[0] == 0
    assert len(rows_in(snapshot())) == 2


def test_somebody_at_the_terminal_is_asked(hub, machines, run, monkeypatch):
    one, two = machines
    one.remember("a", ["theirs"])
    run("push", REPO)
    two.use(monkeypatch)
    two.remember("b", ["mine"])
    questions = []

    def confirmation(answer):
        return lambda: lambda question: (questions.append(question), answer)[1]

    monkeypatch.setattr("funes.cli.sharing.confirmation", confirmation(False))
    assert run("push", REPO) == (1, "", "funes: Nothing was published.\n")
    assert "none of them is in your memory. Publish to it all the same?" in questions[0]
    monkeypatch.setattr("funes.cli.sharing.confirmation", confirmation(True))
    assert run("push", REPO)[0] == 0
    assert len(questions) == 2


def test_a_credential_stays_here_and_all_of_it_is_code_2(hub, machines, run):
    one, _ = machines
    one.remember("a", ["clean", f"export GITHUB_TOKEN={TOKEN}"])
    code, out, err = run("push", REPO)
    assert (code, err) == (0, "")
    assert "held back: 1 block with credentials: github-token 1" in out
    assert TOKEN not in out
    assert [row.text for row in rows_in(snapshot())] == ["clean"]
    assert not any(TOKEN.encode() in data for data in files(hub).values())
    hub.traffic.served.clear()
    code, out, err = run("push", REPO)
    assert (code, err) == (2, "")
    assert out.startswith(f"{REPO}: nothing was published, all of it was held back\n")
    assert hub.traffic.received == 0
    code, out, _ = run("status", "--json")
    assert json.loads(out)["sharing"][0]["held"] == 1
    code, out, _ = run("status", REPO)
    assert "would be held back: 1 block with credentials: github-token 1" in out
    assert "not published: 0 passages\n" in out


def test_chosen_sessions_and_passages_without_vectors(hub, machines, run):
    one, _ = machines
    for name in ("aaaa-1", "aaaa-2", "bbbb-1"):
        one.remember(name, [f"of {name}"], vectors=False)
    assert run("push", REPO)[1].startswith(f"{REPO}: nothing new to publish")
    code, _, err = run("push", REPO, "--words", "--sessions", "aaaa")
    assert code == 1
    assert "is the beginning of several session ids" in err
    assert run("push", REPO, "--words", "--sessions", "aaaa-2", "bbbb")[0] == 0
    assert {row.session_id for row in rows_in(snapshot())} == {"aaaa-2", "bbbb-1"}
    embed(one.memory, [row.id for row in rows_in(one.memory)])
    report = json.loads(run("push", REPO, "--json")[1])
    assert (report["rows"], report["vectors"]) == (1, 3)
    code, _, err = run("push", REPO, "more")
    assert code == 1
    assert "unexpected extra argument (more)" in err


def test_vectors_and_titles_that_come_later(hub, machines, run):
    one, _ = machines
    rows = one.remember("a", ["words"], vectors=False)
    run("push", REPO, "--words")
    embed(one.memory, [rows[0].id])
    assert run("push", REPO)[1].startswith(f"{REPO}: 1 vector published, ")
    one.store([header("a", "A title")], vectors=False)
    assert run("push", REPO)[1].startswith(f"{REPO}: 1 title published, ")
    name = hub.store.meta("dataset", REPO)["refs"]["main"]
    assert hub.store.commit("dataset", REPO, name)["title"] == "Add 1 titles"


def test_a_readme_of_somebody_s_own_stays(hub, machines, run):
    hub.publish(REPO, {"README.md": b"# Ours\n\nWritten by hand.\n"})
    machines[0].remember("a", ["words"])
    assert run("push", REPO)[0] == 0
    assert files(hub)["README.md"] == b"# Ours\n\nWritten by hand.\n"
    assert hub.store.meta("dataset", REPO)["private"] is True


def test_the_card_is_kept_up_to_date(hub, machines, run):
    one, _ = machines
    one.remember("a", ["words"])
    run("push", REPO)
    edited = files(hub)["README.md"].replace(b"# decisions", b"# What we decided")
    HubClient().commit(REPO, HubClient().head(REPO), {"README.md": edited}, [], "By hand")
    one.remember("b", ["more"])
    run("push", REPO)
    card = files(hub)["README.md"].decode()
    assert "# What we decided" in card
    assert "| passages | 2 |" in card.partition(BEGIN)[2]


def test_compacting_merges_what_many_pushes_left(hub, machines, run):
    one, _ = machines
    for number in range(6):
        one.remember(f"s{number}", [f"words of session {number}"])
        run("push", REPO)
    many = [path for path in files(hub) if "/data/" in path]
    assert len(many) == 12
    code, out, _ = run("push", REPO, "--compact")
    assert code == 0
    assert out.startswith(f"{REPO}: merged and indexed")
    assert len([path for path in files(hub) if "/data/" in path]) == 2
    assert len(rows_in(snapshot())) == 6
    assert "words of session 4" in run("recall", "session 4", "--memory", REPO, "-k", "6")[1]


def test_a_curated_memory_gets_only_what_was_reviewed(hub, machines, run, monkeypatch):
    from funes.commands.curation import Selection

    one, _ = machines
    one.remember("a", ["reviewed"])
    one.remember("b", ["not reviewed"])
    monkeypatch.setattr("funes.commands.curation.publishable", lambda label: Selection(frozenset({"a"}), "acme/api"))
    code, out, _ = run("push", REPO)
    assert code == 0
    assert "curated: acme/api, 1 reviewed sessions may be published" in out
    assert [row.session_id for row in rows_in(snapshot())] == ["a"]
    code, _, _ = run("push", REPO, "--sessions", "b")
    assert [row.session_id for row in rows_in(snapshot())] == ["a"]


def test_sessions_that_the_ignore_file_names_stay_out(hub, machines, run):
    one, _ = machines
    (row,) = one.remember("a", ["said in both"], workdir="/work/customer", repo="acme/customer")
    one.remember("below", ["by its sub-agent"], workdir="/elsewhere", repo="")
    one.store([header("below", "", parent_id="a", kind="subagent")], vectors=False)
    where = {"workdir": "/work/open", "repo": "acme/open"}
    shared = replace(reference(row, "b", 0), **where)
    one.store([shared, *turn_rows("b", 1, "only in the open one", **where)])
    (one.home / "ignore").write_text("/work/customer\n")
    shown = run("status", REPO)[1]
    assert "not published: 2 passages; " in shown
    code, out, _ = run("push", REPO)
    assert code == 0
    assert "not published: 2 sessions that the ignore file names; `funes forget --ignored` removes them" in out
    assert [(row.session_id, row.text) for row in rows_in(snapshot())] == [
        ("b", "said in both"),
        ("b", "only in the open one"),
    ]
    assert json.loads(run("push", REPO, "--sessions", "a", "--json")[1])["ignored"] == 1
    (one.home / "ignore").write_text("!\n")
    assert run("push", REPO)[0] == 1


def test_status_tells_what_a_first_push_would_do(hub, machines, run):
    machines[0].remember("a", ["words", f"token {TOKEN}"])
    machines[0].remember("b", ["waits"], vectors=False)
    code, out, err = run("status", REPO)
    assert (code, err) == (0, "")
    assert f"not published: 1 passage; `funes push {REPO}` publishes it" in out
    assert "not published: 1 passage that has no vector yet" in out
    assert "would be held back: 1 block with credentials" in out
    assert f"There is no dataset {REPO}" in out
    assert not (machines[0].home / "sharing").exists() or list((machines[0].home / "sharing").iterdir()) == []


def test_the_cache_is_never_written_to(hub, machines, run):
    one, _ = machines
    one.remember("a", ["words"])
    run("push", REPO)
    folder = snapshot()

    def content():
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()
        }

    before = content()
    one.remember("b", ["more"])
    run("push", REPO, "--compact")
    now = content()
    assert {path: now[path] for path in before} == before
    assert MemoryReader.open(str(folder)).statistics().passages == 1


def test_long_blocks_can_be_read_whole_at_the_other_end(hub, machines, run):
    text = "".join(f"line {number}: something happened\n" for number in range(200))
    machines[0].store(turn_rows("a", 0, text))
    run("push", REPO)
    code, out, _ = run("get", "a", "--memory", REPO, "--json")
    assert code == 0
    assert json.loads(out)["turns"][0]["blocks"][0]["text"] == text


def test_a_memory_that_is_only_looked_at_leaves_nothing_behind(hub, machines, run):
    machines[0].remember("a", ["words"])
    assert "not published: 1 passage; " in run("status", REPO)[1]
    assert not (machines[0].home / "sharing").exists()
