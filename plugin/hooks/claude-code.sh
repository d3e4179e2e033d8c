#!/bin/sh
# The hooks of the plugin: memory-recall or memory-capture. They do nothing where the programs are not installed, and where
# memory-install-hooks has put its own into the settings: a session has one of the two.
command -v "$1" >/dev/null || exit 0
grep -Eqs "$1[\"'\\\\]* --harness claude-code" "${CLAUDE_CONFIG_DIR:-$HOME/.claude}/settings.json" && exit 0
exec "$1" --harness claude-code
