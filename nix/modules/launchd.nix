# A job as keys of launchd. Keep it in step with the templates in launchd/, which memory-install-cron uses.
{ lib, pkgs }:

{
  home,
  # Directories with programs.
  path,
  environment ? { },
}:

let
  script = import ./script.nix { inherit lib pkgs; };
  calendar = import ./calendar.nix;
in
name: job:
let
  log = "${home}/Library/Logs/${job.log}";
  isPlain = job.stdin == null && job.environmentFile == null;
in
{
  Label = job.label;
  ProgramArguments =
    if isPlain then
      job.command
    else
      [ "${script name { inherit (job) command stdin environmentFile; }}" ];
  EnvironmentVariables = {
    PATH = lib.concatStringsSep ":" path;
  }
  // environment;
  RunAtLoad = false;
  KeepAlive = false;
  ProcessType = "Background";
  StandardOutPath = log;
  StandardErrorPath = log;
}
// (
  if job ? calendar then
    # options.nix reports any other name. The default keeps an evaluation error from hiding that report.
    { StartCalendarInterval = calendar.${job.calendar} or [ ]; }
  else
    { StartInterval = job.seconds; }
)
