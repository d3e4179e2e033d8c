# For nix-darwin: launchd agents of the primary user, and files in /etc with links from the user's configuration.
{
  config,
  lib,
  pkgs,
  ...
}:

let
  all = import ./jobs.nix { inherit config lib pkgs; };
  inherit (all)
    jobs
    axeFiles
    memoryFiles
    ;
  isOn = config.programs.axe.enable || config.services.agent-memory.enable;
  user = config.system.primaryUser;
  home = config.system.primaryUserHome;

  launchd = import ./launchd.nix { inherit lib pkgs; } {
    inherit home;
    path = map (package: "${lib.getBin package}/bin") all.extraPackages ++ [
      "${home}/.local/bin"
      "${home}/.nix-profile/bin"
      "/etc/profiles/per-user/${toString user}/bin"
      "/run/current-system/sw/bin"
      "/nix/var/nix/profiles/default/bin"
      "/opt/homebrew/bin"
      "/usr/local/bin"
      "/usr/bin"
      "/bin"
      "/usr/sbin"
      "/sbin"
      # For users who have no git.
      (lib.makeBinPath [ pkgs.gitMinimal ])
    ];
  };
  # At login, launchd may be faster than the volume of the Nix store.
  waiting = arguments: [
    "/bin/sh"
    "-c"
    "/bin/wait4path /nix/store && exec ${lib.escapeShellArgs arguments}"
  ];

  hooks = all.hooks "/run/current-system/sw/bin";
  logDirectories = lib.unique (
    lib.mapAttrsToList (_: job: "${home}/Library/Logs/${dirOf job.log}") jobs
  );
  links = import ./links.nix { inherit lib pkgs; } {
    inherit axeFiles memoryFiles;
    axeDir = "Library/Application Support";
    inherit hooks;
    # launchd creates a log file, but not its directory.
    more = lib.optionalString (
      logDirectories != [ ]
    ) "mkdir -p -- ${lib.escapeShellArgs logDirectories}";
  };
  below = dir: lib.mapAttrs' (file: source: lib.nameValuePair "${dir}/${file}" { inherit source; });
in
{
  _class = "darwin";
  imports = [ ./options.nix ];

  config = {
    environment.systemPackages = all.packages;
    environment.etc =
      below "axe" axeFiles
      // below "agent-memory" memoryFiles
      // lib.listToAttrs (
        map (file: lib.nameValuePair file.etc { inherit (file) source; }) (
          hooks.homeFiles ++ hooks.configFiles
        )
      );

    assertions = lib.optional isOn {
      assertion = user != null;
      message = "programs.axe and services.agent-memory need system.primaryUser: the user whose files and timers they are.";
    };

    # Also when both families are off: it then removes the links that are left.
    system.activationScripts.postActivation.text = lib.optionalString (user != null) ''
      # axe: files of ${user}
      launchctl asuser "$(id -u -- ${lib.escapeShellArg user})" \
        sudo --user=${lib.escapeShellArg user} --set-home -- ${links} || true
    '';

    launchd.user.agents = lib.mapAttrs (
      name: job:
      let
        agent = launchd name job;
      in
      {
        serviceConfig = agent // {
          ProgramArguments = waiting agent.ProgramArguments;
        };
      }
    ) jobs;
  };
}
