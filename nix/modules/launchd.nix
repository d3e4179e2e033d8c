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
  calendar = import ./calendar.nix { inherit lib; };
in
name: job:
let
  log = "${home}/Library/Logs/${job.log}";
  isPlain =
    job.stdin == null
    && job.output == null
    && job.environmentFile == null
    && builtins.length job.commands == 1;
in
{
  Label = job.label;
  ProgramArguments =
    if isPlain then
      builtins.head job.commands
    else
      [
        "${script name {
          inherit (job)
            commands
            stdin
            output
            environmentFile
            ;
        }}"
      ];
  EnvironmentVariables = {
    PATH = lib.concatStringsSep ":" path;
  }
  // environment;
  RunAtLoad = false;
  KeepAlive = false;
  ProcessType = "Background";
  Nice = 10;
  StandardOutPath = log;
  StandardErrorPath = log;
}
// (
  if job ? calendar then
    let
      times = calendar.toLaunchd job.calendar;
    in
    # options.nix reports any other calendar. The default keeps an evaluation error from hiding that report.
    {
      StartCalendarInterval = if times == null then [ ] else times;
    }
  else
    { StartInterval = job.seconds; }
)
