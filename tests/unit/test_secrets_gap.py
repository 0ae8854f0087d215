"""Our own rules, one kind at a time: what each finds, what it leaves, and how much work hostile text can make."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funes.secrets import gap_rules
from funes.secrets.findings import merge
from funes.secrets.gap_blocks import long_runs
from funes.secrets.gap_names import secret_kind
from funes.secrets.gap_prefixes import TOKEN_RULES
from funes.secrets.gap_values import plausible_password, plausible_token
from tests.support.secret_samples import ALNUM, HEX, Inventor

inventor = Inventor(3)
OPAQUE = inventor.alnum(40)
GITHUB = inventor.github()
HUMAN = "Copper.velvet" + "78!"


def found(text: str) -> list[tuple[str, str]]:
    """Rule and value of each finding."""
    return [(finding.rule, text[finding.start : finding.end]) for finding in merge(gap_rules.scan(text))]


def test_every_vendor_literal_reaches_its_rule() -> None:
    # Each literal is found through an anchor character or by itself; one that no search can reach would be dead.
    reached = {candidate.literal for group in gap_rules._tokens._keyed.values() for candidate in group}
    reached |= {candidate.literal for group in gap_rules._tokens._unkeyed.values() for candidate in group}
    reached |= {candidate.literal for _, _, group in gap_rules._tokens._groups for candidate in group}
    assert reached == {literal for rule in TOKEN_RULES for literal in rule.literals}


@pytest.mark.parametrize(
    "make",
    [
        Inventor.github,
        Inventor.gitlab,
        Inventor.huggingface,
        Inventor.openai,
        Inventor.anthropic,
        Inventor.openrouter,
        Inventor.stripe,
        Inventor.slack,
        Inventor.sendgrid,
        Inventor.google,
        Inventor.npm,
        Inventor.pypi,
        Inventor.vault,
        Inventor.telegram,
        Inventor.azure,
        Inventor.airtable,
        Inventor.digitalocean,
        Inventor.json_web_token,
        lambda i: i.alnum(14) + ".atlas" + "v1." + i.alnum(67),
        lambda i: "S" + "K" + i.hex(32),
        lambda i: "c" + "io" + i.alnum(32),
        lambda i: "da" + "pi" + i.hex(32),
        lambda i: "1/" + "/0" + i.alnum(50),
        lambda i: "AG" + "E-SECRET-KEY-1" + i.chars("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
        lambda i: i.hex(32) + "-us" + "12",
        lambda i: "M" + i.alnum(25) + "." + i.alnum(6) + "." + i.alnum(38),
        lambda i: "IQoJb3Jp" + "Z2lu" + i.alnum(300),
        lambda i: "https://hooks." + "slack.com/services/T" + i.alnum(10) + "/B" + i.alnum(10) + "/" + i.alnum(24),
        lambda i: "https://discord" + ".com/api/webhooks/" + i.chars("123456789", 18) + "/" + i.alnum(68),
    ],
)
@pytest.mark.parametrize("around", ["{}", "see {} .", "a=b\n{}\n", '"{}"', "\\n{}\\n", "\x1b[31m{}\x1b[0m", "%3D{}&x"])
def test_a_vendor_token_is_found_whatever_stands_around_it(make: Callable[[Inventor], str], around: str) -> None:
    value = make(inventor)
    assert value in "".join(text for _, text in found(around.format(value)))


def test_a_long_token_is_covered_to_its_end() -> None:
    token = "ops_" + "ey" + inventor.alnum(9000)
    assert found(f"x {token} y") == [("onepassword-token", token)]


@pytest.mark.parametrize("inside", ["path/to_", "my", "9"])
def test_a_prefix_inside_a_word_is_none(inside: str) -> None:
    assert not [rule for rule, _ in found(inside + GITHUB) if rule == "github-token"]


@pytest.mark.parametrize(
    ("text", "rule", "value"),
    [
        (f"SERVICE_TOKEN={OPAQUE}", "secret-value", OPAQUE),
        (f"DB_PASSWORD={HUMAN}", "password", HUMAN),
        (f'"client_secret": "{OPAQUE}",', "secret-value", OPAQUE),
        (f'{{\\"client_secret\\": \\"{OPAQUE}\\"}}', "secret-value", OPAQUE),
        (f'nested:\\n  db_password: \\"{HUMAN}\\"\\n', "password", HUMAN),
        (f"export API_KEY={OPAQUE}; run", "secret-value", OPAQUE),
        (f"password => '{HUMAN}'", "password", HUMAN),
        (f"<password>{HUMAN}</password>", "password", HUMAN),
        (f'<add key="ApiKey" value="{OPAQUE}"/>', "secret-value", OPAQUE),
        (f'- name: API_KEY\n  value: "{OPAQUE}"', "secret-value", OPAQUE),
        (f'let token: String = "{OPAQUE}";', "secret-value", OPAQUE),
        (f"token := `{OPAQUE}`", "secret-value", OPAQUE),
        (f'os.getenv("API_TOKEN", "{OPAQUE}")', "secret-value", OPAQUE),
        (f'client.setPassword("{HUMAN}")', "password", HUMAN),
        (f"setx API_KEY {OPAQUE}", "secret-value", OPAQUE),
        (f'#define API_KEY "{OPAQUE}"', "secret-value", OPAQUE),
        (f"aws configure set aws_secret_access_key {OPAQUE}", "secret-value", OPAQUE),
        (f"| admin password | {inventor.alnum(16)}7a9 |", "password", ""),
        (f"tool --api-key {OPAQUE} go", "cli-secret", OPAQUE),
        (f"tool --password='{HUMAN}' go", "cli-secret", HUMAN),
        (f"Authorization: Bearer {OPAQUE}", "auth-header", OPAQUE),
        (f"'authorization': 'token {OPAQUE}'", "auth-header", OPAQUE),
        (f"use Bearer {OPAQUE} there", "bearer-token", OPAQUE),
        (f"the deploy token for staging is {OPAQUE}.", "prose-secret", OPAQUE),
        (f"the admin password is {HUMAN}, thanks", "prose-secret", HUMAN),
        (f"the admin password is “{HUMAN}”.", "prose-secret", HUMAN),
        (f"API key: {OPAQUE}", "secret-value", OPAQUE),
        (f"machine h\n login bot\n password {HUMAN}\n", "netrc", HUMAN),
        (f"CREATE ROLE app LOGIN PASSWORD '{HUMAN}'", "password", HUMAN),
        (f"IDENTIFIED BY '{HUMAN}'", "sql-password", HUMAN),
        (f"postgresql+asyncpg://app:{HUMAN}@db/app", "url-password", HUMAN),
        ("postgresql://app:p@ss:w0rd@db/app", "url-password", "p@ss:w0rd"),
        (f"curl -u bot:{HUMAN} https://h", "command-password", HUMAN),
        (f"mysql -u root -p{OPAQUE} db", "command-password", OPAQUE),
        (f"sshpass -p '{HUMAN}' ssh h", "command-password", HUMAN),
        (f"docker login https://r.internal -u ci -p {OPAQUE}", "command-password", OPAQUE),
        (f"redis-cli -h c -a {OPAQUE} ping", "command-password", OPAQUE),
        (f"db.internal:5432:app:rw:{OPAQUE}\n", "pgpass", OPAQUE),
        (f"Set-Cookie: sessionid={inventor.hex(32)}; Path=/", "session-cookie", ""),
        (f"https://a.blob/x?sv=2024&sig={inventor.alnum(40)}%3D", "url-signature", ""),
        (f'requests.get(u, auth=("bot", "{HUMAN}"))', "basic-auth-pair", HUMAN),
        (f'{{"kty":"OKP","d":"{inventor.alnum(43)}"}}', "json-web-key", ""),
        ("mnemonic: " + " ".join(["maple", "orbit", "ember"] * 4), "seed-phrase", ""),
        ("SEED_PHRASE='" + " ".join(["maple", "orbit", "ember"] * 4) + "'", "seed-phrase", ""),
        (f"GET /x?access_token={OPAQUE}#top", "secret-value", OPAQUE),
    ],
)
def test_a_position_announces_a_secret(text: str, rule: str, value: str) -> None:
    findings = found(text)
    assert [name for name, _ in findings] == [rule]
    assert not value or findings[0][1] == value


@pytest.mark.parametrize(
    "text",
    [
        "--- PASS: TestGetSecret_Rotates/with_3f2a_suffix (0.00s)",
        "password: ${DB_PASSWORD}",
        "password = config.database.password2",
        "token = await self.client.fetch_token(scope)",
        "cache key: linux-node-0a1b2c3d4e5f60718293a4b5c6d7e8f9",
        '{"key": "0a1b2c3d4e5f60718293a4b5c6d7e8f9"}',
        "max_tokens=128000 token_count: 9812345678901",
        "secret_name = 'prod/app/db-a1B2c3d4'",
        "commit 0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/app/db-a1B2c3",
        "key: Ed25519PrivateKey | None",
        "merge-base=origin/20260206-secrets-redaction",
        "SOCKS5_NO_ACCEPTABLE_AUTH = SOCKS5_NO_ACCEPTABLE_AUTH",
        "postgres://postgres:postgres@localhost/db",
        "mkdir -p build/output-1234 && curl -u $USER:$PASS https://h",
        "echo x | docker login --password-stdin registry.corp.internal",
        "see http://127.0.0.1:8080/path@v1.2.3 and git@github.com:a/b.git",
        "use your-api-key-here or sk-ant-api03-...",
    ],
)
def test_code_prose_and_placeholders_are_left(text: str) -> None:
    assert found(text) == []


def test_a_json_escape_before_a_name_is_no_part_of_it() -> None:
    assert found(f"a\\nkey: {OPAQUE}\\n") == [("secret-value", OPAQUE)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("DB_PASSWORD", "password"),
        ("dbpass", "password"),
        ("userPwd", "password"),
        ("apiKey", "secret"),
        ("X-Api-Key", "secret"),
        ("GITLAB_PAT", "secret"),
        ("_authToken", "secret"),
        ("CARGO_REGISTRY_TOKEN", "secret"),
        ("cache_key", ""),
        ("publicKey", ""),
        ("max_tokens", ""),
        ("token_count", ""),
        ("PASSWORD_FILE", ""),
        ("csrfToken", ""),
        ("author", ""),
        ("bypass", ""),
        ("nextPageToken", ""),
        ("secretName", ""),
    ],
)
def test_names_say_what_their_values_are(name: str, kind: str) -> None:
    assert secret_kind(name) == kind


@pytest.mark.parametrize("value", [HUMAN, "Maple-harbor12", "S3cure!pass", "84302917", inventor.alnum(20)])
def test_passwords(value: str) -> None:
    assert plausible_password(value, literal=True)


@pytest.mark.parametrize(
    "value", ["password", "changeme", "short", "user.password", "get_password(", "${X}", "********"]
)
def test_no_passwords(value: str) -> None:
    assert not plausible_password(value)


@pytest.mark.parametrize("value", [inventor.alnum(24), inventor.hex(32), inventor.uuid(), inventor.base64(33)])
def test_tokens(value: str) -> None:
    assert plausible_token(value)


@pytest.mark.parametrize(
    "value",
    ["some-long-identifier-name", "ThisIsAClassName", "src/app/main.py:12", "2026-11-12T09:14:02Z", "1.2.3.4567890"],
)
def test_no_tokens(value: str) -> None:
    assert not plausible_token(value)


# ---------------------------------------------------------------------------------------------------- keys, base64
def test_a_private_key_is_covered_in_every_wrapping() -> None:
    key = inventor.private_key()
    for text in (
        key,
        key.replace("\n", "\\n"),
        key.replace("\n", "\\\\n"),
        key.replace("\n", "\r\n"),
        "> " + key.replace("\n", "\n> "),
    ):
        (rule, value), *rest = found(f"before\n{text}\nafter")
        assert rule == "private-key"
        assert not rest
        assert "PRIVATE" + " KEY" in value[:40]
        assert value.rstrip("\\n").endswith("KEY-----")


def test_a_cut_off_key_is_covered_as_far_as_it_goes_and_no_further() -> None:
    cut = "\n".join(inventor.private_key().split("\n")[:4])
    assert found(f"{cut}\n\nThe rest of the output was left out.") == [("private-key", cut)]


def test_two_keys_of_which_the_first_has_no_end() -> None:
    first = "\n".join(inventor.private_key().split("\n")[:3])
    second = inventor.private_key()
    assert [value for _, value in found(f"{first}\n{second}\nend")] == [first, second]


def test_a_public_key_and_an_empty_key_are_left() -> None:
    assert not found("-----BEGIN PUBLIC KEY-----\n" + inventor.base64(90) + "\n-----END PUBLIC KEY-----")
    assert not found("-----BEGIN PRIVATE" + " KEY-----\n...\n-----END PRIVATE" + " KEY-----")


def test_base64_is_covered_only_when_it_hides_a_secret() -> None:
    hidden = _base64(f"export SERVICE_TOKEN={OPAQUE}\nexport A=1\n")
    twice = _base64(f"data: {hidden}\n")
    assert found(f"x {hidden} y") == [("base64-secret", hidden)]
    assert found(f"x {twice} y") == [("base64-secret", twice)]
    assert found(f"x {_base64('the quick brown fox jumps over the lazy dog')} y") == []


def test_base64_in_lines_ends_where_its_lines_end() -> None:
    hidden = _base64(f"# settings\nexport SERVICE_TOKEN={OPAQUE}\nexport REGION=eu-west-1\n")
    lines = "\n".join(hidden[i : i + 76] for i in range(0, len(hidden), 76))
    assert found(f"$ base64 .env\n{lines}\nThe end") == [("base64-secret", lines)]


@given(st.lists(st.tuples(st.sampled_from(["A", "-"]), st.integers(1, 60)), max_size=12))
def test_long_runs_are_the_runs_that_a_pattern_finds(parts: list[tuple[str, int]]) -> None:
    import re

    text = "".join(character * length for character, length in parts)
    assert list(long_runs(text)) == [match.span() for match in re.finditer("A{40,}", text)]


# -------------------------------------------------------------------------------------------------- any text at all
@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_text_can_be_scanned(text: str) -> None:
    assert all(0 <= finding.start < finding.end <= len(text) for finding in gap_rules.scan(text))


FRAGMENTS = (
    *("password", "token", "=", ": ", '"', "\\", "\\n", "\n", "-----BEGIN PRIVATE KEY-----", "://", "@", ":", "sk-"),
    *("eyJ", ".", "Bearer ", "curl -u ", "cookie: ", "\0", "\ud800", "🦊", " ", "kty", "login x ", OPAQUE, HUMAN),
)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join))
def test_any_mixture_of_what_the_rules_look_for_can_be_scanned(text: str) -> None:
    assert all(0 <= finding.start < finding.end <= len(text) for finding in gap_rules.scan(text))


HOSTILE = {
    "assignments": "token=",
    "assignments with blanks": "password: ",
    "headers of keys": "-----BEGIN PRIVATE KEY-----\n",
    "headers in one line": "-----BEGIN PRIVATE KEY-----",
    "one letter": "a",
    "one line end": "\n",
    "blanks behind a name": "token" + " " * 40,
    "prefixes": "sk-proj-",
    "web tokens": "eyJ-",
    "addresses": "https://u:p",
    "commands": "mysql -pabcdef ",
    "cookies": "cookie: sid=aaaaaaaaaaaaaaaaaaaa; ",
    "keys in JSON": '"kty": "d": ',
    "quotes": "token=\"'\\`",
    "almost base64": "A" * 39 + "-",
    "lines of base64": "QUFB" * 19 + "\n",
    "sentences": "the key is ",
    "dots": "aaaaaa.",
    "markup": "<token>",
    "other scripts": "токен🦊=",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_four_times_the_text_takes_about_four_times_the_time(unit: str) -> None:
    small = _repeated(unit, 12_000)
    # Quadratic work would make it sixteen times; a noisy machine does not.
    assert _least_time(small * 4) < 10 * max(_least_time(small), 0.001)


@pytest.mark.parametrize("alphabet", [ALNUM + "+/", HEX, ALNUM + "-_"])
def test_long_random_runs_take_linear_time(alphabet: str) -> None:
    text = inventor.chars(alphabet, 200_000)
    assert _least_time(text) < 10 * max(_least_time(text[:50_000]), 0.001)


def _repeated(unit: str, length: int) -> str:
    return unit * (length // len(unit) + 1)


def _least_time(text: str) -> float:
    def once() -> float:
        start = time.process_time()
        gap_rules.scan(text)
        return time.process_time() - start

    return min(once() for _ in range(3))


def _base64(text: str) -> str:
    import base64

    return base64.b64encode(text.encode()).decode()
