# The options of all three modules, and the checks of their values.
{
  config,
  lib,
  pkgs,
  ...
}:

let
  inherit (lib) mkOption mkEnableOption types;
  axe = config.programs.axe;
  memory = config.services.agent-memory;
  toml = pkgs.formats.toml { };
  json = pkgs.formats.json { };
  calendar = import ./calendar.nix { inherit lib; };
  inherit (pkgs.stdenv.hostPlatform) isDarwin;

  secret = import ./secret.nix { inherit lib; };
  inherit (import ./jobs.nix { inherit config lib pkgs; }) command sections targets;

  environmentFile = mkOption {
    # Not of type path: Nix would copy the file into the store, which every user can read.
    type = types.nullOr types.str;
    default = null;
    example = "%t/agenix/llm.env";
    description = ''
      File with API keys for the timer, as lines of the form `KEY=VALUE`, which are added to its environment. Must be
      absolute, given as a string, and not in the Nix store. As in systemd, `%t` stands for the runtime directory, `%h`
      for the home directory, `%u` for the user and `%%` for a percent sign; with a leading `-` the file is optional. The
      user that the timer runs for must be able to read it. If it is not there yet, the run is tried again.
    '';
  };

  after = mkOption {
    type = types.listOf types.str;
    default = [ ];
    example = [ "agenix.service" ];
    description = ''
      Units of the user's systemd after which the timer's program starts, such as those that decrypt secrets:
      `agenix.service` or `sops-nix.service`. Not used on macOS.
    '';
  };

  calendarText = ''
    a systemd calendar expression such as `"daily"` or `"Mon..Fri 07:00"`. A run that was missed while the machine was off
    or asleep is caught up on. On macOS, the expression must be one of ${calendar.names}
  '';

  every =
    {
      what,
      hours,
      calendar ? _: null,
      calendarDefault ? "null",
    }:
    {
      enable = mkOption {
        type = types.bool;
        default = true;
        description = "Whether to run ${what} on a timer.";
      };
      schedule = mkOption {
        type = types.nullOr types.str;
        default = calendar memory;
        defaultText = lib.literalExpression calendarDefault;
        example = "Mon..Fri 07:00";
        description = ''
          When to run ${what}: ${lib.removeSuffix "\n" calendarText}. If `null`, it runs every `intervalHours`.
        '';
      };
      intervalHours = mkOption {
        type = types.ints.between 1 8784;
        default = hours;
        description = ''
          Hours between two runs, unless there is a schedule. Of intervals other than 24 and 168, the hours in which
          the machine sleeps do not count.
        '';
      };
    };

  # An interval in seconds, or a calendar.
  schedule = types.either types.str (
    types.submodule {
      options.interval = mkOption {
        type = types.ints.positive;
        description = "Seconds between two runs.";
      };
    }
  );

  agent = types.submodule {
    options = {
      settings = mkOption {
        type = types.attrsOf toml.type;
        default = { };
        example = {
          model = "anthropic/claude-sonnet-4-5";
          system_prompt = "You review a change.";
          memory.enabled = true;
        };
        description = ''
          Content of `agents/<name>.toml`. `model` is required; `name` defaults to the name of the attribute.
        '';
      };
      schedule = mkOption {
        type = types.nullOr schedule;
        default = null;
        example = "daily";
        description = ''
          When to run the agent: an interval in seconds, such as `{ interval = 3600; }`, or ${lib.removeSuffix "\n" calendarText}.
          If `null`, there is no timer.
        '';
      };
      prompt = mkOption {
        type = types.nullOr types.str;
        default = null;
        example = "What changed, and why?";
        description = "The user message of the scheduled run. What `stdin` prints follows it as context.";
      };
      stdin = mkOption {
        type = types.nullOr types.str;
        default = null;
        example = "git -C ~/src/project log --since=yesterday";
        description = ''
          Bash script whose output is piped into the scheduled run. If the script fails, the agent does not
          run.
        '';
      };
      skipIfEmpty = mkOption {
        type = types.bool;
        default = false;
        description = "Whether not to run the agent if `stdin` prints nothing but white space.";
      };
      output = mkOption {
        type = types.nullOr types.str;
        default = null;
        example = "~/notes/digest.md";
        description = ''
          File for the answer, absolute or below `~/`. It is replaced when a run has succeeded. If `null`, the answer goes to
          the journal, on macOS to the log.
        '';
      };
      extraArgs = mkOption {
        type = types.listOf types.str;
        default = [ ];
        example = [
          "--timeout"
          "600"
        ];
        description = "Further arguments of `axe-run` for the scheduled run.";
      };
      inherit environmentFile after;
    };
  };

  harnesses = {
    amp = "Amp: a plugin that captures threads, and a skill, both in `~/.config/amp`. Amp loads the plugin when it starts";
    claude-code = "Claude Code; entries of `programs.claude-code.settings` if home-manager manages Claude Code, else `~/.claude/settings.json`";
    codex = "Codex, in `~/.codex/hooks.json`. Codex asks once whether you trust them";
    copilot = "Copilot CLI, in `~/.copilot/hooks/agent-memory.json`";
    cursor = "Cursor, in `~/.cursor/hooks.json`. They capture sessions only";
    gemini = "Gemini CLI, in `~/.gemini/settings.json`";
    opencode = "opencode: a plugin, `~/.config/opencode/plugin/agent-memory.js`";
    qwen-code = "Qwen Code, in `~/.qwen/settings.json`";
  };

  # The paths of all keys called api_key. "none" is the value for services that need no key.
  literalKeys =
    path: value:
    if lib.isAttrs value then
      lib.concatLists (
        lib.mapAttrsToList (
          name: inner:
          if name == "api_key" then
            lib.optional (inner != "none") "${path}.${name}"
          else
            literalKeys "${path}.${name}" inner
        ) value
      )
    else if lib.isList value then
      lib.concatMap (literalKeys path) value
    else
      [ ];

  noLiteralKeys =
    path: settings:
    map (key: {
      assertion = false;
      message = ''
        ${key} would be written to the Nix store, which every user can read.
        Point to the key instead: api_key_file = "/run/secrets/…" or api_key_command = "pass show …".
      '';
    }) (literalKeys path settings);

  # Files of secrets that Nix would copy into the store, or that are there already.
  copiedSecrets =
    path: value:
    if lib.isAttrs value then
      lib.concatLists (
        lib.mapAttrsToList (
          name: inner:
          let
            isCopied = builtins.isPath inner || (builtins.isString inner && inStore inner);
          in
          if lib.hasSuffix "_file" name then
            lib.optional isCopied "${path}.${name}"
          else
            copiedSecrets "${path}.${name}" inner
        ) value
      )
    else if lib.isList value then
      lib.concatMap (copiedSecrets path) value
    else
      [ ];

  noCopiedSecrets =
    path: settings:
    map (key: {
      assertion = false;
      message = ''
        ${key} is a file in the Nix store, or a Nix path, which is copied there: every user could read it.
        Give the path as a string, to a file outside of the store: "/run/secrets/…" or "~/.config/…".
      '';
    }) (copiedSecrets path settings);

  inStore = lib.hasPrefix "${builtins.storeDir}/";

  secretOutsideStore = path: file: [
    {
      assertion = file == null || secret.isAbsolute file;
      message = "${path} must be an absolute path, or begin with \"%t/\" or \"%h/\", but is \"${toString file}\".";
    }
    {
      assertion = file == null || !inStore (secret.path file);
      message = "${path} is in the Nix store, which every user can read: \"${toString file}\".";
    }
    {
      assertion = file == null || oneLine file;
      message = "${path} must be a single line without a backslash at its end.";
    }
    {
      assertion = file == null || !secret.hasUnknownSpecifier file;
      message = "${path} may contain %t, %h, %u and %% (a percent sign), but is \"${toString file}\".";
    }
  ];

  # systemd also ends a line at a carriage return, and continues it after a backslash at its end.
  oneLine = text: builtins.match "([^[:cntrl:]]*[^\\[:cntrl:]])?" text != null;

  # A typed option and the same key of the free form.
  saidOnce = option: key: wanted: {
    assertion = wanted == null || given key == null || given key == wanted;
    message = "services.agent-memory.settings.${key} differs from services.agent-memory.${option}: set only the latter.";
  };
  given =
    key:
    let
      keys = builtins.filter builtins.isString (builtins.split "[.]" key);
    in
    (memory.settings.${builtins.head keys} or { }).${builtins.elemAt keys 1} or null;

  # What memory-config would refuse only when the configuration is built, or a program when it runs.
  wrongSettings =
    let
      remote = if memory.sync.remote != null then memory.sync.remote else given "sync.remote";
      # As lib/config/memory/remote.rs: a password, or a name that is so long that it is a token.
      hasKey =
        builtins.match "[a-z+]+://[^/]*:[^/@]*@.*" remote != null
        || builtins.match "https?://[^/@:]{20,}@.*" remote != null;
      isPlace = path: oneLine path && (lib.hasPrefix "/" path || lib.hasPrefix "~/" path);
      isUnit =
        unit: builtins.match "[A-Za-z0-9:_.@-]+[.](service|target|socket|timer|path|mount)" unit != null;
    in
    map (section: {
      assertion = lib.isAttrs (memory.settings.${section} or { });
      message = "services.agent-memory.settings.${section} must be a set of settings, such as { }.";
    }) sections
    ++ [
      {
        assertion = builtins.isList (memory.settings.agentsMd.targets or [ ]);
        message = "services.agent-memory.settings.agentsMd.targets must be a list.";
      }
      {
        assertion = !builtins.isString remote || !hasKey;
        message = ''
          services.agent-memory.sync.remote holds a password or a token, and would be written to the Nix store, which every user can
          read. Leave it out of the address, and give it to git's credential helper.
        '';
      }
      {
        assertion = command == null || builtins.match "[[:space:]]*" command == null;
        message = "services.agent-memory.llm.command is empty: set it to a command, or to null.";
      }
    ]
    ++ map (target: {
      assertion = isPlace (target.path or target);
      message = "services.agent-memory.targets: \"${target.path or target}\" must be absolute, or begin with \"~/\".";
    }) (lib.filter (target: target ? path || builtins.isString target) memory.targets)
    ++ map (unit: {
      assertion = isUnit unit;
      message = "services.agent-memory.after: \"${unit}\" is not the name of a unit, such as \"agenix.service\".";
    }) memory.after;

  isCalendar = path: schedule: [
    {
      assertion =
        schedule == null
        || (
          oneLine schedule
          && builtins.match "[A-Za-z0-9 *,.:/~_+-]*[^ ][A-Za-z0-9 *,.:/~_+-]*" schedule != null
        );
      message = "${path} must be a single line with a calendar expression.";
    }
    {
      assertion = schedule == null || !isDarwin || calendar.toLaunchd schedule != null;
      message = "${path}: launchd cannot express \"${toString schedule}\"; use ${calendar.names}.";
    }
  ];

  # The same check as in axe-run. A name that becomes part of a unit's name must also be plain ASCII.
  isFileName =
    name:
    builtins.stringLength name <= 200 && builtins.match "[^./\\[:cntrl:]][^/\\[:cntrl:]]*" name != null;
  isUnitName = name: builtins.match "[A-Za-z0-9_][A-Za-z0-9_.-]*" name != null;

  agentAssertions =
    name: agent:
    let
      path = "programs.axe.agents.${name}";
      inherit (agent) schedule output;
    in
    [
      {
        assertion = isFileName name;
        message = "programs.axe.agents: \"${name}\" cannot be the name of an agent: it must not contain a slash or a control character, must not start with a dot, and may have at most 200 bytes.";
      }
      {
        assertion = agent.settings ? model;
        message = "${path}.settings.model is not set: every agent needs a model, such as \"anthropic/claude-sonnet-4-5\".";
      }
      {
        assertion = schedule == null || isUnitName name;
        message = "${path}.schedule: the name of a timer can only contain ASCII letters, digits, \"_\", \".\" and \"-\": rename the agent.";
      }
      {
        assertion = schedule != null || agent.stdin == null;
        message = "${path}.stdin is only used by a timer: set ${path}.schedule too.";
      }
      {
        assertion = schedule != null || agent.environmentFile == null;
        message = "${path}.environmentFile is only used by a timer: set ${path}.schedule too.";
      }
      {
        assertion = !agent.skipIfEmpty || agent.stdin != null;
        message = "${path}.skipIfEmpty needs ${path}.stdin.";
      }
      {
        assertion =
          output == null || (oneLine output && (lib.hasPrefix "/" output || lib.hasPrefix "~/" output));
        message = "${path}.output must be absolute, or begin with \"~/\", but is \"${toString output}\".";
      }
    ]
    ++ isCalendar "${path}.schedule" (if builtins.isString schedule then schedule else null)
    ++ noCopiedSecrets "${path}.settings" agent.settings
    ++ secretOutsideStore "${path}.environmentFile" agent.environmentFile
    ++ noLiteralKeys "${path}.settings" agent.settings;
