"""Real MCP servers as tools of an agent: a person accepts what they offer, and a scripted model calls it.

Each call's result, as it came back to the model server, must be what the server does. A tool that the agent's file does not
list is not offered and not called, a server ends with the run, and one that says something else than was accepted is refused.
"""

import json
import os
import pty
import re
import subprocess

PACKAGES = {
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31",
}
# Server, its words, the tools that are listed.
SERVERS = [
    ("fs", ["mcp-server-filesystem", "WORK"], ["read_text_file", "write_file"]),
    ("all", ["mcp-server-everything"], ["echo", "get-sum", "get-tiny-image", "get-structured-content"]),
    ("kg", ["mcp-server-memory"], ["create_entities", "read_graph"]),
]
ENTITY = {"name": "axe", "entityType": "tool", "observations": ["sharp"]}
# Tool, arguments, what must be in its result.
CALLS = [
    ("fs_write_file", {"path": "WORK/a.txt", "content": "written by a server"}, "Successfully wrote"),
    ("fs_read_text_file", {"path": "WORK/a.txt"}, "written by a server"),
    ("fs_read_text_file", {"path": "/etc/passwd"}, "outside allowed directories"),
    ("fs_read_text_file", {"path": 5}, "the arguments are not valid"),
    ("fs_list_directory", {"path": "WORK"}, "Unknown tool"),
    ("all_echo", {"message": "hello"}, "hello"),
    ("all_get-sum", {"a": 2, "b": 40}, "42"),
    ("all_get-tiny-image", {}, "[image left out]"),
    ("all_get-structured-content", {"location": "Chicago"}, "temperature"),
    ("kg_create_entities", {"entities": [ENTITY]}, "sharp"),
    ("kg_read_graph", {}, "sharp"),
]


def on_terminal(command, env, cwd, typed):
    """Runs a command on a terminal of its own, answers its question, and returns its exit code and what it showed."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(cwd)
        os.execve(command[0], command, env)
    shown = b""
    while True:
        try:
            more = os.read(terminal, 65536)
        except OSError:
            break
        if not more:
            break
        shown += more
        if typed and b"[y/N] " in shown:
            os.write(terminal, typed)
            typed = b""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown.decode(errors="replace")


def check(home, server, bins, path, expect):
    work = home / "work"
    work.mkdir(parents=True)
    agents = home / ".config/axe/agents"
    agents.mkdir(parents=True)

    def tables(more=""):
        for name, words, tools in SERVERS:
            words = [word.replace("WORK", str(work)) for word in words]
            yield f"[mcp.{name}]\ncommand = {json.dumps(words)}\ntools = {json.dumps(tools)}\n{more}"

    agent = agents / "a.toml"
    agent.write_text("name = 'a'\nmodel = 'anthropic/m'\n" + "".join(tables()))
    env = {
        "HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "ANTHROPIC_API_KEY": "k",
        "AXE_ANTHROPIC_BASE_URL": server.url, "MEMORY_FILE_PATH": str(home / "graph.jsonl"),
    }

    def run(*words):
        done = subprocess.run(
            [str(bins / "axe-run"), "--no-stdin", "-p", "x", "a", *words], cwd=work, env=env, capture_output=True,
            text=True, timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    calls = [(name, json.loads(json.dumps(given).replace("WORK", str(work)))) for name, given, _ in CALLS]
    left = list(calls)
    server.hands = lambda body: [left.pop(0)] if left else []

    code, _, err = run()
    expect(code == 2 and "axe-agents accept a" in err, f"servers that nobody accepted: exit {code}, {err}")
    expect(server.take() == [], "a model was asked before that")
    accept = [str(bins / "axe-agents"), "accept", "a"]
    code, shown = on_terminal(accept, env, work, b"n\n")
    expect(code == 1 and "nothing was accepted" in shown, f"a person who declines: exit {code}, {shown}")
    code, shown = on_terminal(accept, env, work, b"y\n")
    expect(code == 0 and "fs: write_file (new)" in shown, f"accept: exit {code}, {shown}")

    code, out, err = run("--json")
    expect(code == 0, f"a run: exit {code}, {err}")
    bodies = [body for _, body in server.take()]
    offered = [tool["name"] for tool in bodies[0]["tools"]]
    listed = sorted(f"{name}_{tool}" for name, _, tools in SERVERS for tool in tools)
    expect(sorted(offered) == listed, f"the model was offered {offered}")
    results = [
        block["content"] for message in bodies[-1]["messages"] if isinstance(message["content"], list)
        for block in message["content"] if block["type"] == "tool_result"
    ]
    expect(len(results) == len(CALLS), f"{len(results)} results")
    for (name, given, words), result in zip(CALLS, results):
        expect(words in result, f"{name} {given}: {result}")
    details = json.loads(out)["tool_details"]
    expect([one["name"] for one in details] == [name for name, _, _ in CALLS], f"the output has {details}")
    left_running = subprocess.run(["pgrep", "-f", str(home)], capture_output=True, text=True).stdout
    expect(left_running == "", f"servers outlived the run: {left_running}")

    pinned = agents / "a.mcp.json"
    pinned.write_text(re.sub("Echoes", "Echoed", pinned.read_text()))
    code, _, err = run()
    expect(code == 2 and "has changed what it says of its tool" in err, f"a changed server: exit {code}, {err}")
    code, shown = on_terminal(accept, env, work, b"y\n")
    expect(code == 0 and "CHANGED" in shown and "- Echoed" in shown and "+ Echoes" in shown, f"a change: {shown}")
    code, _, err = run()
    expect(code == 0, f"after that: exit {code}, {err}")
    return f"{len(CALLS)} calls of {len(SERVERS)} servers"
