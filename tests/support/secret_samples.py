"""Labelled texts for the secret scanner: invented credentials in the shapes that traces have, and hard negatives.

Every value is made at run time from a seed, so no file has anything in it that looks like a credential. None is, or
ever was, a real one. The prefixes of vendors' formats are put together from parts for the same reason.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ALNUM = string.ascii_letters + string.digits
URL_SAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
WORDS = (
    *("maple", "harbor", "cobalt", "velvet", "orbit", "lantern", "quartz", "ember"),
    *("willow", "summit", "falcon", "pepper", "glacier", "meadow", "copper"),
)
FILLER = [
    "I'll look at the failing test first and then check the config loader.",
    "Ran 214 tests in 12.41s, 2 failures, 1 skipped",
    'src/server/handlers.py:118: error: Argument 1 has incompatible type "str"; expected "bytes"',
    "def load_config(path: Path) -> Config:\n    with path.open() as fh:\n        return Config(**yaml.safe_load(fh))",
    "the deploy succeeded on the second attempt – retry after the déjà-vu timeout was enough ✅",
    "user: can you also rename the helper so that it matches the other module? 谢谢",
    "$ git status\nOn branch feature/cache-warmup\nnothing to commit, working tree clean",
    "--- PASS: TestCache_WarmUp/second_run (0.02s)",
]


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled text.

    Attributes:
        kind: what the secret is, or the class of the negative.
        shape: where it stands, empty for a negative.
        text: the text.
        secrets: the values that must disappear; empty for a negative.
    """

    kind: str
    shape: str
    text: str
    secrets: tuple[str, ...] = ()


