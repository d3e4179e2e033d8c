# For nix-darwin: launchd agents of the primary user, and files in /etc with links from the user's configuration.
{
  config,
  lib,
  pkgs,
  ...
}:

let
  inherit (import ./jobs.nix { inherit config lib pkgs; })
    packages
    jobs
    axeFiles
    memoryFiles
    ;
  isOn = config.programs.axe.enable || config.services.agent-memory.enable;
  user = config.system.primaryUser;
  home = config.system.primaryUserHome;

  launchd = import ./launchd.nix { inherit lib pkgs; } {
    inherit home;
    path = [
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
  links = import ./links.nix { inherit lib pkgs; } {
    inherit axeFiles memoryFiles;
    axeDir = "Library/Application Support";
  };
  below = dir: lib.mapAttrs' (file: source: lib.nameValuePair "${dir}/${file}" { inherit source; });
  logDirectories = lib.unique (
    lib.mapAttrsToList (_: job: "${home}/Library/Logs/${dirOf job.log}") jobs
  );
in
{
  _class = "darwin";
  imports = [ ./options.nix ];

  config = {
    environment.systemPackages = packages;
    environment.etc = below "axe" axeFiles // below "agent-memory" memoryFiles;

    launchd.user.agents =
      lib.mapAttrs (name: job: { serviceConfig = launchd name job; }) jobs
      // lib.optionalAttrs isOn {
        # nix-darwin loads it at each switch, launchd at each login.
        axe-links.serviceConfig = {
          Label = "com.axe.links";
          ProgramArguments = [
            "/bin/sh"
            "-c"
            (lib.concatStringsSep " && " (
              [ "/bin/wait4path /nix/store" ]
              # launchd creates a log file, but not its directory.
              ++ lib.optional (logDirectories != [ ]) "mkdir -p ${lib.escapeShellArgs logDirectories}"
              ++ [ "exec ${links}" ]
            ))
          ];
          RunAtLoad = true;
          KeepAlive = false;
          ProcessType = "Background";
        };
      };
  };
}
