# A job as sections of systemd units. Keep it in step with the templates in systemd/, which memory-install-cron uses.
{ lib, pkgs }:

{
  # Variables. Their values are escaped, so they cannot contain specifiers.
  environment ? { },
}:

let
  script = import ./script.nix { inherit lib pkgs; };
  secret = import ./secret.nix { inherit lib; };
  check = import ./check.nix { inherit pkgs; };
  escape = builtins.replaceStrings [ "%" ] [ "%%" ];
  quoted = text: "\"${builtins.replaceStrings [ "\\" "\"" ] [ "\\\\" "\\\"" ] text}\"";
  # A word of ExecStart.
  word =
    text:
    if builtins.match "[A-Za-z0-9_./:@=+,-]+" text != null then
      text
    else
      builtins.replaceStrings [ "\n" "$" ] [ "\\n" "$$" ] (quoted (escape text));
  seconds =
    n:
    if lib.mod n 3600 == 0 then
      "${toString (n / 3600)}h"
    else if lib.mod n 60 == 0 then
      "${toString (n / 60)}min"
    else
      toString n;
  least = first: second: if first < second then first else second;
in
name: job: {
  # As a line of the service; specifiers such as %h are kept.
  pathLine = path: quoted "PATH=${path}";

  unit = {
    Description = job.description;
    Documentation = job.documentation;
  }
  // lib.optionalAttrs (job.after != [ ]) { After = job.after; };

  service = {
    Type = "oneshot";
    ExecStart =
      if job.stdin == null && job.output == null && builtins.length job.commands == 1 then
        map (command: lib.concatStringsSep " " (map word command)) job.commands
      else
        [ "${script name { inherit (job) commands stdin output; }}" ];
    Environment = lib.mapAttrsToList (
      variable: value: quoted (escape "${variable}=${value}")
    ) environment;
    Nice = 10;
    UMask = "0077";
    NoNewPrivileges = true;
    LockPersonality = true;
    RestrictSUIDSGID = true;
    SystemCallArchitectures = "native";
  }
  // lib.optionalAttrs (job.environmentFile != null) (
    {
      EnvironmentFile = secret.toSystemd job.environmentFile;
    }
    // lib.optionalAttrs (!secret.isOptional job.environmentFile) {
      # The file may not be there yet. What the program itself reports is not repeated: it may have cost money.
      Restart = "on-failure";
      RestartSec = "5min";
      RestartPreventExitStatus = "1 2 3 4";
    }
  );

  timerUnit = {
    Description = "${job.description}, ${
      job.calendar or "every ${
        if lib.mod job.seconds 3600 == 0 then
          "${toString (job.seconds / 3600)} hours"
        else
          "${toString job.seconds} seconds"
      }"
    }";
  }
  // lib.optionalAttrs (job ? calendar) {
    # systemd ignores keys that begin with X-. This one makes the check part of the build.
    X-Checked = "${check.calendar job.calendar}";
  };

  timer =
    if job ? calendar then
      {
        OnCalendar = job.calendar;
        # Catch up on a run that was missed while the machine was off.
        Persistent = true;
      }
      // lib.optionalAttrs (job.randomized != null) { RandomizedDelaySec = job.randomized; }
    else
      {
        OnStartupSec = seconds (least job.firstAfter job.seconds);
        OnUnitActiveSec = seconds job.seconds;
        # Not a second run before the first.
        RandomizedDelaySec = seconds (least 120 (job.seconds / 10));
      }
      // lib.optionalAttrs (job.seconds < 600) { AccuracySec = "1s"; };
}
