# The options of all three modules, and what must hold of their values.
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
    # No path type: a path would be copied into the store, which everybody can read.
    type = types.nullOr types.str;
    default = null;
    example = "/run/secrets/llm.env";
    description = ''
      A file of `KEY=VALUE` lines that the timer puts into the environment, for API keys. An absolute path,
      written as a string, outside the Nix store.
    '';
  };

  every =
    { what, hours }:
    {
      enable = mkOption {
        type = types.bool;
        default = true;
        description = "Whether a timer ${what}.";
      };
      intervalHours = mkOption {
        type = types.int;
        default = hours;
        description = "Hours from one run to the next, 1 to 8784. The configuration file gets the same number.";
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
          The agent's file, `agents/<name>.toml`; `model` is required. `name` is set to the agent's name.
        '';
      };
      schedule = mkOption {
        type = types.nullOr (
          types.either types.str (
            types.submodule {
              options.interval = mkOption {
                type = types.int;
                description = "Seconds from one run to the next.";
              };
            }
          )
        );
        default = null;
        example = "daily";
        description = ''
          When a timer runs the agent: `{ interval = 3600; }` for every so many seconds, or a calendar
          expression of systemd. launchd knows only ${lib.concatStringsSep ", " (lib.attrNames calendar)}.
          `null`: no timer.
        '';
      };
      stdin = mkOption {
        type = types.nullOr types.str;
        default = null;
        example = "git -C ~/src/project log --since=yesterday";
        description = ''
          Lines for bash, whose output the scheduled run gets on its standard input. Where they fail, the agent
          is not run.
        '';
      };
      inherit environmentFile;
    };
  };

  # Every key called api_key, as the path that leads to it. "none" is what services that ask for none are given.
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
        ${key} would be written into the Nix store, which everybody can read.
        Name the key instead: api_key_file = "/run/secrets/…" or api_key_command = "pass show …".
      '';
    }) (literalKeys path settings);

  secretOutsideStore = path: file: [
    {
      assertion = file == null || lib.hasPrefix "/" file;
      message = "${path} must be an absolute path: \"${toString file}\" is not.";
    }
    {
      assertion = file == null || !lib.hasPrefix builtins.storeDir file;
      message = "${path} lies in the Nix store, which everybody can read: \"${toString file}\".";
    }
    {
      assertion = file == null || oneLine file;
      message = "${path} must be one line, without a backslash at its end.";
    }
  ];

  # To systemd a carriage return ends a line too, and a backslash at the end carries it on.
  oneLine = text: builtins.match "([^[:cntrl:]]*[^\\[:cntrl:]])?" text != null;

  hoursInRange = path: hours: {
    assertion = hours >= 1 && hours <= 366 * 24;
    message = "${path} must be 1 to 8784 hours: ${toString hours} is not.";
  };

  sameHours = name: path: hours: {
    assertion = (memory.settings.schedule or { }).${name} or hours == hours;
    message = "services.agent-memory.settings.schedule.${name} differs from ${path}: set the latter alone.";
  };

  # As axe-run checks it. What becomes part of a unit's name must also be plain ASCII.
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
        message = "programs.axe.agents: \"${name}\" cannot be an agent's name: no slash, no control character, no dot in front, at most 200 bytes.";
      }
      {
        assertion = agent.settings ? model;
        message = "${path}.settings.model is not set: an agent needs a model, such as \"anthropic/claude-sonnet-4-5\".";
      }
      {
        assertion = schedule == null || isUnitName name;
        message = "${path}.schedule: a timer's name takes only letters, digits, \"_\", \".\" and \"-\" of ASCII: call the agent by such a name.";
      }
      {
        assertion = isCalendar || schedule == null || schedule.interval >= 1;
        message = "${path}.schedule.interval must be at least 1 second: ${
          toString (if isCalendar || schedule == null then 0 else schedule.interval)
        } is not.";
      }
      {
        assertion = !isCalendar || (oneLine schedule && builtins.match "[[:space:]]*" schedule == null);
        message = "${path}.schedule must be one line that says when.";
      }
      {
        assertion = !isCalendar || !isDarwin || calendar ? ${schedule};
        message = "${path}.schedule: launchd cannot express \"${
          toString (if isCalendar then schedule else "")
        }\"; use one of ${lib.concatStringsSep ", " (lib.attrNames calendar)}, or { interval = SECONDS; }.";
      }
      {
        assertion = schedule != null || agent.stdin == null;
        message = "${path}.stdin counts only for a timer: set ${path}.schedule too.";
      }
      {
        assertion = schedule != null || agent.environmentFile == null;
        message = "${path}.environmentFile counts only for a timer: set ${path}.schedule too.";
      }
    ]
    ++ secretOutsideStore "${path}.environmentFile" agent.environmentFile
    ++ noLiteralKeys "${path}.settings" agent.settings;
in
{
  options.programs.axe = {
    enable = mkEnableOption "axe: small programs that run LLM agents and keep what they learn";
    package = mkOption {
      type = types.package;
      default = pkgs.callPackage ../package.nix { };
      defaultText = lib.literalExpression "the flake's package";
      description = "The package that has all the programs.";
    };
    settings = mkOption {
      type = types.attrsOf toml.type;
      default = { };
      example = {
        providers.openai.api_key_file = "/run/secrets/openai";
        retry.max = 5;
      };
      description = ''
        The file `config.toml`; left out if empty. It lies in the Nix store, where everybody can read it:
        name keys with `api_key_file` or `api_key_command`.
      '';
    };
    agents = mkOption {
      type = types.attrsOf agent;
      default = { };
      description = "Agents by name.";
    };
  };

  options.services.agent-memory = {
    enable = mkEnableOption "timers that make notes of agents' sessions and keep the notes in order";
    package = mkOption {
      type = types.package;
      default = axe.package;
      defaultText = lib.literalExpression "config.programs.axe.package";
      description = "The package that the timers run and that goes on PATH.";
    };
    settings = mkOption {
      type = types.attrsOf json.type;
      default = { };
      example = {
        llm.command = "claude";
        agentsMd.targets = [ "~/.claude/CLAUDE.md" ];
      };
      description = ''
        The file `config.json` of the memory programs. Left out if this is empty and the intervals are the
        default ones: a file of your own is then in force.
      '';
    };
    consolidate = every {
      what = "runs `memory-consolidate`";
      hours = 2;
    };
    defrag = every {
      what = "runs `memory-defrag`";
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
