"""memory-mcp in the programs that start it: a scripted model calls its tools, and what comes back must be the notes.

The inspector of the protocol's authors is one client, the coding agents are the others. A note of the person is found, and what the
agent captures is queued as that agent's.
"""

import json
import subprocess

import hands

SERVED = ("claude-code", "codex", "gemini")
INSPECTOR = {"@modelcontextprotocol/inspector": "2.12.0"}
FACT = "The dev server listens on port 4310."
TITLE = "Learned by a tool"


def add(harness, home, server):
    """Adds the server to a program's settings; what else it needs on the command line."""
    entry = {"agent-memory": {"command": str(server), "args": []}}
    if harness == "claude-code":
        (home / "mcp.json").write_text(json.dumps({"mcpServers": entry}))
        return ["--mcp-config", str(home / "mcp.json"), "--allowedTools", "mcp__agent-memory", "--"]
    if harness == "gemini":
        path = home / ".gemini/settings.json"
        settings = json.loads(path.read_text()) | {"mcpServers": {"agent-memory": entry["agent-memory"] | {"trust": True}}}
        path.write_text(json.dumps(settings))
        return []
    path = home / ".codex/config.toml"
    path.write_text(f'{path.read_text()}\n[mcp_servers.agent-memory]\ncommand = "{server}"\ndefault_tools_approval_mode = "approve"\n')
    return []


def check(world, bins, expect):
    program, home = world.program, world.home
    world.run([bins / "memory-uninstall-hooks"])
    world.run([bins / "memory-capture", "--direct", "--title", "Dev server", "--body", FACT])
    # Claude Code would let the model search for the tools first.
    world.env["ENABLE_TOOL_SEARCH"] = "false"
    more = add(program.harness, home, bins / "memory-mcp")
    left, offered = ["search", "capture"], []
    given = {"search": {"query": "port"}, "capture": {"title": TITLE, "body": "Learned while working."}}

    def calls(body):
        names = [name for name, _ in hands.tools(body) if name]
        # Codex has the tools of a server in a namespace.
        spaces = [tool for tool in body.get("tools") or [] if tool.get("type") == "namespace"]
        names += [f"{space['name']}/{tool['name']}" for space in spaces for tool in space["tools"]]
        offered.extend(names)
        ours = [name for name in names if left and "memory" in name and name.endswith(left[0])]
        return [(ours[0], given[left.pop(0)])] if ours else []

    world.server.take()
    world.server.hands = calls
    out = world.run([program.bin / program.command, *program.start, *more, "Which port?"])
    results = json.dumps([body for _, body in world.server.take()])
    expect(not left, f"it was offered {sorted(set(offered))}; not called: {left}; {out[-600:]}")
    expect("4310" in results and "[agent-memory:recall " in results, f"no note came back: {results[-1500:]}")
    queue = [json.loads(path.read_text()) for path in (home / ".local/share/agent-memory/inbox").glob("*.json")]
    ours = [entry for entry in queue if entry["retrieval"].get("title") == TITLE]
    expect([entry["harness"] for entry in ours] == [program.harness], f"the queue has {queue}")
    return f"as an MCP server: {len(given)} calls"


def inspect(home, prefix, bins, path, expect):
    """Every method, by the inspector, which checks each answer against the protocol's schemas."""
    project = home / "project"
    project.mkdir(parents=True)
    env = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8"}

    def run(command):
        done = subprocess.run([str(word) for word in command], cwd=project, env=env, capture_output=True, text=True, timeout=120)
        expect(done.returncode == 0, f"{command}: exit {done.returncode}, {done.stdout}{done.stderr}")
        return done.stdout

    run([bins / "memory-capture", "--direct", "--title", "Dev server", "--body", FACT])
    inspector = [f"{prefix}/node_modules/.bin/mcp-inspector", "--cli", bins / "memory-mcp"]
    tools = json.loads(run([*inspector, "--method", "tools/list"]))["tools"]
    expect([tool["name"] for tool in tools] == ["recall", "search", "read", "capture"], f"{tools}")
    call = [*inspector, "--method", "tools/call", "--tool-name"]
    expect("4310" in run([*call, "recall"]), "recall gave no note")
    expect("4310" in run([*call, "search", "--tool-arg", "query=port"]), "search found no note")
    expect("Queued as" in run([*call, "capture", "--tool-arg", "title=T", "--tool-arg", "body=B"]), "nothing was queued")
    expect("memory://section" in run([*inspector, "--method", "resources/list"]), "there is no resource")
    expect("4310" in run([*inspector, "--method", "resources/read", "--uri", "memory://section"]), "the resource has no note")
    return "6 calls by the inspector"