in
{
  options.programs.axe = {
    enable = mkEnableOption "axe, small programs that run LLM agents and keep what they learn";
    package = lib.mkPackageOption pkgs "axe" { } // {
      default = pkgs.callPackage ../package.nix { };
      defaultText = lib.literalMD "the flake's package";
    };
    extraPackages = mkOption {
      type = types.listOf types.package;
      default = [ ];
      description = "Packages on the PATH of scheduled agents, for `stdin`, `api_key_command`, tools and commands as models.";
    };
    settings = mkOption {
      type = types.attrsOf toml.type;
      default = { };
      example = {
        providers.openai.api_key_file = "/run/secrets/openai";
        retry.max = 5;
      };
      description = ''
        Content of `config.toml`. If empty, the file is not created. The file is in the Nix store, where
        every user can read it, so use `api_key_file` or `api_key_command` for keys.
      '';
    };
    agents = mkOption {
      type = types.attrsOf agent;
      default = { };
      description = "Agents, by name.";
    };
    gc = {
      enable = mkEnableOption "a timer that runs `axe-gc --all`: it analyses and trims the logs of agents with memory";
      schedule = mkOption {
        type = schedule;
        default = "weekly";
        description = ''
          When to run it: an interval in seconds, such as `{ interval = 604800; }`, or ${lib.removeSuffix "\n" calendarText}.
        '';
      };
      inherit environmentFile after;
    };
  };

  options.services.agent-memory = {
    enable = mkEnableOption "timers that turn agents' sessions into notes and keep the notes in order";
    package = mkOption {
      type = types.package;
      default = axe.package;
      defaultText = lib.literalExpression "config.programs.axe.package";
      description = "Package that the timers run. It is also added to PATH.";
    };
    settings = mkOption {
      type = types.attrsOf json.type;
      default = { };
      example = {
        llm.maxCallsPerDay = 20;
        redact.patterns = [ "ACME-[0-9]{8}" ];
      };
      description = ''
        Further content of `config.json` of the memory programs; see memory-configuration(7). If this and all typed options have
        their defaults, the file is not created, so that a file of your own can take effect.
      '';
    };
    llm = {
      command = mkOption {
        type = types.nullOr types.str;
        default = null;
        example = "claude";
        description = ''
          The command that reads a prompt and prints the answer: the name of a preset, or a shell command. Without one, notes are
          filed as they are, and sessions wait.
        '';
      };
      package = mkOption {
        type = types.nullOr types.package;
        default = null;
        example = lib.literalExpression "pkgs.claude-code";
        description = ''
          Package of the LLM command. It is on the timers' PATH. Without `command`, its main program is the command, with
          the arguments of the preset that runs a program of that name.
        '';
      };
    };
    extraPackages = mkOption {
      type = types.listOf types.package;
      default = [ ];
      example = lib.literalExpression "[ pkgs.nodejs ]";
      description = "Packages on the PATH of the timers, and so of the LLM command.";
    };
    targets = mkOption {
      type = types.listOf (types.either types.str (types.attrsOf types.str));
      default = [ ];
      example = [ "~/.codex/AGENTS.md" ];
      description = ''
        Files that get a section of notes: a path, or `{ path = "…"; repo = "HOST/OWNER/NAME"; }` for a file that gets the notes
        of that repository.
      '';
    };
    hooks = lib.mapAttrs (_: what: {
      enable = mkEnableOption "the hooks that capture sessions and recall notes, for ${what}";
    }) harnesses;
    sync.remote = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "git@example.com:ada/notes.git";
      description = ''
        Git remote through which several machines share the notes. With one, `memory-sync` runs after each consolidation. It must
        not hold a password or a token. On NixOS, `services.agent-memory.users` must name the one user whose notes they are.
      '';
    };
    consolidate = every {
      what = "`memory-consolidate`";
      hours = 2;
    };
    defrag = every {
      what = "`memory-defrag`";
      hours = 24;
      # Whoever sets an interval means it.
      calendar = memory: if memory.defrag.intervalHours == 24 then "daily" else null;
      calendarDefault = "if intervalHours == 24 then \"daily\" else null";
    };
    inherit environmentFile after;
  };

  config.assertions =
    lib.optionals axe.enable (
      noLiteralKeys "programs.axe.settings" axe.settings
      ++ noCopiedSecrets "programs.axe.settings" axe.settings
      ++ lib.concatLists (lib.mapAttrsToList agentAssertions axe.agents)
    )
    ++ lib.optionals (axe.enable && axe.gc.enable) (
      isCalendar "programs.axe.gc.schedule" (
        if builtins.isString axe.gc.schedule then axe.gc.schedule else null
      )
      ++ secretOutsideStore "programs.axe.gc.environmentFile" axe.gc.environmentFile
    )
    ++ lib.optionals memory.enable (
      [
        (saidOnce "llm.command" "llm.command" memory.llm.command)
        (saidOnce "sync.remote" "sync.remote" memory.sync.remote)
        (saidOnce "consolidate.schedule" "schedule.consolidate" memory.consolidate.schedule)
        (saidOnce "defrag.schedule" "schedule.defrag" memory.defrag.schedule)
        (saidOnce "consolidate.intervalHours" "schedule.consolidateIntervalHours"
          memory.consolidate.intervalHours
        )
        (saidOnce "defrag.intervalHours" "schedule.defragIntervalHours" memory.defrag.intervalHours)
      ]
      ++ wrongSettings
      ++ isCalendar "services.agent-memory.consolidate.schedule" memory.consolidate.schedule
      ++ isCalendar "services.agent-memory.defrag.schedule" memory.defrag.schedule
      ++ secretOutsideStore "services.agent-memory.environmentFile" memory.environmentFile
    );

  config.warnings = lib.optionals memory.enable (
    lib.optional (memory.consolidate.enable && command == null) ''
      services.agent-memory has no LLM command: notes are filed as they are, and sessions wait in the queue.
      Set services.agent-memory.llm.package or services.agent-memory.llm.command.
    ''
    ++ lib.optional (targets == [ ] && !lib.any (hook: hook.enable) (lib.attrValues memory.hooks)) ''
      services.agent-memory shows its notes to no agent. Set services.agent-memory.targets, such as
      [ "~/.codex/AGENTS.md" ], or switch on services.agent-memory.hooks.
    ''
  );
}
