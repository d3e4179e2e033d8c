# Hooks of coding agents: at the end of a session memory-capture, at its start and at each prompt memory-recall. The
# shape of each file is in memory-hooks(7), and memory-install-hooks writes the same entries. A file has settings, which
# become JSON, or a text. Its path is relative to the home directory, or to the one for configuration.
{
  # A directory whose path stays the same when the package changes: Codex trusts a hook by its command.
  programs,
}:

let
  commands = harness: {
    recall = "${programs}/memory-recall --harness ${harness}";
    capture = "${programs}/memory-capture --harness ${harness}";
  };
  # The examples name the programs as these lines do.
  plugin =
    path:
    builtins.replaceStrings
      [ " = \"memory-recall\"" " = \"memory-capture\"" ]
      [
        " = ${builtins.toJSON "${programs}/memory-recall"}"
        " = ${builtins.toJSON "${programs}/memory-capture"}"
      ]
      (builtins.readFile path);
  # Claude Code's shape, which others have taken over.
  group = more: command: timeout: [
    {
      hooks = [
        (
          {
            type = "command";
            inherit command timeout;
          }
          // more
        )
      ];
    }
  ];
  claude =
    harness:
    let
      inherit (commands harness) recall capture;
    in
    {
      SessionStart = group { } recall 5;
      UserPromptSubmit = group { } recall 5;
      Stop = group { } capture 10;
      SessionEnd = group { } capture 10;
    };
  sub-agents = harness: { SubagentStart = group { } (commands harness).recall 5; };
  acts = harness: event: { ${event} = group { } (commands harness).recall 5; };
in
{
  amp.configFiles = {
    "amp/plugins/agent-memory.ts".text = plugin ../../examples/amp/memory.ts;
    "amp/skills/agent-memory/SKILL.md".text = builtins.readFile ../../examples/amp/SKILL.md;
  };
  claude-code.homeFiles.".claude/settings.json".settings.hooks =
    claude "claude-code" // sub-agents "claude-code" // acts "claude-code" "PreToolUse";
  codex.homeFiles.".codex/hooks.json".settings.hooks =
    let
      inherit (commands "codex") capture;
    in
    claude "codex"
    // acts "codex" "PreToolUse"
    // {
      Interrupt = group { } capture 3;
      SessionEnd = group { } capture 3;
    };
  copilot.homeFiles.".copilot/hooks/agent-memory.json".settings =
    let
      # A hook that fails before a call of a tool denies it.
      inherit (builtins.mapAttrs (_: command: "${command} || true") (commands "copilot")) recall capture;
      hook = bash: timeoutSec: [
        {
          type = "command";
          inherit bash timeoutSec;
        }
      ];
    in
    {
      version = 1;
      hooks = {
        sessionStart = hook recall 5;
        userPromptSubmitted = hook recall 5;
        preToolUse = hook recall 5;
        preCompact = hook recall 5;
        agentStop = hook capture 10;
        sessionEnd = hook capture 10;
      };
    };
  cursor.homeFiles.".cursor/hooks.json".settings =
    let
      # Nothing that a hook of Cursor's prints reaches the model.
      command = [ { command = (commands "cursor").capture; } ];
    in
    {
      version = 1;
      hooks = {
        stop = command;
        sessionEnd = command;
      };
    };
  gemini.homeFiles.".gemini/settings.json".settings.hooks =
    let
      # Gemini CLI takes any exit code but 0 and 1 as an order, 127 too.
      inherit (builtins.mapAttrs (_: command: "${command} || true") (commands "gemini")) recall capture;
    in
    {
      SessionStart = group { name = "memory-recall"; } recall 5000;
      BeforeAgent = group { name = "memory-recall"; } recall 5000;
      AfterTool = group { name = "memory-recall"; } recall 5000;
      AfterAgent = group { name = "memory-capture"; } capture 10000;
      SessionEnd = group { name = "memory-capture"; } capture 10000;
    };
  opencode.configFiles."opencode/plugin/agent-memory.js".text =
    plugin ../../examples/opencode/memory.js;
  qwen-code.homeFiles.".qwen/settings.json".settings.hooks =
    claude "qwen-code" // sub-agents "qwen-code" // acts "qwen-code" "PostToolUse";
}
