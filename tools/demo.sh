#!/usr/bin/env bash
# Index the example sessions into a throw-away memory and recall from it. Run by `make demo`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

FUNES_HOME=$(mktemp -d "${TMPDIR:-/tmp}/funes-demo.XXXXXX")
export FUNES_HOME
trap 'rm -rf "$FUNES_HOME"' EXIT
PATH="$PWD/.venv/bin:$PATH"

# Show a command as one would type it, then run it.
run() {
    local word shown="funes"
    for word in "$@"; do
        case $word in
        *" "*) shown+=" \"$word\"" ;;
        *) shown+=" $word" ;;
        esac
    done
    printf '\n$ %s\n' "$shown"
    funes "$@"
}

run models pull || echo "Going on without the model: recall by words alone."
run index examples/sessions --yes
run recall "did an index help the slow chart?" -k 1
run recall "why was MQTT thrown out?" -k 2
run recall "what did we decide about the transport in late September 2026?" -k 1
run recall "how do members want times and heights shown" -k 1 --until 2026-09-30

# The first hit names the command that shows its turn whole.
hit=$(funes recall "why was MQTT thrown out?" -k 1 --format agent 2>/dev/null)
read -r _ _ session turn _ <<<"$(grep -m 1 -- '→ get' <<<"$hit")"
run get "$session" "$turn" --window 1

printf '\nThis memory was made in %s and is removed now. Next: funes index\n' "$FUNES_HOME"
