# For NixOS: timers in each user's systemd, and files in /etc with links from each user's configuration.
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

  systemd = import ./systemd.nix { inherit lib pkgs; } {
    path = [
      "/run/wrappers/bin"
      "%h/.local/bin"
      "%h/.nix-profile/bin"
      "/etc/profiles/per-user/%u/bin"
      "/nix/var/nix/profiles/default/bin"
      "/run/current-system/sw/bin"
      # For users who have no git.
      (lib.makeBinPath [ pkgs.gitMinimal ])
    ];
  };
  # No runs for root and other system users.
  people.ConditionUser = "!@system";
  below = dir: lib.mapAttrs' (file: source: lib.nameValuePair "${dir}/${file}" { inherit source; });
in
{
  _class = "nixos";
  imports = [ ./options.nix ];

  config = {
    environment.systemPackages = packages;
    environment.etc = below "axe" axeFiles // below "agent-memory" memoryFiles;
    system.userActivationScripts = lib.optionalAttrs isOn {
      axe = {
        text = "${import ./links.nix { inherit lib pkgs; } {
          inherit axeFiles memoryFiles;
          axeDir = ".config";
        }}";
        deps = [ ];
      };
    };

    systemd.user.services = lib.mapAttrs (
      name: job:
      let
        sections = systemd name job;
      in
      {
        # NixOS would add a PATH of its own to ours.
        path = lib.mkForce [ ];
        unitConfig = sections.unit // people;
        serviceConfig = sections.service;
      }
    ) jobs;
    systemd.user.timers = lib.mapAttrs (
      name: job:
      let
        sections = systemd name job;
      in
      {
        description = sections.timerDescription;
        unitConfig = people;
        timerConfig = sections.timer;
        wantedBy = [ "timers.target" ];
      }
    ) jobs;
  };
}
