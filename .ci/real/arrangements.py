"""Does a note stand once, however the files are arranged that a program reads by itself?

Each arrangement is a repository with the section in a file, and other files beside it. The first request of a session must
hold the note exactly once: from the file, or from memory-recall. tests/harness_homes.rs says which of them it is.
"""

SECTION = "the section"
AGENTS = {"AGENTS.md": SECTION}
IN_SETTINGS = '{"context": {"fileName": "AGENTS.md"}}'

ARRANGEMENTS = {
    "claude-code": [
        (AGENTS, "."),
        (AGENTS, "sub"),
        (AGENTS | {"CLAUDE.md": "Use tabs."}, "."),
        (AGENTS | {"CLAUDE.md": "See @AGENTS.md"}, "."),
        (AGENTS | {"CLAUDE.md": "`@AGENTS.md`"}, "."),
        (AGENTS | {"CLAUDE.md": "@AGENTS.md"}, "sub"),
        (AGENTS | {"sub/CLAUDE.md": "Use tabs."}, "sub"),
        (AGENTS | {"../.claude/CLAUDE.md": "Use tabs."}, "."),
        (AGENTS, "tree"),
    ],
    "codex": [
        (AGENTS, "sub"),
        (AGENTS | {"AGENTS.override.md": "Use tabs."}, "."),
        (AGENTS, "tree"),
        ({"../AGENTS.md": SECTION}, "."),
    ],
    "copilot": [(AGENTS, "sub")],
    "gemini": [(AGENTS, "."), (AGENTS | {"GEMINI.md": "@./AGENTS.md"}, "sub")],
    "opencode": [(AGENTS, "sub")],
    "qwen-code": [(AGENTS, "."), (AGENTS | {".qwen/settings.json": '{"context": {"fileName": ["QWEN.md"]}}'}, ".")],
}


def arrange(world, memory, files):
    """Writes the files, and commits them to a worktree beside the others."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    (world.repository / "sub").mkdir()
    for name, text in files.items():
        path = world.repository / name
        path.parent.mkdir(exist_ok=True)
        if text == SECTION:
            world.run([memory, "agents-md", "--target", path, "--repo", "github.com/someone/project"])
        else:
            path.write_text(text + "\n")
    world.run([*git, "add", "-A"])
    world.run([*git, "commit", "-q", "--allow-empty", "-m", "x"])
    world.run([*git, "worktree", "add", "-q", "tree"])


def check(worlds, memory, body, say_where, expect):
    """`worlds` makes a world for each arrangement."""
    for (files, directory), world in worlds:
        world.run([memory, "capture", "--direct", "--title", "Dev server", "--body", body, "--scope", "repo"])
        arrange(world, memory, files)
        places = say_where(world, world.repository / directory)
        expect(len(places) == 1, f"with {files}, a session in {directory} has the note {len(places)} times: {places}")
