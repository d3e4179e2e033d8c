# What runs and when, independent of systemd and launchd, and the configuration files.
{
  config,
  lib,
  pkgs,
}:

let
  axe = config.programs.axe;
  memory = config.services.agent-memory;
  toml = pkgs.formats.toml { };
  json = pkgs.formats.json { };
  check = import ./check.nix { inherit pkgs; };

  # systemd and launchd do not count the hours in which a laptop sleeps: every 24 hours would be every third day. They
  # catch up on the times of a calendar.
  when =
    seconds:
    if seconds == 86400 then
      { calendar = "daily"; }
    else if seconds == 604800 then
      { calendar = "weekly"; }
    else
      { inherit seconds; };
  scheduleOf =
    schedule: if builtins.isString schedule then { calendar = schedule; } else when schedule.interval;

  plain = {
    stdin = null;
    output = null;
    environmentFile = null;
    after = [ ];
    randomized = null;
    # Seconds after login until the first run of an interval.
    firstAfter = 300;
  };

  agentJob =
    name: agent:
    lib.nameValuePair "axe-run-${name}" (
      plain
      // {
        description = "Run the agent ${name}";
        documentation = [ "man:axe-run(1)" ];
        label = "com.axe.run.${name}";
        log = "axe/${name}.log";
        commands = [
          (
            [ "${axe.package}/bin/axe-run" ]
            ++ lib.optional agent.skipIfEmpty "--skip-empty"
            ++ lib.optionals (agent.prompt != null) [
              "--prompt"
              agent.prompt
            ]
            ++ agent.extraArgs
            ++ [
              "--"
              name
            ]
          )
        ];
        inherit (agent)
          stdin
          output
          environmentFile
          after
          ;
      }
      // scheduleOf agent.schedule
    );

  memoryJob =
    {
      task,
      description,
      options,
      firstAfter,
      after ? [ ],
      commands ? [ ],
    }:
    plain
    // {
      inherit description firstAfter;
      after = after ++ memory.after;
      documentation = [ "man:memory-${task}(1)" ];
      label = "com.agent-memory.${task}";
      log = "agent-memory/${task}.log";
      commands = [
        [
          "${memory.package}/bin/memory-${task}"
          "--quiet"
        ]
      ]
      ++ commands;
      inherit (memory) environmentFile;
      # Not all machines ask the same service at midnight.
      randomized = "10min";
    }
    // (
      if options.schedule != null then
        { calendar = options.schedule; }
      else
        when (options.intervalHours * 3600)
    );

  command =
    if memory.llm.command != null then
      memory.llm.command
    else if memory.llm.package != null then
      # Its file name leads the programs to the preset.
      lib.getExe memory.llm.package
    else
      memory.settings.llm.command or null;

  # The typed options, as far as they differ from the programs' defaults, in the form of the file.
  schedule =
    lib.optionalAttrs (memory.consolidate.intervalHours != 2) {
      consolidateIntervalHours = memory.consolidate.intervalHours;
    }
    // lib.optionalAttrs (memory.consolidate.schedule != null) {
      consolidate = memory.consolidate.schedule;
    }
    // lib.optionalAttrs (memory.defrag.intervalHours != 24) {
      defragIntervalHours = memory.defrag.intervalHours;
    }
    // lib.optionalAttrs (memory.defrag.schedule != null && memory.defrag.schedule != "daily") {
      defrag = memory.defrag.schedule;
    };
  # One that is no set is reported by an assertion.
  section =
    name: values:
    let
      given = memory.settings.${name} or { };
    in
    lib.optionalAttrs (values != { } && lib.isAttrs given) { ${name} = given // values; };
  givenTargets = memory.settings.agentsMd.targets or [ ];
  memorySettings =
    memory.settings
    // section "schedule" schedule
    // section "llm" (lib.optionalAttrs (command != null) { inherit command; })
    // section "agentsMd" (
      lib.optionalAttrs (memory.targets != [ ]) {
        targets = (if builtins.isList givenTargets then givenTargets else [ ]) ++ memory.targets;
      }
    )
    // section "sync" (
      lib.optionalAttrs (memory.sync.remote != null) { inherit (memory.sync) remote; }
    );
