# Hooks of coding agents: at the end of a session memory-capture, at its start and at each prompt memory-recall. The
# shape of each file is in memory-hooks(7), and memory-install-hooks writes the same entries.
{
  # A directory whose path stays the same when the package changes: Codex trusts a hook by its command.
  programs,
}:

let
  commands = harness: {
    recall = "${programs}/memory-recall --harness ${harness}";
    capture = "${programs}/memory-capture --harness ${harness}";
  };
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
in
{
  claude-code = {
    file = ".claude/settings.json";
    settings.hooks = claude "claude-code";
  };
  codex =
    let
      inherit (commands "codex") capture;
    in
    {
      file = ".codex/hooks.json";
      settings.hooks = claude "codex" // {
        Interrupt = group { } capture 3;
        SessionEnd = group { } capture 3;
      };
    };
  copilot =
    let
      inherit (commands "copilot") recall capture;
      hook = bash: timeoutSec: [
        {
          type = "command";
          inherit bash timeoutSec;
        }
      ];
    in
    {
      file = ".copilot/hooks/agent-memory.json";
      settings = {
        version = 1;
        hooks = {
          sessionStart = hook recall 5;
          userPromptSubmitted = hook recall 5;
          agentStop = hook capture 10;
          sessionEnd = hook capture 10;
        };
      };
    };
  cursor =
    let
      # Nothing that a hook of Cursor's prints reaches the model.
      command = [ { command = (commands "cursor").capture; } ];
    in
    {
      file = ".cursor/hooks.json";
      settings = {
        version = 1;
        hooks = {
          stop = command;
          sessionEnd = command;
        };
      };
    };
  gemini =
    let
      inherit (commands "gemini") recall capture;
    in
    {
      file = ".gemini/settings.json";
      settings.hooks = {
        SessionStart = group { name = "memory-recall"; } recall 5000;
        BeforeAgent = group { name = "memory-recall"; } recall 5000;
        AfterAgent = group { name = "memory-capture"; } capture 10000;
        SessionEnd = group { name = "memory-capture"; } capture 10000;
      };
    };
  qwen-code = {
    file = ".qwen/settings.json";
    settings.hooks = claude "qwen-code";
  };
}
