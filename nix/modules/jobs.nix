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

  scheduled = lib.filterAttrs (_: agent: agent.schedule != null) axe.agents;

  agentJob =
    name: agent:
    lib.nameValuePair "axe-run-${name}" (
      {
        description = "Run the agent ${name}";
        label = "com.axe.run.${name}";
        log = "axe/${name}.log";
        command = [
          "${axe.package}/bin/axe-run"
          "--"
          name
        ];
        after = [ ];
        firstAfter = "5min";
        inherit (agent) stdin environmentFile;
      }
      // (
        if builtins.isString agent.schedule then
          { calendar = agent.schedule; }
        else
          {
            seconds = agent.schedule.interval;
            interval = toString agent.schedule.interval;
          }
      )
    );

  memoryJob =
    {
      task,
      description,
      hours,
      firstAfter,
      after ? [ ],
    }:
    {
      inherit description firstAfter after;
      label = "com.agent-memory.${task}";
      log = "agent-memory/${task}.log";
      command = [
        "${memory.package}/bin/memory-${task}"
        "--quiet"
      ];
      stdin = null;
      inherit (memory) environmentFile;
      seconds = hours * 3600;
      interval = "${toString hours}h";
    };

  hours = {
    consolidateIntervalHours = memory.consolidate.intervalHours;
    defragIntervalHours = memory.defrag.intervalHours;
  };
  usualHours = {
    consolidateIntervalHours = 2;
    defragIntervalHours = 24;
  };
in
{
  packages = lib.optional axe.enable axe.package ++ lib.optional memory.enable memory.package;

  # The keys are the names of the units.
  jobs =
    lib.optionalAttrs axe.enable (lib.mapAttrs' agentJob scheduled)
    // lib.optionalAttrs (memory.enable && memory.consolidate.enable) {
      agent-memory-consolidate = memoryJob {
        task = "consolidate";
        description = "Turn the queue of sessions into notes";
        hours = memory.consolidate.intervalHours;
        firstAfter = "5min";
      };
    }
    // lib.optionalAttrs (memory.enable && memory.defrag.enable) {
      agent-memory-defrag = memoryJob {
        task = "defrag";
        description = "Keep the notes in order";
        hours = memory.defrag.intervalHours;
        firstAfter = "15min";
        # Only one of the two can work on the notes at a time.
        after = [ "agent-memory-consolidate.service" ];
      };
    };

  # The keys are paths in the configuration directory of the family.
  axeFiles =
    lib.optionalAttrs (axe.enable && axe.settings != { }) {
      "config.toml" = toml.generate "axe-config.toml" axe.settings;
    }
    // lib.optionalAttrs axe.enable (
      lib.mapAttrs' (
        name: agent:
        lib.nameValuePair "agents/${name}.toml" (
          # The store path does not contain the name: an agent's name may contain characters that a store path may not.
          toml.generate "axe-agent.toml" ({ inherit name; } // agent.settings)
        )
      ) axe.agents
    );

  memoryFiles = lib.optionalAttrs (memory.enable && (memory.settings != { } || hours != usualHours)) {
    "config.json" = json.generate "agent-memory-config.json" (
      memory.settings // { schedule = (memory.settings.schedule or { }) // hours; }
    );
  };
}
