"""An MCP server whose tool does what the query says: `die`, `sleep`, `fail`, `noise`; else it says what came."""

import json
import os
import sys
import time

for line in sys.stdin:
    message = json.loads(line)
    with open(os.environ["STAND_IN_LOG"], "a") as log:
        log.write(line)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "tools/call":
        arguments = message["params"]["arguments"]
        query = arguments.get("query")
        if query == "die":
            sys.exit(3)
        if query == "sleep":
            time.sleep(60)
        if query == "noise":
            print("not the protocol's")
        text = "no such thing" if query == "fail" else f"{os.getpid()} {json.dumps(arguments)}"
        result = {"content": [{"type": "text", "text": text}], "isError": query == "fail"}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
