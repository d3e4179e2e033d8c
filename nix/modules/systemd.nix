# A job as sections of systemd units. Keep it in step with the templates in systemd/, which memory-install-cron uses.
{ lib, pkgs }:

{
  # Directories with programs. Specifiers such as %h are kept.
  path,
  # More variables. Their values are escaped, so they cannot contain specifiers.
  environment ? { },
}:

let
  script = import ./script.nix { inherit lib pkgs; };
  escape = builtins.replaceStrings [ "%" ] [ "%%" ];
  quoted = text: "\"${builtins.replaceStrings [ "\\" "\"" ] [ "\\\\" "\\\"" ] text}\"";
in
name: job: {
  unit = {
    Description = job.description;
  }
  // lib.optionalAttrs (job.after != [ ]) { After = job.after; };

  service = {
    Type = "oneshot";
    ExecStart =
      if job.stdin == null then
        lib.concatStringsSep " " job.command
      else
        "${script name { inherit (job) command stdin; }}";
    Environment = [
      (quoted "PATH=${lib.concatStringsSep ":" path}")
    ]
    ++ lib.mapAttrsToList (variable: value: quoted (escape "${variable}=${value}")) environment;
    UMask = "0077";
    NoNewPrivileges = true;
    LockPersonality = true;
    RestrictSUIDSGID = true;
    SystemCallArchitectures = "native";
  }
  // lib.optionalAttrs (job.environmentFile != null) {
    EnvironmentFile = escape job.environmentFile;
  };

  timerDescription = "${job.description}, ${
    job.calendar
      or "every ${job.interval}${lib.optionalString (!lib.hasSuffix "h" job.interval) " seconds"}"
  }";

  timer =
    if job ? calendar then
      {
        OnCalendar = job.calendar;
        # Catch up on a run that was missed while the machine was off.
        Persistent = true;
      }
    else
      {
        OnStartupSec = job.firstAfter;
        OnUnitActiveSec = job.interval;
        RandomizedDelaySec = "2min";
      };
}
