"""The plugin folder in the real programs, installed from this checkout and removed again.

In Claude Code its hooks give the notes and queue the session, and do nothing where memory-install-hooks has installed its own. Codex and
Gemini CLI get the MCP server and the skill.
"""

import json
import subprocess

FACT = "The dev server listens on port 4310."
NAME = "agent-memory"
SKILL = "Looks up what earlier sessions learned"


def check(world, bins, top, given, expect):
    program, home = world.program, world.home
    world.env["PATH"] = f"{bins}:{world.env['PATH']}"
    command = program.bin / program.command
    world.run([bins / "memory-uninstall-hooks"])
    # What stands in a context file is not given again.
    config = home / ".config/agent-memory/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"agentsMd": {"targets": []}}))
    world.run([bins / "memory-capture", "--direct", "--title", "Dev server", "--body", FACT])
    if program.harness == "gemini":
        world.env["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
        typed = [str(command), "extensions", "install", "--consent", str(top / "plugin")]
        done = subprocess.run(typed, cwd=home, env=world.env, input="y\n", capture_output=True, text=True, timeout=120)
        expect(done.returncode == 0, f"install: {done.stdout}{done.stderr}")
        remove = ["extensions", "uninstall", NAME]
    else:
        world.run([command, "plugin", "marketplace", "add", top])
        world.run([command, "plugin", "install" if program.harness == "claude-code" else "add", f"{NAME}@axe-toolkit"])
        remove = ["plugin", "uninstall" if program.harness == "claude-code" else "remove", f"{NAME}@axe-toolkit"]

    start = world.say("Which port?")
    if program.harness == "claude-code":
        inbox = home / ".local/share/agent-memory/inbox"
        expect(len(given(start, FACT)) == 1, f"the notes are there {len(given(start, FACT))} times")
        expect(len(list(inbox.glob("*.json"))) == 1, "the session was not queued")
        world.run([bins / "memory-install-hooks"])
        both = world.say("Which port?")
        expect(len(given(both, FACT)) == 1, f"with the installer's hooks they are there {len(given(both, FACT))} times")
        world.run([bins / "memory-uninstall-hooks"])
    # Gemini CLI offers no tool without a terminal that it would ask about: of the server, only its resource.
    signs = {"claude-code": [SKILL], "codex": [SKILL, "mcp__agent_memory"], "gemini": ["read_mcp_resource"]}[program.harness]
    missing = [sign for sign in signs if sign not in json.dumps(start)]
    expect(not missing, f"the model is not told of {missing}")
    world.run([command, *remove])
    after = world.say("Which port?")
    left = [sign for sign in signs if sign in json.dumps(after)]
    expect(not left and not given(after, FACT), f"something is left of it: {left}")
    return "as a plugin: installed, used, removed"
