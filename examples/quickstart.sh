#!/bin/sh
# The main job, without key or network: an agent answers what is piped in, twice, and the second run has
# read the first one's entry in the agent's log.
#
# Everything happens in a temporary home. The model is examples/stand-in.sh, which only counts words; to see
# a real one, name a command that reads a prompt on stdin:
#     LLM_COMMAND='claude -p' sh examples/quickstart.sh
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)

# AXE_BIN names a directory of programs that are built already.
if [ -z "${AXE_BIN:-}" ]; then
    (cd "$here" && cargo build --bins)
    AXE_BIN=${CARGO_TARGET_DIR:-$here/target}/debug
fi
PATH=$AXE_BIN:$PATH
LLM_COMMAND=${LLM_COMMAND:-"sh '$here/examples/stand-in.sh'"}

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
# The LLM command keeps the real home, where it finds its login.
export XDG_CONFIG_HOME="$home/config" XDG_DATA_HOME="$home/data" LLM_COMMAND

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

say "\$ head -n 5 README.md | axe run --model mine/any summariser"
head -n 5 "$here/README.md" | axe run --model mine/any summariser
echo

say "\$ cat CHANGELOG.md | axe run --model mine/any summariser     # the same agent again: it has read its log"
axe run --model mine/any summariser <"$here/CHANGELOG.md"
echo

say '$ cat $XDG_DATA_HOME/axe/memory/summariser.md'
cat "$XDG_DATA_HOME/axe/memory/summariser.md"