class Inventor:
    """Makes values that look like credentials from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chars(self, alphabet: str, length: int) -> str:
        """Random characters that are not all alike."""
        while True:
            value = "".join(self.random.choices(alphabet, k=length))
            if len(set(value)) >= min(length, len(set(alphabet))) * 0.35:
                return value

    def alnum(self, length: int) -> str:
        return self.chars(ALNUM, length)

    def hex(self, length: int) -> str:
        return self.chars(HEX, length)

    def bytes(self, length: int) -> bytes:
        return self.random.randbytes(length)

    def base64(self, length: int) -> str:
        return base64.b64encode(self.bytes(length)).decode()

    def uuid(self) -> str:
        return str(uuid.UUID(bytes=self.bytes(16), version=4))

    def word(self) -> str:
        return self.random.choice(WORDS)

    def filler(self) -> str:
        return self.random.choice(FILLER)

    # ------------------------------------------------------------------ vendors' formats
    def github(self) -> str:
        body = self.alnum(30)
        return "gh" + self.random.choice("posur") + "_" + body + _base62(zlib.crc32(body.encode()))

    def gitlab(self) -> str:
        return "gl" + "pat-" + self.chars(URL_SAFE, 20)

    def huggingface(self) -> str:
        return "h" + "f_" + self.chars(string.ascii_letters, 34)

    def openai(self) -> str:
        return "sk-" + "proj-" + self.chars(URL_SAFE, 74) + "T3Blbk" + "FJ" + self.chars(URL_SAFE, 74)

    def anthropic(self) -> str:
        return "sk-" + "ant-api03-" + self.chars(URL_SAFE, 93) + "AA"

    def openrouter(self) -> str:
        return "sk-" + "or-v1-" + self.hex(64)

    def stripe(self) -> str:
        return "sk_" + "live_51" + self.alnum(97)

    def slack(self) -> str:
        digits = string.digits[1:]
        return "xox" + f"b-{self.chars(digits, 12)}-{self.chars(digits, 13)}-{self.alnum(24)}"

    def sendgrid(self) -> str:
        return "SG" + f".{self.chars(URL_SAFE, 22)}.{self.chars(URL_SAFE, 43)}"

    def google(self) -> str:
        return "AI" + "za" + self.chars(URL_SAFE, 35)

    def npm(self) -> str:
        body = self.alnum(30)
        return "np" + "m_" + body + _base62(zlib.crc32(body.encode()))

    def pypi(self) -> str:
        return "pypi-" + "AgEIcHlwaS5vcmc" + self.chars(URL_SAFE, 150)

    def vault(self) -> str:
        return "hv" + "s.CAESI" + self.chars(URL_SAFE, 90)

    def telegram(self) -> str:
        return f"{self.random.randrange(10**9, 10**10)}:" + "AA" + self.chars(URL_SAFE, 33)

    def azure(self) -> str:
        return self.alnum(3) + "8" + "Q~" + self.chars(ALNUM + "-_.~", 34)

    def airtable(self) -> str:
        return "pa" + "t" + self.alnum(14) + "." + self.hex(64)

    def digitalocean(self) -> str:
        return "dop" + "_v1_" + self.hex(64)

    def json_web_token(self) -> str:
        def part(value: object) -> str:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

        claims = {"sub": self.uuid(), "iat": self.random.randrange(10**9)}
        return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{self.chars(URL_SAFE, 43)}"

    # ------------------------------------------------------------------ without a format
    def password(self) -> str:
        """A password as a person or a manager makes one."""
        first, second = self.word().title(), self.word()
        digits = self.chars(string.digits, 2)
        human = first + self.random.choice("-_.") + second + digits + self.random.choice(["!", "#", ""])
        strong = self.alnum(12) + self.random.choice("!@#%*") + digits + self.random.choice("!*_+")
        return self.random.choice([human, strong, self.alnum(18) + digits])

    def opaque(self) -> str:
        """A token without a prefix."""
        return self.random.choice([self.alnum(32), self.hex(40), self.chars(URL_SAFE, 43), self.uuid()])

    def private_key(self) -> str:
        """A block in the form of a private key; its content is random."""
        label = self.random.choice(["", "RSA ", "EC ", "OPENSSH "]) + "PRIVATE" + " KEY"
        body = base64.b64encode(self.bytes(self.random.randrange(200, 700))).decode()
        lines = "\n".join(body[i : i + 64] for i in range(0, len(body), 64))
        return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----"


def _base62(number: int) -> str:
    """The check sum that GitHub and npm put at the end of a token."""
    digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
    text = ""
    while number:
        number, rest = divmod(number, 62)
        text = digits[rest] + text
    return text.rjust(6, "0")


VENDORS: dict[str, tuple[str, Callable[[Inventor], str]]] = {
    "github": ("GITHUB_TOKEN", Inventor.github),
    "gitlab": ("GITLAB_TOKEN", Inventor.gitlab),
    "huggingface": ("HF_TOKEN", Inventor.huggingface),
    "openai": ("OPENAI_API_KEY", Inventor.openai),
    "anthropic": ("ANTHROPIC_API_KEY", Inventor.anthropic),
    "openrouter": ("OPENROUTER_API_KEY", Inventor.openrouter),
    "stripe": ("STRIPE_SECRET_KEY", Inventor.stripe),
    "slack": ("SLACK_BOT_TOKEN", Inventor.slack),
    "sendgrid": ("SENDGRID_API_KEY", Inventor.sendgrid),
    "google": ("GOOGLE_API_KEY", Inventor.google),
    "npm": ("NPM_TOKEN", Inventor.npm),
    "pypi": ("PYPI_TOKEN", Inventor.pypi),
    "vault": ("VAULT_TOKEN", Inventor.vault),
    "telegram": ("TELEGRAM_BOT_TOKEN", Inventor.telegram),
    "azure": ("AZURE_CLIENT_SECRET", Inventor.azure),
    "airtable": ("AIRTABLE_TOKEN", Inventor.airtable),
    "digitalocean": ("DIGITALOCEAN_TOKEN", Inventor.digitalocean),
    "jwt": ("SESSION_JWT", Inventor.json_web_token),
    "opaque": ("INTERNAL_SERVICE_TOKEN", Inventor.opaque),
    "datadog": ("DD_API_KEY", lambda inventor: inventor.hex(32)),
    "okta": ("OKTA_API_TOKEN", lambda inventor: "00" + inventor.chars(URL_SAFE, 40)),
    "password": ("SMTP_PASSWORD", Inventor.password),
}
"""Kinds with a variable's name: name -> (variable, how one is made)."""


