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
  calendar = import ./calendar.nix;
  inherit (pkgs.stdenv.hostPlatform) isDarwin;

  environmentFile = mkOption {
    # Not of type path: Nix would copy the file into the store, which every user can read.
    type = types.nullOr types.str;
    default = null;
    example = "/run/secrets/llm.env";
    description = ''
      File with API keys for the timer, as lines of the form `KEY=VALUE`, which are added to its environment.
      Must be an absolute path, given as a string, and must not be in the Nix store.
    '';
  };

  every =
    { what, hours }:
    {
      enable = mkOption {
        type = types.bool;
        default = true;
        description = "Whether to run ${what} on a timer.";
      };
      intervalHours = mkOption {
        type = types.int;
        default = hours;
        description = "Hours between two runs, from 1 to 8784. Also written to `config.json`.";
      };
    };

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
        type = types.nullOr (
          types.either types.str (
            types.submodule {
              options.interval = mkOption {
                type = types.int;
                description = "Seconds between two runs.";
              };
            }
          )
        );
        default = null;
        example = "daily";
        description = ''
          When to run the agent: an interval in seconds, such as `{ interval = 3600; }`, or a systemd calendar
          expression. On macOS, only these expressions work: ${lib.concatStringsSep ", " (lib.attrNames calendar)}.
          If `null`, there is no timer.
        '';
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
      inherit environmentFile;
    };
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

  secretOutsideStore = path: file: [
    {
      assertion = file == null || lib.hasPrefix "/" file;
      message = "${path} must be an absolute path, but is \"${toString file}\".";
    }
    {
      assertion = file == null || !lib.hasPrefix builtins.storeDir file;
      message = "${path} is in the Nix store, which every user can read: \"${toString file}\".";
    }
    {
      assertion = file == null || oneLine file;
      message = "${path} must be a single line without a backslash at its end.";
    }
  ];

  # systemd also ends a line at a carriage return, and continues it after a backslash at its end.
  oneLine = text: builtins.match "([^[:cntrl:]]*[^\\[:cntrl:]])?" text != null;

  hoursInRange = path: hours: {
    assertion = hours >= 1 && hours <= 366 * 24;
    message = "${path} must be between 1 and 8784 hours, but is ${toString hours}.";
  };

  sameHours = name: path: hours: {
    assertion = (memory.settings.schedule or { }).${name} or hours == hours;
    message = "services.agent-memory.settings.schedule.${name} differs from ${path}: set only the latter.";
  };

  # The same check as in axe-run. A name that becomes part of a unit's name must also be plain ASCII.
  isFileName =
    name:
    builtins.stringLength name <= 200 && builtins.match "[^./\\[:cntrl:]][^/\\[:cntrl:]]*" name != null;
  isUnitName = name: builtins.match "[A-Za-z0-9_][A-Za-z0-9_.-]*" name != null;

  agentAssertions =
    name: agent:
    let
      path = "programs.axe.agents.${name}";
      inherit (agent) schedule;
      isCalendar = builtins.isString schedule;
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
        assertion = isCalendar || schedule == null || schedule.interval >= 1;
        message = "${path}.schedule.interval must be at least 1 second, but is ${
          toString (if isCalendar || schedule == null then 0 else schedule.interval)
        }.";
      }
      {
        assertion = !isCalendar || (oneLine schedule && builtins.match "[[:space:]]*" schedule == null);
        message = "${path}.schedule must be a single line with a calendar expression.";
      }
      {
        assertion = !isCalendar || !isDarwin || calendar ? ${schedule};
        message = "${path}.schedule: launchd cannot express \"${
          toString (if isCalendar then schedule else "")
        }\"; use one of ${lib.concatStringsSep ", " (lib.attrNames calendar)}, or { interval = SECONDS; }.";
      }
      {
        assertion = schedule != null || agent.stdin == null;
        message = "${path}.stdin is only used by a timer: set ${path}.schedule too.";
      }
      {
        assertion = schedule != null || agent.environmentFile == null;
        message = "${path}.environmentFile is only used by a timer: set ${path}.schedule too.";
      }
    ]
    ++ secretOutsideStore "${path}.environmentFile" agent.environmentFile
    ++ noLiteralKeys "${path}.settings" agent.settings;
in
{
  options.programs.axe = {
    enable = mkEnableOption "axe, small programs that run LLM agents and keep what they learn";
    package = mkOption {
      type = types.package;
      default = pkgs.callPackage ../package.nix { };
      defaultText = lib.literalExpression "the flake's package";
      description = "Package that provides the programs.";
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
        llm.command = "claude";
        agentsMd.targets = [ "~/.claude/CLAUDE.md" ];
      };
      description = ''
        Content of `config.json` of the memory programs. If this is empty and both intervals have their
        default, the file is not created, so that a file of your own can take effect.
      '';
    };
    consolidate = every {
      what = "`memory-consolidate`";
      hours = 2;
    };
    defrag = every {
      what = "`memory-defrag`";
      hours = 24;
    };
    inherit environmentFile;
  };

  config.assertions =
    lib.optionals axe.enable (
      noLiteralKeys "programs.axe.settings" axe.settings
      ++ lib.concatLists (lib.mapAttrsToList agentAssertions axe.agents)
    )
    ++ lib.optionals memory.enable (
      [
        (hoursInRange "services.agent-memory.consolidate.intervalHours" memory.consolidate.intervalHours)
        (hoursInRange "services.agent-memory.defrag.intervalHours" memory.defrag.intervalHours)
        (sameHours "consolidateIntervalHours" "services.agent-memory.consolidate.intervalHours"
          memory.consolidate.intervalHours
        )
        (sameHours "defragIntervalHours" "services.agent-memory.defrag.intervalHours"
          memory.defrag.intervalHours
        )
      ]
      ++ secretOutsideStore "services.agent-memory.environmentFile" memory.environmentFile
    );
}
