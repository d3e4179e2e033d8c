# What is to run and when, before systemd or launchd have their say; and the files that it reads.
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

  # By the name of the unit.
  jobs =
    lib.optionalAttrs axe.enable (lib.mapAttrs' agentJob scheduled)
    // lib.optionalAttrs (memory.enable && memory.consolidate.enable) {
      agent-memory-consolidate = memoryJob {
        task = "consolidate";
        description = "Make notes of what waits in the queue";
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
        # Only one of the two works on the notes at a time.
        after = [ "agent-memory-consolidate.service" ];
      };
    };

  # By their paths below the directory of the family.
  axeFiles =
    lib.optionalAttrs (axe.enable && axe.settings != { }) {
      "config.toml" = toml.generate "axe-config.toml" axe.settings;
    }
    // lib.optionalAttrs axe.enable (
      lib.mapAttrs' (
        name: agent:
        lib.nameValuePair "agents/${name}.toml" (
          # The name is not part of the store path: an agent's name may hold what that may not.
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
