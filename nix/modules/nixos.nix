# For NixOS: timers in every user's own systemd, and files in /etc that each user's configuration links to.
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
      # Where a user has no git.
      (lib.makeBinPath [ pkgs.gitMinimal ])
    ];
  };
  # No model is asked on behalf of root or of a service's user.
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
        # NixOS sets a PATH of its own, which would count beside ours.
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
