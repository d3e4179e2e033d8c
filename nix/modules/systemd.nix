# A job as systemd's sections. The twin of the templates in systemd/, which memory-install-cron fills in.
{ lib, pkgs }:

{
  # Directories with programs; systemd's own marks such as %h stand.
  path,
  # Further variables. Values as they are, without marks.
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
        # A run that was missed while the machine was off is made up for.
        Persistent = true;
      }
    else
      {
        OnStartupSec = job.firstAfter;
        OnUnitActiveSec = job.interval;
        RandomizedDelaySec = "2min";
      };
}
