"""What invented sessions talk about: components, symptoms, causes and decisions, each with a second wording.

The second wording shares few words with the first one, so that a question made of it is not answered by looking for
its words alone.
"""

from __future__ import annotations

_QUALITIES = (
    "archive billing blob calendar catalog checkout cluster consent courier credit crawler cursor dashboard delta "
    "digest dispatch draft edge email enrolment event export feature feed fleet forecast gateway geo grant header "
    "history identity image import incident index intake invoice journal kernel label ledger license locale loyalty "
    "mailbox mapping market media menu message meter mobile notice offer order partner payment payout peer permit"
)
_PARTS = (
    "adapter aggregator allocator auditor batcher broker builder cache checker cleaner client collector compactor "
    "compiler controller converter daemon decoder encoder exporter fetcher filter formatter generator guard handler "
    "hasher importer indexer inspector linker listener loader locker logger mapper matcher merger migrator monitor "
    "notifier optimizer parser planner poller pool printer processor proxy publisher queue reader reconciler recorder "
    "relay renderer replicator reporter resolver retrier router runner sampler scheduler"
)
QUALITIES = _QUALITIES.split()
PARTS = _PARTS.split()
LANGUAGES = (("go", "go test ./..."), ("py", "pytest -q"), ("rs", "cargo test"), ("ts", "npm test"))

SYMPTOMS = (
    ("drops the last record of a batch", "lose the final entry whenever several arrive together"),
    ("hangs for a minute at start-up", "take so long before it answered for the first time"),
    ("reports every total twice", "show doubled sums"),
    ("leaks a file handle on each retry", "run out of descriptors after a while"),
    ("ignores the configured time zone", "print hours that belong to another region"),
    ("answers with stale rows after a deploy", "serve outdated data right after we shipped"),
    ("crashes on an empty payload", "fall over when it was sent nothing"),
    ("stops after exactly 1,000 items", "never get past the first thousand entries"),
    ("sends the same notice again", "bother people with repeated messages"),
    ("deadlocks when two workers start together", "freeze if launched in parallel"),
    ("rounds amounts to whole units", "forget the cents"),
    ("rejects names with accents", "refuse anything spelled with diacritics"),
    ("writes its log to the wrong folder", "put its diary somewhere nobody looked"),
    ("fails only on the build server", "break in CI while it was fine on laptops"),
    ("grows its memory until it is killed", "eat all RAM overnight"),
    ("sorts the newest entry last", "list things in reversed order"),
    ("forgets the session after a redirect", "sign people out when they were sent elsewhere"),
    ("times out on large uploads", "give up on big files"),
    ("shows yesterday's numbers until noon", "be half a day behind"),
    ("retries a request that was refused for good", "keep asking after a definite no"),
    ("cuts text in the middle of a character", "garble letters at the limit"),
    ("locks the table during a backup", "block writers every night"),
    ("skips files that are symbolic links", "overlook anything that was linked"),
    ("loses its settings on upgrade", "go back to factory defaults with a new release"),
)
CAUSES = (
    "the loop compared with the capacity and not with the length",
    "the lookup waited for a resolver that the container does not have",
    "both the old and the new listener were registered",
    "the deferred close ran only when the first attempt succeeded",
    "the formatter was built before the settings were read",
    "the key left the schema version out",
    "the decoder took a missing body for a broken one",
    "the page size of the upstream interface is a hard limit and the cursor was dropped",
    "the acknowledgement was written after the worker had been restarted",
    "the two locks were taken in opposite order",
    "the column was declared as an integer in the first migration",
    "the pattern allowed only ASCII letters",
    "the path was resolved against the caller's directory",
    "the test relied on the order of a hash map",
    "every subscriber kept a copy of the whole snapshot",
    "the comparison function returned a boolean where a sign was expected",
    "the cookie was set for the bare domain only",
    "a proxy in front closes connections after thirty seconds",
    "the nightly job used the clock of the database and the query that of the client",
    "the client treated every status above 399 alike",
)
DECISIONS = (
    "we keep the old format and write a converter, because partners read it directly",
    "we turn the feature off by default until two releases have passed without a report",
    "we accept the cost of a full scan, since the table never has more than a few thousand rows",
    "we pin the dependency and do not fork it, because the maintainer promised a fix",
    "we delete the fallback, for it hid the fault for months",
    "we move the check to the writer, so that readers stay simple",
    "we leave the name as it is although it misleads, because three dashboards depend on it",
    "we retry four times with jitter and then park the message for a person",
    "we store amounts in cents everywhere and convert at the border",
    "we split the job in two so that the slow half can fail alone",
    "we refuse to start without the setting, rather than guess one",
    "we take the lock per tenant and not per row, measured twice as fast",
    "we do not cache this, because a wrong answer costs more than a slow one",
    "we document the limit and do not lift it",
    "we give each worker its own connection and no pool",
    "we compare by content hash and no longer by time stamp",
)
REMARKS = (
    "Let me look at how {component} is wired up before changing anything.",
    "The tests around {component} cover the happy path only, so I will add a case that fails first.",
    "I read `{file}`; the interesting part is the function `{function}`, which {component} calls on every pass.",
    "That narrows it down: with {number} items it works, with {number2} it does not.",
    "I compared the output before and after; {number} lines differ, all of them in the trailer.",
    "This is unrelated to the change of last week, since the older build behaves the same.",
    "Before I go on: `{function}` is also used by the nightly job, so its signature has to stay.",
    "The measurement took {number} ms before and {number2} ms after, on the same machine.",
    "I would rather not touch `{file}` in the same commit, since it needs a review of its own.",
    "There is a second caller in `{file}` that passes a null value; it is harmless but confusing.",
    "The documentation says otherwise, so I checked the running system: the documentation is out of date.",
    "I have kept the public interface of {component} as it was and changed only what is behind it.",
    "All {number} tests pass now, and the one that failed before fails again when I revert the change.",
    "Two things are left: a note in the changelog, and the alert threshold, which is set for the old behaviour.",
    "I looked for the same pattern elsewhere and found it {number} more times; none of those is reachable.",
)
REQUESTS = (
    "{component} {symptom}. Can you find out why?",
    "We got a report that {component} {symptom}. Please have a look and fix it.",
    "Something is off: {component} {symptom}, since about a week. What changed?",
)
FOLLOW_UPS = (
    "Go on, and keep the change small.",
    "Yes, do that. Also make sure the other callers are fine.",
    "OK. Is there a test for it?",
    "Good, but please do not rename anything.",
    "What would it cost to do it properly?",
    "Fine. Write it down in the changelog as well.",
)
