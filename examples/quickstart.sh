#!/bin/sh
# The main jobs of both families, without a key and without a network. An agent answers two prompts, and its second
# run has read the log entry of the first. Then a finished session becomes a note, which is found again and shown to
# the next agent.
#
# Everything happens in a temporary directory. The models are examples/stand-in.sh, which only counts words, and
# examples/stand-in-librarian.sh. To use a real one, name a command that reads a prompt on stdin:
#     LLM_COMMAND='claude -p' sh examples/quickstart.sh
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)

# AXE_BIN can name a directory with the programs, if they are already built.
if [ -z "${AXE_BIN:-}" ]; then
    (cd "$here" && cargo build --bins)
    AXE_BIN=${CARGO_TARGET_DIR:-$here/target}/debug
fi
PATH=$AXE_BIN:$PATH
LIBRARIAN=${LLM_COMMAND:-"sh '$here/examples/stand-in-librarian.sh'"}
LLM_COMMAND=${LLM_COMMAND:-"sh '$here/examples/stand-in.sh'"}

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
# The LLM command keeps the real home directory, where it finds its login.
export XDG_CONFIG_HOME="$home/config" XDG_DATA_HOME="$home/data" LLM_COMMAND LIBRARIAN

say() { printf '\n%s\n' "$*"; }

axe config init >/dev/null
cp "$here/examples/agents/summariser.toml" "$XDG_CONFIG_HOME/axe/agents/"
cat >"$XDG_CONFIG_HOME/axe/config.toml" <<'CONFIG'
[providers.mine]
kind = "command"
command = 'eval "$LLM_COMMAND"'
CONFIG

say '$ axe agents list'
axe agents list

say "\$ head -n 5 README.md | axe run -p 'Summarise this.' --model mine/any summariser"
head -n 5 "$here/README.md" | axe run -p 'Summarise this.' --model mine/any summariser
echo

say "\$ cat CHANGELOG.md | axe run -p 'Summarise this.' --model mine/any summariser     # the same agent again: it has read its log"
axe run -p 'Summarise this.' --model mine/any summariser <"$here/CHANGELOG.md"
echo

say '$ cat $XDG_DATA_HOME/axe/memory/summariser.md'
cat "$XDG_DATA_HOME/axe/memory/summariser.md"

# The other family: a session as Claude Code stores it, and what Claude Code passes to its hook at the end.
mkdir -p "$XDG_CONFIG_HOME/agent-memory"
cat >"$XDG_CONFIG_HOME/agent-memory/config.json" <<CONFIG
{"storage": {"root": "$home/notes", "autoCommit": false}, "llm": {"command": "eval \"\$LIBRARIAN\""}}
CONFIG
cat >"$home/session.jsonl" <<'SESSION'
{"type":"user","uuid":"u1","sessionId":"s1","promptSource":"typed","message":{"role":"user","content":"Remember: the dev server listens on port 8081."}}
{"type":"assistant","uuid":"u2","sessionId":"s1","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Noted."}]}}
SESSION
cd "$home"

say '$ memory capture --harness claude-code    # as a hook of Claude Code, at the end of a session'
memory capture --harness claude-code <<HOOK
{"session_id": "s1", "transcript_path": "$home/session.jsonl", "cwd": "$home", "hook_event_name": "SessionEnd"}
HOOK

say '$ memory capture --title "Guards are pure" --body "Put I/O into actors." --tags xstate'
memory capture --title "Guards are pure" --body "Put I/O into actors." --tags xstate

say '$ memory consolidate'
# A real model may give a reply that cannot be used. Then everything waits for the next run.
memory consolidate || true

say '$ memory list --query "which port" --json | memory read -'
memory list --query "which port" --json | memory read -

say '$ memory agents-md --stdout    # what every agent is told at the start'
memory agents-md --stdout
