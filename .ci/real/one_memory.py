"""Does a note stand once beside the memory that a program keeps by itself?

The program's own index says what a note says. A session must have it once: from the index, and where that memory is switched
off, from memory-recall. The files of it that change are then read by memory-consolidate.
"""

import json
import re
from datetime import datetime, timedelta, timezone

# Where it is, below the home, the setting that switches it off, and whether all worktrees of a repository share one.
MEMORIES = {
    "claude-code": (".claude", ("autoMemoryEnabled",), True),
    "qwen-code": (".qwen", ("memory", "enableManagedAutoMemory"), False),
}


def check(world, memory, body, texts, given, expect):
    directory, key, is_shared = MEMORIES[world.program.harness]
    # An agent's: those of the person are always given.
    world.run(["env", "CLAUDECODE=1", memory, "capture", "--direct", "--title", "Dev server", "--body", body, "--scope", "repo"])
    name = re.sub("[^a-zA-Z0-9]", "-", str(world.repository))
    index = world.home / directory / "projects" / name / "memory/MEMORY.md"
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_text(f"# Memory\n\n- {body}\n")

    def places(cwd=None):
        request = world.say("Hello.", cwd=cwd)
        everywhere = [place for text, place in texts(request) for _ in range(text.count("make serve-fast"))]
        return len(everywhere), len(given(request, "make serve-fast"))

    expect(places() == (1, 0), f"beside its own index, a session has the note (at all, from us) {places()} times")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    world.run([*git, "commit", "-q", "--allow-empty", "-m", "x"])
    world.run([*git, "worktree", "add", "-q", "tree"])
    wanted = (1, 0) if is_shared else (1, 1)
    expect(places(world.repository / "tree") == wanted, "in a worktree it is otherwise")

    settings = world.home / directory / "settings.json"
    value = json.loads(settings.read_text()) if settings.exists() else {}
    inner = value
    for part in key[:-1]:
        inner = inner.setdefault(part, {})
    inner[key[-1]] = False
    settings.write_text(json.dumps(value, indent=2))
    expect(places() == (1, 1), f"with its memory switched off, a session has the note {places()} times")

    # What was written lately may still be written to.
    later = datetime.now(timezone.utc) + timedelta(hours=2)
    world.env["AXE_NOW"] = later.strftime("%Y-%m-%dT%H:%M:%SZ")
    shown = world.consolidate()
    del world.env["AXE_NOW"]
    expect("agent's own program remembers" in shown, "what the program remembers was not read")
    return "beside its own memory a note stands once"