in
{
  inherit command;
  # The parts of the file that typed options write into.
  sections = [
    "agentsMd"
    "llm"
    "schedule"
    "sync"
  ];
  targets = memorySettings.agentsMd.targets or [ ];

  packages = lib.optional axe.enable axe.package ++ lib.optional memory.enable memory.package;

  # What the timers find before everything else on their PATH.
  extraPackages =
    lib.optionals memory.enable (
      lib.optional (memory.llm.package != null) memory.llm.package ++ memory.extraPackages
    )
    ++ lib.optionals axe.enable axe.extraPackages;

  # The keys are the names of the units.
  jobs =
    lib.optionalAttrs axe.enable (
      lib.mapAttrs' agentJob (lib.filterAttrs (_: agent: agent.schedule != null) axe.agents)
    )
    // lib.optionalAttrs (axe.enable && axe.gc.enable) {
      axe-gc =
        plain
        // {
          description = "Analyse and trim the logs of all agents";
          documentation = [ "man:axe-gc(1)" ];
          label = "com.axe.gc";
          log = "axe/gc.log";
          commands = [
            [
              "${axe.package}/bin/axe-gc"
              "--all"
            ]
          ];
          randomized = "10min";
          inherit (axe.gc) environmentFile after;
        }
        // scheduleOf axe.gc.schedule;
    }
    // lib.optionalAttrs (memory.enable && memory.consolidate.enable) {
      agent-memory-consolidate = memoryJob {
        task = "consolidate";
        description = "Turn the queue of sessions into notes";
        options = memory.consolidate;
        firstAfter = 300;
        commands = lib.optional (memorySettings.sync.remote or null != null) [
          "${memory.package}/bin/memory-sync"
        ];
      };
    }
    // lib.optionalAttrs (memory.enable && memory.defrag.enable) {
      agent-memory-defrag = memoryJob {
        task = "defrag";
        description = "Keep the notes in order";
        options = memory.defrag;
        firstAfter = 900;
        # Only one of the two can work on the notes at a time.
        after = [ "agent-memory-consolidate.service" ];
      };
    };

  # The keys are paths in the configuration directory of the family.
  axeFiles =
    lib.optionalAttrs (axe.enable && axe.settings != { }) {
      "config.toml" = check.axeConfig axe.package (toml.generate "axe-config.toml" axe.settings);
    }
    // lib.optionalAttrs axe.enable (
      lib.mapAttrs' (
        name: agent:
        lib.nameValuePair "agents/${name}.toml" (
          # The store path does not contain the name: an agent's name may contain characters that a store path may not.
          check.agent axe.package (toml.generate "axe-agent.toml" ({ inherit name; } // agent.settings))
        )
      ) axe.agents
    );

  memoryFiles = lib.optionalAttrs (memory.enable && memorySettings != { }) {
    "config.json" = check.memoryConfig memory.package (
      json.generate "agent-memory-config.json" memorySettings
    );
  };

  # The files of the hooks that are switched on: by their paths in the home directory, in the one for configuration, and
  # in /etc for the hosts that link to them.
  hooks =
    programs:
    let
      enabled = lib.filterAttrs (harness: _: memory.enable && memory.hooks.${harness}.enable) (
        import ./hooks.nix { inherit programs; }
      );
      source =
        path: file:
        let
          name = "agent-memory-${baseNameOf path}";
        in
        if file ? text then pkgs.writeText name file.text else json.generate name file.settings;
      files =
        kind:
        lib.concatLists (
          lib.mapAttrsToList (
            harness: hook:
            lib.mapAttrsToList (path: file: {
              inherit harness path;
              source = source path file;
              etc = "agent-memory/hooks/${harness}/${baseNameOf path}";
            }) (hook.${kind} or { })
          ) enabled
        );
    in
    {
      inherit enabled;
      homeFiles = files "homeFiles";
      configFiles = files "configFiles";
    };
}
