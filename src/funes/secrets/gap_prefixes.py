"""Self-identifying tokens: formats that a vendor documents, recognised by their prefix wherever they stand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenRule:
    """One vendor's token format.

    Attributes:
        name: name of the rule.
        literals: what the token starts with; each is tried. With `lead`, what stands behind the lead.
        body: pattern of the characters that follow the literal.
        source: where the vendor describes the format.
        lead: pattern of what must stand before the literal and belongs to the token.
    """

    name: str
    literals: tuple[str, ...]
    body: str
    source: str
    lead: str = ""


_WORD = r"[A-Za-z0-9_\-]"
_ALNUM = r"[A-Za-z0-9]"
_HEX = r"[0-9a-f]"

TOKEN_RULES: tuple[TokenRule, ...] = (
    # ------------------------------------------------------------------ source hosting and packages
    TokenRule("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _ALNUM + "{36,}", "GitHub docs: token formats"),
    TokenRule(
        "github-fine-grained-token", ("github_pat_",), r"[A-Za-z0-9]{22}_[A-Za-z0-9]{59}", "GitHub docs: token formats"
    ),
    TokenRule(
        "gitlab-token",
        tuple(
            f"gl{kind}-"
            for kind in ("pat", "dt", "rt", "rtr", "ft", "soat", "agent", "ptt", "imt", "cbt", "oas", "ffct")
        ),
        _WORD + r"{20,}(?:\.[0-9a-z.]{8,})?",
        "GitLab docs: token overview, token prefixes",
    ),
    TokenRule("npm-token", ("npm_",), _ALNUM + "{36}", "npm docs: about access tokens"),
    TokenRule("pypi-token", ("pypi-AgE",), _WORD + "{50,}", "PyPI help: API tokens"),
    TokenRule("rubygems-key", ("rubygems_",), _HEX + "{48}", "RubyGems guides: API key scopes"),
    TokenRule("crates-io-token", ("cio",), _ALNUM + r"{32}(?![A-Za-z0-9])", "crates.io source: token prefix"),
    TokenRule("docker-token", ("dckr_pat_", "dckr_oat_"), _WORD + "{27,}", "Docker docs: access tokens"),
    TokenRule("artifactory-key", ("AKCp",), _ALNUM + "{60,}", "JFrog docs: API keys"),
    TokenRule(
        "sourcegraph-token", ("sgp_",), r"(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}", "Sourcegraph docs: access tokens"
    ),
    TokenRule("gitea-token", ("gto_",), _WORD + "{36,}", "Gitea docs: OAuth2 provider"),
    # ------------------------------------------------------------------ models
    TokenRule(
        "openai-key",
        ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"),
        _WORD + "{40,}",
        "OpenAI platform docs: API keys",
    ),
    TokenRule(
        "openai-legacy-key", ("T3BlbkFJ",), _ALNUM + "{20}", "OpenAI platform docs: API keys", lead="sk-[A-Za-z0-9]{20}"
    ),
    TokenRule("anthropic-key", ("sk-ant-",), r"[a-z]{3,8}[0-9]{2}-[A-Za-z0-9_\-]{60,}", "Anthropic docs: API keys"),
    TokenRule("openrouter-key", ("sk-or-v1-",), _HEX + "{64}", "OpenRouter docs: authentication"),
    TokenRule("sk-hex-key", ("sk-",), _HEX + r"{32}(?![0-9a-f])", "DeepSeek API docs"),
    TokenRule(
        "langfuse-secret-key", ("sk-lf-",), r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "Langfuse docs: API keys"
    ),
    TokenRule("huggingface-token", ("hf_", "api_org_"), "[A-Za-z]{34,}", "Hugging Face docs: user access tokens"),
    TokenRule("groq-key", ("gsk_",), _ALNUM + "{48,}", "Groq docs: API keys"),
    TokenRule("xai-key", ("xai-",), _ALNUM + "{70,}", "xAI docs: API keys"),
    TokenRule("replicate-token", ("r8_",), _ALNUM + "{37,}", "Replicate docs: API tokens"),
    TokenRule("perplexity-key", ("pplx-",), _ALNUM + "{40,}", "Perplexity docs: API keys"),
    TokenRule("pinecone-key", ("pcsk_",), r"[A-Za-z0-9]{5,}_[A-Za-z0-9]{40,}", "Pinecone docs: API keys"),
    TokenRule("tavily-key", ("tvly-",), r"[A-Za-z0-9\-]{20,}", "Tavily docs: API keys"),
    TokenRule("langsmith-key", ("lsv2_pt_", "lsv2_sk_"), _HEX + "{32}_" + _HEX + "{10}", "LangSmith docs: API keys"),
    TokenRule("elevenlabs-key", ("sk_",), _HEX + "{48}", "ElevenLabs docs: authentication"),
    TokenRule("wandb-key", ("wandb_v1_",), r"[A-Za-z0-9_]{40,}", "Weights & Biases docs: API keys"),
    TokenRule("nvidia-key", ("nvapi-",), _WORD + "{60,}", "NVIDIA NGC docs: API keys"),
    TokenRule("fireworks-key", ("fw_",), _ALNUM + "{22,}", "Fireworks docs: API keys"),
    # ------------------------------------------------------------------ clouds
    TokenRule("google-api-key", ("AIza",), _WORD + "{35}", "Google Cloud docs: API keys"),
    TokenRule("google-client-secret", ("GOCSPX-",), _WORD + "{28}", "Google Cloud docs: OAuth clients"),
    TokenRule("google-access-token", ("ya29.",), r"[A-Za-z0-9_\-.]{40,}", "Google docs: OAuth 2.0 access tokens"),
    TokenRule("google-refresh-token", ("1//0",), _WORD + "{40,}", "Google docs: OAuth 2.0 refresh tokens"),
    TokenRule(
        "aws-session-token", ("IQoJb3JpZ2lu", "FwoGZXIvYXdz"), r"[A-Za-z0-9+/=]{100,}", "AWS STS: session tokens"
    ),
    TokenRule("aws-bedrock-key", ("ABSK",), r"[A-Za-z0-9+/]{109,269}={0,2}", "AWS docs: Amazon Bedrock API keys"),
    TokenRule(
        "azure-client-secret",
        ("Q~",),
        r"[A-Za-z0-9_~.\-]{31,34}",
        "Microsoft Entra docs: client secrets",
        lead=r"[A-Za-z0-9_~.]{3}\d",
    ),
    TokenRule(
        "databricks-token", ("dapi",), _HEX + r"{32}(?:-\d)?(?![0-9a-f])", "Databricks docs: personal access tokens"
    ),
    TokenRule("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), _HEX + "{64}", "DigitalOcean docs: API tokens"),
    TokenRule("heroku-key", ("HRKU-",), _WORD + "{36,}", "Heroku dev center: API key formats"),
    TokenRule(
        "fly-token",
        ("fm1_", "fm1a_", "fm1r_", "fm2_"),
        r"[A-Za-z0-9+/=_,\-]{100,}",
        "Fly.io docs: access tokens",
        lead="(?:FlyV1 )?",
    ),
    TokenRule("netlify-token", ("nfp_", "nfc_", "nfu_", "nfo_"), _WORD + "{36,}", "Netlify docs: access tokens"),
    TokenRule("supabase-token", ("sbp_",), _HEX + "{40}", "Supabase docs: access tokens"),
    TokenRule("supabase-secret-key", ("sb_secret_",), _WORD + "{24,}", "Supabase docs: API keys"),
    TokenRule("cloudflare-token", ("cfut_", "cfat_", "cfk_"), _ALNUM + "{40,}", "Cloudflare docs: token formats"),
    TokenRule(
        "planetscale-token",
        ("pscale_tkn_", "pscale_oauth_", "pscale_pw_"),
        r"[A-Za-z0-9_\-.=]{32,}",
        "PlanetScale docs: service tokens",
    ),
    TokenRule(
        "terraform-token",
        (".atlasv1.",),
        r"[A-Za-z0-9_\-=]{60,}",
        "HCP Terraform docs: API tokens",
        lead=_ALNUM + "{14}",
    ),
    TokenRule("pulumi-token", ("pul-",), _HEX + "{40}", "Pulumi docs: access tokens"),
    TokenRule("vault-token", ("hvs.", "hvb.", "hvr."), _WORD + "{24,}", "Vault docs: token prefixes"),
    TokenRule(
        "doppler-token",
        tuple(f"dp.{kind}." for kind in ("pt", "st", "ct", "sa", "scim", "audit")),
        r"(?:[a-z0-9_\-]{1,64}\.)?[A-Za-z0-9]{40,}",
        "Doppler docs: token formats",
    ),
    TokenRule(
        "age-secret-key", ("AGE-SECRET-KEY-1",), "[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}", "age: README, key format"
    ),
    TokenRule("onepassword-token", ("ops_ey",), r"[A-Za-z0-9+/=_\-]{200,}", "1Password docs: service accounts"),
    TokenRule(
        "tailscale-key",
        ("tskey-",),
        r"[a-z]{2,12}-[A-Za-z0-9]{6,}(?:CNTRL)?-[A-Za-z0-9]{20,}",
        "Tailscale docs: auth keys",
    ),
    # ------------------------------------------------------------------ messages and mail
    TokenRule(
        "slack-token",
        (*(f"xox{kind}-" for kind in "abeoprs"), "xoxe.xoxp-", "xoxe.xoxb-"),
        r"[A-Za-z0-9\-]{20,}",
        "Slack docs: token types",
    ),
    TokenRule("slack-app-token", ("xapp-",), r"\d-[A-Z0-9]{8,}-\d{6,}-[0-9a-f]{40,}", "Slack docs: app-level tokens"),
    TokenRule(
        "slack-webhook",
        ("https://hooks.slack.com/",),
        r"(?:services|workflows|triggers)/[A-Za-z0-9_/+]{30,}",
        "Slack docs: incoming webhooks",
    ),
    TokenRule(
        "discord-webhook",
        ("/api/webhooks/",),
        r"\d{17,20}/[A-Za-z0-9_\-]{60,}",
        "Discord docs: webhooks",
        lead=r"https://(?:\w{1,12}\.)?discord(?:app)?\.com",
    ),
    TokenRule(
        "discord-bot-token",
        (".",),
        _WORD + r"{6}\.[A-Za-z0-9_\-]{27,40}",
        "Discord docs: authentication",
        lead=r"[MNO][A-Za-z0-9_\-]{23,27}",
    ),
    TokenRule(
        "telegram-bot-token",
        (":AA",),
        _WORD + r"{33}(?![A-Za-z0-9_\-])",
        "Telegram docs: bot API, authorizing",
        lead=r"\d{8,10}",
    ),
    TokenRule("twilio-key", ("SK",), _HEX + r"{32}(?![0-9a-f])", "Twilio docs: API keys"),
    TokenRule("sendgrid-key", ("SG.",), _WORD + r"{22}\.[A-Za-z0-9_\-]{43}", "SendGrid docs: API keys"),
    TokenRule("mailgun-key", ("key-",), _HEX + r"{32}(?![0-9a-f])", "Mailgun docs: authentication"),
    TokenRule("mailchimp-key", ("-us",), r"\d{1,2}(?![0-9A-Za-z])", "Mailchimp docs: API keys", lead=_HEX + "{32}"),
    TokenRule("resend-key", ("re_",), _ALNUM + "{8}_" + _ALNUM + "{22,}", "Resend docs: API keys"),
    # ------------------------------------------------------------------ payments and shops
    TokenRule(
        "stripe-key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), _ALNUM + "{20,}", "Stripe docs: API keys"
    ),
    TokenRule(
        "signing-secret", ("whsec_",), r"[A-Za-z0-9+/=]{24,}", "Stripe docs: webhook signatures; Standard Webhooks"
    ),
    TokenRule(
        "shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), "[0-9a-fA-F]{32}", "Shopify docs: access token types"
    ),
    TokenRule("square-token", ("EAAA", "sq0atp-", "sq0csp-"), _WORD + "{22,}", "Square docs: access tokens"),
    # ------------------------------------------------------------------ tools
    TokenRule(
        "newrelic-key",
        tuple(f"NR{kind}-" for kind in ("AK", "II", "AA", "IQ", "BR", "JS")),
        _WORD + "{20,}",
        "New Relic docs: API keys",
    ),
    TokenRule("grafana-token", ("glsa_", "glc_"), r"[A-Za-z0-9_=+/]{32,}", "Grafana docs: service account tokens"),
    TokenRule("sentry-token", ("sntryu_", "sntrys_"), r"[A-Za-z0-9+/=_\-]{40,}", "Sentry docs: auth tokens"),
    TokenRule("linear-key", ("lin_api_", "lin_oauth_"), _ALNUM + "{32,}", "Linear docs: API and webhooks"),
    TokenRule("notion-token", ("ntn_", "secret_"), _ALNUM + "{40,}", "Notion docs: authorization"),
    TokenRule(
        "airtable-token", (".",), _HEX + "{64}", "Airtable docs: personal access tokens", lead="pat[A-Za-z0-9]{14}"
    ),
    TokenRule("figma-token", ("figd_",), _WORD + "{36,}", "Figma docs: personal access tokens"),
    TokenRule("postman-key", ("PMAK-",), _HEX + "{24}-" + _HEX + "{34}", "Postman docs: API keys"),
    TokenRule("sonar-token", ("squ_", "sqa_", "sqp_"), _HEX + "{40}", "SonarQube docs: tokens"),
    TokenRule("atlassian-token", ("ATATT3", "ATCTT3", "ATBB"), r"[A-Za-z0-9_\-=]{24,}", "Atlassian docs: API tokens"),
    TokenRule("circleci-token", ("CCIPAT_", "CCIPRJ_"), r"[A-Za-z0-9]{20,}_[0-9a-f]{40}", "CircleCI docs: API tokens"),
    TokenRule("buildkite-token", ("bkua_", "bkaj_", "bkat_"), _HEX + "{40}", "Buildkite docs: API access tokens"),
    TokenRule("posthog-key", ("phx_", "phs_"), _ALNUM + "{40,}", "PostHog docs: personal API keys"),
    TokenRule("contentful-token", ("CFPAT-",), _WORD + "{43}", "Contentful docs: personal access tokens"),
    TokenRule(
        "dynatrace-token",
        ("dt0c01.", "dt0s01.", "dt0s02.", "dt0s16."),
        r"[A-Z0-9]{24}\.[A-Z0-9]{64}",
        "Dynatrace docs: access tokens",
    ),
    TokenRule(
        "json-web-token", ("eyJ",), r"[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{20,}", "RFC 7519"
    ),
)
"""All formats. A body without an upper bound is read to its end once the token is accepted."""
