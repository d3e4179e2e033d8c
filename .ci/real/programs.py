"""The coding agents: which version, from which npm package, and how each holds one turn with a server of ours."""

import json
import shutil
import subprocess
from pathlib import Path


LOOK = "cat web/app.txt"


class Program:
    """One coding agent. `start` and `resume` are its arguments before the prompt."""

    title = package = version = harness = command = ""
    directory = ""  # below the home directory: the sign that the program is used
    hooks = ()  # the files with our hooks
    start = resume = ()
    more_packages = ()
    act = ()  # a tool with its arguments that shows web/app.txt, and the program's own before a prompt that may use it
    sub_agent = ()  # the tool that starts one, which one, and the arguments before a prompt that may use it
    preset = ""  # its LLM command, if there is one
    endless = ()  # errors after which it asks again until time is up

    def __init__(self, cache):
        self.prefix = cache / f"{self.harness}-{self.version}"
        self.bin = self.prefix / "node_modules/.bin"

    def is_installed(self):
        return (self.bin / self.command).exists()

    def install(self):
        install(self.prefix, f"{self.package}@{self.version}", *self.more_packages)

    def configure(self, home, url):
        """Writes what the program needs to talk to the server at `url`, and returns the environment for it."""
        raise NotImplementedError

    def arm(self, home):
        """Hooks and tool servers that leave HOOKED and SERVED in the home if they are started."""

    def log_in(self, home, url, key, env):
        """Puts the key into the program's file of credentials, and takes the other one away."""


class NotInstalled(Exception):
    pass


def install(prefix, *packages):
    """Writes nothing outside `prefix`."""
    shutil.rmtree(prefix, ignore_errors=True)
    prefix.mkdir(parents=True)
    (prefix / "package.json").write_text("{}")
    npm = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1"]
    where = ["--cache", prefix / "npm", "--prefix", prefix]
    try:
        subprocess.run([*npm, *where, *packages], cwd=prefix, check=True, capture_output=True, text=True, timeout=180)
    except subprocess.TimeoutExpired:
        why = "npm took too long"
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.startswith("npm error")]
        why = lines[0] if lines else f"npm ended with {error.returncode}"
    else:
        shutil.rmtree(prefix / "npm")
        return
    shutil.rmtree(prefix)
    raise NotInstalled(f"{' '.join(packages)} cannot be installed: {why}")


def hooks(home, *events):
    command = {"type": "command", "command": f"touch {home}/HOOKED"}
    return {event: [{"hooks": [command]}] for event in events}


def served(home):
    return {"command": "touch", "args": [f"{home}/SERVED"]}


def merge(path, more):
    """Adds keys to a JSON file that may have been written already."""
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(settings | more, indent=2))


class ClaudeCode(Program):
    title, harness, command = "Claude Code", "claude-code", "claude"
    package, version = "@anthropic-ai/claude-code", "2.1.330"
    directory, hooks = ".claude", (".claude/settings.json",)
    start, resume = ("-p",), ("--continue", "-p")
    act = ("Bash", {"command": LOOK, "description": "Look"}), "--allowedTools", "Bash", "-p"
    sub_agent = ("Agent", "general-purpose", "-p")
    preset = "claude"

    def arm(self, home):
        merge(home / ".claude/settings.json", {"hooks": hooks(home, "SessionStart", "UserPromptSubmit", "Stop")})
        merge(home / ".claude.json", {"mcpServers": {"served": served(home)}})

    def log_in(self, home, url, key, env):
        env.pop("ANTHROPIC_API_KEY")
        login = {"accessToken": key, "refreshToken": key, "expiresAt": 9999999999999, "scopes": ["user:inference"]}
        (home / ".claude/.credentials.json").write_text(json.dumps({"claudeAiOauth": login}))

    def configure(self, home, url):
        return {
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        }