def _escaped(text: str) -> str:
    """The text inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


NAMED_SHAPES: dict[str, Callable[[str, str], str]] = {
    "environment": lambda name, value: f"$ env\nSHELL=/bin/bash\n{name}={value}\nLANG=C\n",
    "dotenv": lambda name, value: f"# .env\nPORT=8080\n{name}='{value}'\nDEBUG=1\n",
    "export": lambda name, value: f'cd ~/src/app && export {name}="{value}" && ./run.sh',
    "tool input": lambda name, value: '{"command":"' + _escaped(f'{name}="{value}" make deploy\necho done') + '"}',
    "tool result": lambda name, value: (
        '{"content":"' + _escaped(json.dumps({name.lower(): value, "region": "eu"})) + '"}'
    ),
    "yaml": lambda name, value: f"services:\n  api:\n    environment:\n      {name}: {value}\n      LOG_LEVEL: info\n",
    "ini": lambda name, value: f"[default]\nregion = eu\n{name.lower()} = {value}\n\n[other]\n",
    "python": lambda name, value: f'import os\n\n{name} = "{value}"\nclient = Client({name}, timeout=30)\n',
    "typed": lambda name, value: f'const {name.lower()}: string = "{value}";\n',
    "diff": lambda name, value: f"@@ -1,2 +1,2 @@\n-{name}=old\n+{name}={value}\n",
    "xml": lambda name, value: f'<add key="{name.title().replace("_", "")}" value="{value}"/>\n',
    "kubernetes": lambda name, value: (
        f'        env:\n        - name: {name}\n          value: "{value}"\n        - name: PORT\n'
    ),
    "docker": lambda name, value: f"docker run -d -e {name}={value} -p 80:80 app:1.4\n",
    "coloured": lambda name, value: f"{name}=\x1b[32m{value}\x1b[0m\n",
    "process environment": lambda name, value: f"HOME=/root\0{name}={value}\0TERM=xterm\0",
    "windows": lambda name, value: f"set A=1\r\n$env:{name} = '{value}'\r\nsetx {name} {value}\r\n",
    "double escaped": lambda name, value: '{"a":"' + _escaped(_escaped(f'{{"{name.lower()}": "{value}"}}')) + '"}',
    "prose": lambda name, value: f"user: here's the {name.lower().replace('_', ' ')} for staging: {value} , thanks!\n",
}
"""Shapes of a value with a name: name -> text."""


def positives(seed: int, per_kind: int = 6) -> Iterator[Sample]:
    """Yield texts with labelled secrets.

    Args:
        seed: makes the values; the same seed gives the same texts.
        per_kind: how many of the shapes each vendor's value is put into.
    """
    inventor = Inventor(seed)
    shapes = list(NAMED_SHAPES.items())
    for index, (kind, (name, invent)) in enumerate(VENDORS.items()):
        for step in range(per_kind):
            shape, write = shapes[(index + step * 3) % len(shapes)]
            value = invent(inventor)
            text = f"{inventor.filler()}\n{write(name, value)}{inventor.filler()}"
            yield Sample(kind, shape, text, (value,))
    for _ in range(3):
        yield from _positions(inventor)


def _positions(inventor: Inventor) -> Iterator[Sample]:
    """Secrets that a syntactic position announces."""
    password, token, user = inventor.password(), inventor.opaque(), inventor.word()
    url = inventor.alnum(20)
    lines = {
        "curl user": (f"$ curl -fsS -u {user}:{password} https://nexus.corp.internal/repository/", password),
        "bearer": (f"> POST /v2/jobs HTTP/1.1\n> Authorization: Bearer {token}\n> Accept: */*", token),
        "header": (f'curl https://svc.corp.internal/q -H "X-API-Key: {token}"', token),
        "lower-case header": (f"{{'authorization': 'token {token}', 'accept': '*/*'}}", token),
        "netrc": (f"machine git.corp.internal\n  login ci-bot\n  password {password}\nmachine other", password),
        "pgpass": (f"$ cat ~/.pgpass\ndb.internal:5432:app:app_rw:{url}\n", url),
        "mysql": (f"$ mysql -h db.internal -u root -p{url} shop < dump.sql", url),
        "sshpass": (f"$ sshpass -p '{password}' ssh ops@10.0.0.8 uptime", password),
        "docker login": (f"docker login registry.corp.internal -u ci -p {token}\nLogin Succeeded", token),
        "redis": (f"redis-cli -h cache.internal -a {url} ping", url),
        "flag": (f'tool create --user admin --password "{password}" --quiet', password),
        "flag with =": (f"helm upgrade app . --set-string auth.token={token} --wait", token),
        "sql": (f"CREATE USER app WITH PASSWORD '{password}';", password),
        "sql identified": (f"ALTER USER 'app'@'%' IDENTIFIED BY '{password}';", password),
        "requests": (f'requests.get(url, auth=("{user}", "{password}"))', password),
        "connection string": (f'"Server=tcp:sql.internal,1433;User ID=sa;Password={url};Encrypt=True;"', url),
        "form": (f"curl -d 'username={user}&password={url}&grant_type=password' https://id.corp.internal", url),
        "query": (f"GET https://api.corp.internal/v1/x?access_token={inventor.alnum(40)}", ""),
        "cookie": (f"> Cookie: theme=dark; sessionid={inventor.chars(string.ascii_lowercase + string.digits, 32)}", ""),
        "aws": (
            f"[default]\naws_access_key_id = AK{'IA'}{inventor.chars(string.ascii_uppercase + '234567', 16)}\n",
            "",
        ),
        "prose": (f"user: the admin password is {password} and the host is staging.corp.internal", password),
    }
    for shape, (text, secret) in lines.items():
        if shape == "aws":
            secret = inventor.chars(ALNUM + "/+", 40)
            text += f"aws_secret_access_key = {secret}\nregion = eu-west-1"
        yield Sample("position", shape, f"{inventor.filler()}\n{text}\n{inventor.filler()}", (secret or _last(text),))
    for scheme in ("postgresql", "mongodb+srv", "rediss", "postgresql+asyncpg", "clickhouse", "https"):
        value = inventor.password().replace("#", "").replace("%", "").replace("@", "")
        yield Sample("url password", scheme, f"DATABASE_URL={scheme}://app_rw:{value}@db.internal:5432/app\n", (value,))
    yield from _blocks(inventor)


def _last(text: str) -> str:
    """What follows the last `=`."""
    return text.rpartition("=")[2]


def _blocks(inventor: Inventor) -> Iterator[Sample]:
    """Private keys and wrapped texts."""
    key = inventor.private_key()
    yield Sample("private key", "file", f"$ cat id\n{key}\n", (key,))
    yield Sample("private key", "escaped", json.dumps({"private_key": key, "type": "service"}), (_escaped(key),))
    indented = key.replace("\n", "\n    ")
    yield Sample("private key", "indented", f"tls:\n  key: |\n    {indented}\nnext: 1\n", (indented,))
    numbered = "\n".join(f"{number:6d}→{line}" for number, line in enumerate(key.split("\n"), 1))
    yield Sample("private key", "numbered", numbered + "\n", (numbered[numbered.index("-") :],))
    cut = "\n".join(key.split("\n")[:4])
    yield Sample("private key", "cut off", f"{cut}\n[output truncated]\n", (cut,))
    wrapped = base64.b64encode(
        f"export GITHUB_TOKEN={inventor.github()}\nexport A={inventor.opaque()}\n".encode()
    ).decode()
    yield Sample("base64", "one line", f"$ base64 -w0 .env\n{wrapped}\n{inventor.filler()}", (wrapped,))
    broken = "\n".join(wrapped[i : i + 76] for i in range(0, len(wrapped), 76))
    yield Sample("base64", "broken lines", f"$ base64 .env\n{broken}\n{inventor.filler()}", (broken,))
    basic = base64.b64encode(f"{inventor.word()}:{inventor.password()}".encode()).decode()
    yield Sample("basic auth", "header", f"> Authorization: Basic {basic}\n> Accept: */*\n", (basic,))
    yield Sample("basic auth", "docker config", f'{{"auths":{{"r.internal":{{"auth":"{basic}"}}}}}}', (basic,))


def negatives(seed: int, copies: int = 8) -> Iterator[Sample]:
    """Yield texts that look like secrets and have none.

    Args:
        seed: makes the values.
        copies: how many of each class with random values.
    """
    inventor = Inventor(seed)
    for _ in range(copies):
        yield from _random_negatives(inventor)
    for text in PLACEHOLDERS:
        yield Sample("placeholder", "", f"{text}\n{inventor.filler()}")
    for text in CODE:
        yield Sample("code", "", f"{inventor.filler()}\n{text}")
    for _ in range(copies):
        yield Sample("trace", "", "\n".join(inventor.filler() for _ in range(8)))


def _random_negatives(inventor: Inventor) -> Iterator[Sample]:
    """Hashes, ids and encoded data."""
    hexes, b64 = inventor.hex, inventor.base64
    message, tool = inventor.alnum(22), inventor.alnum(22)
    fox = base64.b64encode(("the quick brown fox jumps over the lazy dog " * 3).encode()).decode()
    texts = {
        "git log": f"commit {hexes(40)}\nAuthor: Ana <ana@corp.dev>\nindex {hexes(10)}..{hexes(10)} 100644",
        "git refs": f"{hexes(40)}\trefs/heads/main\n{hexes(40)}\trefs/tags/v1.2.0",
        "uuid": f"request_id={inventor.uuid()} session={inventor.uuid()}\ncreated pod/app-{hexes(9)}",
        "image": '{"type":"base64","media_type":"image/png","data":"' + b64(900) + '"}',
        "npm lock": f'"version": "1.3.0",\n  "integrity": "sha512-{b64(64)}"',
        "pip hash": f"requests==2.32.3 \\\n    --hash=sha256:{hexes(64)}",
        "go sum": f"golang.org/x/net v0.30.0 h1:{b64(32)}\ngolang.org/x/net v0.30.0/go.mod h1:{b64(32)}",
        "digests": f"{hashlib.sha256(inventor.bytes(8)).hexdigest()}  dist/app.tar.gz\nDigest: sha256:{hexes(64)}",
        "agent ids": f'{{"id":"msg_01{message}","tool_use_id":"toolu_01{tool}","session_id":"{inventor.uuid()}"}}',
        "paths": f"/nix/store/{hexes(32)}-python3-3.11.9/bin/python3\n/var/lib/docker/overlay2/{hexes(64)}/merged",
        "public key": f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{inventor.alnum(43)} dev@laptop",
        "fingerprint": f"SHA256:{b64(32).rstrip('=')} dev@laptop (ED25519)",
        "certificate": "-----BEGIN CERTIFICATE-----\n" + b64(500) + "\n-----END CERTIFICATE-----",
        "signature": '{"type":"thinking","thinking":"…","signature":"' + b64(180) + '"}',
        "trace ids": f'traceparent: 00-{hexes(32)}-{hexes(16)}-01\nETag: "{hexes(32)}"',
        "cache key": f"Cache restored from key: Linux-node-{hexes(64)}\nkey: v1-deps-{hexes(32)}",
        "cache key name": f"cache-key: {hexes(64)}\nrestore-keys: {hexes(64)}",
        "bundle": f'app.{hexes(8)}.chunk.js\nclassName="css-{inventor.alnum(6)} root-{hexes(4)}"\n--pass: #{hexes(6)};',
        "jwk": f'{{"kid":"{inventor.alnum(20)}","kty":"RSA","n":"{inventor.chars(URL_SAFE, 200)}","e":"AQAB"}}',
        "prose base64": fox,
        "go test": f"=== RUN   TestToken_{hexes(4)}\n--- PASS: TestGetSecret_Rotates/with_{hexes(6)} (0.00s)\nPASS",
        "react key": f'<Row key="row-{hexes(8)}" data-key="{hexes(24)}" tokenId="{hexes(8)}">',
    }
    for kind, text in texts.items():
        yield Sample(kind, "", text)


PLACEHOLDERS = [
    "OPENAI_API_KEY=sk-...",
    "OPENAI_API_KEY=your-api-key-here",
    "export GITHUB_TOKEN=<your token>",
    "password: ${DB_PASSWORD}",
    "password: {{ .Values.db.password }}",
    "Authorization: Bearer $TOKEN",
    'curl -H "Authorization: Bearer ${GITHUB_TOKEN}" https://api.github.com',
    "postgres://user:${PGPASSWORD}@localhost/db",
    "postgres://<user>:<password>@<host>:5432/<db>",
    "postgresql://postgres:postgres@localhost:5432/test",
    "api_key: ${{ secrets.OPENAI_API_KEY }}",
    "PASSWORD=changeme",
    "password=********",
    "token: [REDACTED:github-token]",
    "SECRET_KEY=REPLACE_ME_WITH_A_SECRET",
    'mysql -u root -p"$MYSQL_ROOT_PASSWORD" app',
    "https://user:***@host/path",
    "-----BEGIN PRIVATE " + "KEY-----\nMIIE...\n-----END PRIVATE " + "KEY-----",
    "JWT_SECRET=supersecret-change-in-production",
    'client_secret: "$(CLIENT_SECRET)"',
    'api_key=None, token=""',
]

CODE = [
    "def check_password(raw_password: str, hashed: str) -> bool:\n    return hasher.verify(raw_password, hashed)",
    "self.token = token or self._load_token_from_keyring()",
    "if not api_key:\n    raise ValueError('api_key is required')",
    "const token = await getAccessToken({ scope: 'read:user' });",
    'secret_name = "projects/acme/secrets/db-password/versions/latest"',
    "TOKEN_EXPIRY_SECONDS = 3600\nPASSWORD_RESET_TIMEOUT = 259200",
    "tokenizer = AutoTokenizer.from_pretrained('bert-base-uncased')",
    "input_tokens=18234 output_tokens=912 cache_read_input_tokens=17002",
    "primary_key = 'order_id_2024'; cache_key = f\"user:{user_id}:v2:profile\"",
    "assert client.post('/login', json={'username': 'alice', 'password': 'wrong-password'}).status_code == 401",
    "kubectl create secret generic app --from-literal=key=value",
    "The password reset flow sends a token by email and the secret is hashed with argon2.",
    "user_password = User.objects.get(pk=1).password",
    "password: str = Field(min_length=12)",
    "encryption_key_id = 'alias/app-data'\nprivate_key_path: /etc/ssl/private/server.key",
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/app/db-a1B2c3",
    "passwd: files systemd\nroot:x:0:0:root:/root:/bin/bash",
    "accessKeyId: process.env.AWS_ACCESS_KEY_ID",
    "idempotency_key=order-2026-11-12-000182\nsort_key: created_at#2026-11-12T09:14:02Z",
    "key: Ed25519PrivateKey | Ed448PrivateKey\npassword: PasswordType2 | None",
    "| `token` | the access token, at most 3600 seconds old |\n| `password` | string, 12 characters |",
    "the key is session_start and the token limit is 4096tokens; the secret is in the vault",
    "#define aes128_set_key nettle_aes128_set_key\nunique_ptr<RepeatedPass::PassConceptT>",
    "merge-base=origin/20260206-secrets-redaction",
]
