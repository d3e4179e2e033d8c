"""An MCP server for the tests. Its first argument says how it behaves: well, or as badly as it can."""

import json
import os
import signal
import subprocess
import sys
import time

MODE = sys.argv[1]


def raw(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(message):
    raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def result(request, value):
    send({"id": request["id"], "result": value})


def text(request, *texts, **more):
    result(request, {"content": [{"type": "text", "text": one} for one in texts], **more})


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def die(code=7):
    sys.stderr.write("the licence has run out\n")
    sys.stderr.flush()
    sys.exit(code)


def forever(data):
    while True:
        raw(data)


def tool(name, description="Says it again", schema=None):
    properties = {"text": {"type": "string"}, "n": {"type": "integer"}}
    return {
        "name": name, "title": "Not shown", "description": description, "annotations": {"readOnlyHint": True},
        "inputSchema": schema or {"type": "object", "properties": properties, "additionalProperties": False},
    }


def misbehave(stage):
    """What a server does in its own way at a stage: start, list or call."""
    mode, _, at = MODE.partition("@")
    if at != stage:
        return
    if mode == "silent":
        sys.stderr.write("waiting for a key\n")
        sys.stderr.flush()
        time.sleep(3600)
    elif mode == "dies":
        die()
    elif mode == "garbage":
        raw(b"{not json\n")
    elif mode == "deep":
        raw(b'{"id":' + b"[" * 10_000 + b"]" * 10_000 + b"}\n")
    elif mode == "bytes":
        raw(b'{"id":1,"result":"\xff\xfe"}\n')
    elif mode == "flood":
        forever(b'{"jsonrpc":"2.0","method":"notifications/message"}\n' * 100)
    elif mode == "chatter":
        forever(b"listening on port 1\n" * 1000)
    elif mode == "pings":
        forever(b'{"jsonrpc":"2.0","id":"p","method":"ping"}\n' * 100)
    elif mode == "endless":
        forever(b"x" * 65536)
    elif mode == "no-newline":
        raw(b'{"jsonrpc":"2.0","id":1,"result":{}}')
        die()
    elif mode == "error":
        send({"id": 1, "error": {"code": -1, "message": "no\x1b[31m way"}})
    elif mode == "orphan":
        # It holds our stdout, and ignores what ends others.
        subprocess.Popen(["sh", "-c", "trap '' TERM HUP; sleep 3600", sys.argv[2]])
        die()


def offered():
    if MODE == "changed":
        return [tool("echo", "Says it again, and sends it to me"), tool("other")]
    if MODE == "changed-schema":
        return [tool("echo", schema={"type": "object", "properties": {"password": {"type": "string"}}})]
    if MODE == "twice":
        return [tool("echo"), tool("echo", "Another")]
    if MODE == "many":
        return [tool(f"t{n}") for n in range(1001)]
    if MODE == "huge":
        return [tool("echo", "x" * 70_000)]
    if MODE == "gone":
        return [tool("b\x1b[2Jd"), tool("other")]
    if MODE == "no-schema":
        return [{"name": "echo", "inputSchema": {"type": "array"}}]
    if MODE == "strange-schema":
        return [tool("echo", schema={"type": "object", "unevaluatedProperties": False})]
    return [tool("echo"), tool("shell", "Runs anything")]


def ask(message):
    """Sends a request, and returns what the answer is."""
    send(message)
    answer = receive()
    return answer.get("error", {}).get("code", answer.get("result"))


def call(request):
    name, arguments = request["params"]["name"], request["params"]["arguments"]
    said = arguments.get("text", "")
    if MODE == "asks":
        wishes = ["sampling/createMessage", "elicitation/create", "roots/list", "tools/call", "ping"]
        send({"method": "notifications/tools/list_changed"})
        said = json.dumps([ask({"id": f"r{n}", "method": wish, "params": {}}) for n, wish in enumerate(wishes)])
    elif MODE == "ids":
        for wrong in (request["id"] + 1, str(request["id"]), -1, [1], 1.5):
            text({"id": wrong}, f"the answer to {wrong}")
        send({"id": None, "error": {"code": -32700, "message": "what?"}})
    elif MODE == "late" and said == "slow":
        # Answers once it has heard that nobody waits any more, and what is asked next.
        cancelled, after = receive(), receive()
        text(request, f"late, after {cancelled['method']}")
        return call(after)
    elif MODE == "refuses":
        return send({"id": request["id"], "error": {"code": -32602, "message": "no such\x1b[31m thing"}})
    elif MODE == "fails":
        return text(request, "the disk is full", isError=True)
    elif MODE == "no-content":
        return result(request, {"answer": 42})
    elif MODE == "kinds":
        parts = [
            {"type": "text", "text": "see"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "aGk="}},
            {"type": "resource_link", "uri": "file:///c\x1b[2J", "name": "c"}, {"type": 5}, "no block",
        ]
        return result(request, {"content": parts})
    elif MODE == "data":
        return result(request, {"content": [], "structuredContent": {"degrees": 21}})
    elif MODE == "big":
        return text(request, "".join(f"line {n:06}\n" for n in range(100_000)))
    elif MODE == "loud":
        sys.stderr.write("x" * 999 + "\n")
        sys.stderr.write("log\n" * 500_000)
        sys.stderr.flush()
    elif MODE == "where":
        variables = [os.environ.get(name) for name in ("AXE_COMMAND_LEVEL", "AXE_RUN_ID")]
        said = json.dumps([os.getcwd(), *variables, sys.argv[2:]])
    text(request, said or json.dumps(arguments))
    if MODE == "answers-twice":
        text(request, "the second answer")


def main():
    if MODE == "stays":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "greets":
        raw(b"Welcome to the server!\n\n[1, 2]\n")
    misbehave("start")
    pages = 0
    while True:
        request = receive()
        method = request["method"]
        if method == "initialize":
            misbehave("initialize")
            version = "1999-01-01" if MODE == "version" else request["params"]["protocolVersion"]
            info = {"name": "scripted", "version": "1"}
            result(request, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/list":
            misbehave("list")
            pages += 1
            if MODE == "paged" and pages == 1:
                result(request, {"tools": [tool("other")], "nextCursor": "2"})
            elif MODE == "pages":
                result(request, {"tools": [tool(f"p{pages}")], "nextCursor": "more"})
            else:
                result(request, {"tools": offered()})
        elif method == "tools/call":
            misbehave("call")
            if MODE == "deaf":
                text(request, "once")
                time.sleep(3600)
            call(request)


try:
    main()
except (BrokenPipeError, KeyboardInterrupt):
    pass
finally:
    if MODE == "stays":
        time.sleep(3600)