class Codex(Program):
    title, harness, command = "Codex", "codex", "codex"
    package, version = "@openai/codex", "0.169.0"
    directory, hooks = ".codex", (".codex/hooks.json",)
    # Hooks that nobody has trusted in the TUI are skipped otherwise.
    start = ("exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check")
    resume = ("exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "resume", "--last")
    act = ("exec_command", {"cmd": LOOK}), *start
    preset = "codex"

    def arm(self, home):
        merge(home / ".codex/hooks.json", {"hooks": hooks(home, "SessionStart", "UserPromptSubmit", "Stop")})
        config = home / ".codex/config.toml"
        server = f'[mcp_servers.served]\ncommand = "touch"\nargs = ["{home}/SERVED"]\n'
        # A model that it knows has tools of its own.
        text = config.read_text().replace('model = "m"', 'model = "gpt-6.1-sol"')
        config.write_text(f'notify = ["touch", "{home}/HOOKED"]\n{text}{server}')

    def log_in(self, home, url, key, env):
        env.pop("CODEX_API_KEY")
        (home / ".codex/config.toml").write_text(f'openai_base_url = "{url}/v1"\n')
        (home / ".codex/auth.json").write_text(json.dumps({"OPENAI_API_KEY": key}))

    def configure(self, home, url):
        (home / ".codex/config.toml").write_text(f"""
model = "m"
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "CODEX_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
""")
        return {"CODEX_API_KEY": "none"}


class Gemini(Program):
    title, harness, command = "Gemini CLI", "gemini", "gemini"
    package, version = "@google/gemini-cli", "0.61.0"
    directory, hooks = ".gemini", (".gemini/settings.json",)
    start = ("--skip-trust", "-m", "gemini-2.5-flash", "-p")
    resume = ("--resume", "latest", *start)
    act = ("run_shell_command", {"command": LOOK}), "--yolo", *start
    preset = "gemini"

    def arm(self, home):
        more = {"hooks": hooks(home, "SessionStart", "BeforeAgent", "AfterAgent"), "mcpServers": {"served": served(home)}}
        merge(home / ".gemini/settings.json", more)

    def log_in(self, home, url, key, env):
        env.pop("GEMINI_API_KEY")
        (home / ".gemini/.env").write_text(f"GEMINI_API_KEY={key}\n")

    def configure(self, home, url):
        merge(home / ".gemini/settings.json", {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False},
        })
        return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}


class Opencode(Program):
    title, harness, command = "opencode", "opencode", "opencode"
    package, version = "opencode-ai", "1.18.33"
    directory, hooks = ".config/opencode", (".config/opencode/plugin/agent-memory.js",)
    start, resume = ("run",), ("run", "--continue")
    act = ("bash", {"command": LOOK, "description": "Look"}), *start
    more_packages = (f"@opencode-ai/plugin@{version}",)
    preset, endless = "opencode", (429,)

    def arm(self, home):
        server = {"type": "local", "command": ["touch", f"{home}/SERVED"]}
        (home / "more.md").write_text("Also answer in French.")
        merge(home / self.directory / "opencode.json", {"mcp": {"served": server}, "instructions": ["~/more.md"]})
        agents = home / ".opencode/agent"
        agents.mkdir(parents=True)
        self.provide(home / ".opencode")
        (agents / "build.md").write_text("---\npermission:\n  '*': allow\n---\nAnswer in French.\n")

    def log_in(self, home, url, key, env):
        path = home / self.directory / "opencode.json"
        settings = json.loads(path.read_text())
        del settings["provider"]["scripted"]["options"]["apiKey"]
        path.write_text(json.dumps(settings))
        login = home / ".local/share/opencode/auth.json"
        login.write_text(json.dumps({"scripted": {"type": "api", "key": key}}))

    def configure(self, home, url):
        directory = home / self.directory
        self.provide(directory)
        merge(directory / "opencode.json", {
            "autoupdate": False, "share": "disabled", "model": "scripted/m", "small_model": "scripted/m",
            "provider": {"scripted": {
                "npm": "@ai-sdk/openai-compatible", "models": {"m": {"name": "m"}},
                "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
            }},
        })
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}

    def provide(self, directory):
        """It installs this package at each start where it is missing, and writes this file."""
        (directory / ".gitignore").touch()
        merge(directory / "package.json", {"dependencies": {"@opencode-ai/plugin": self.version}})
        shutil.copy(self.prefix / "package-lock.json", directory)
        (directory / "node_modules").symlink_to(self.prefix / "node_modules")


class Copilot(Program):
    title, harness, command = "Copilot CLI", "copilot", "copilot"
    package, version = "@github/copilot", "1.0.102"
    directory, hooks = ".copilot", (".copilot/hooks/agent-memory.json",)
    start, resume = ("--allow-all-tools", "-p"), ("--continue", "--allow-all-tools", "-p")
    act = ("bash", {"command": LOOK, "description": "Look"}), *start

    def configure(self, home, url):
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_MODEL": "gpt-4.1", "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }


LOOKER = """---
name: looker
description: Looks for what it is asked.
---
Look for what you are asked.

${hook_context}
"""


class QwenCode(Program):
    title, harness, command = "Qwen Code", "qwen-code", "qwen"
    package, version = "@qwen-code/qwen-code", "0.24.4"
    directory, hooks = ".qwen", (".qwen/settings.json",)
    start, resume = ("-p",), ("--continue", "-p")
    act = ("run_shell_command", {"command": LOOK, "is_background": False}), "--yolo", "-p"
    sub_agent = ("agent", "looker", "--yolo", "-p")

    def configure(self, home, url):
        merge(home / ".qwen/settings.json", {
            "security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False},
        })
        # Its own agents do not see what the hook says.
        (home / ".qwen/agents").mkdir()
        (home / ".qwen/agents/looker.md").write_text(LOOKER)
        return {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "m"}


# The slowest first.
ALL = (Opencode, Gemini, QwenCode, Copilot, ClaudeCode, Codex)
