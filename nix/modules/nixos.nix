# For NixOS: timers in each user's systemd, and files in /etc with links from each user's configuration.
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
  inherit (config.services.agent-memory) users;

  systemd = import ./systemd.nix { inherit lib pkgs; } { };
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
  # No runs for root and other system users. Several conditions of this kind need a bar: one of them must hold.
  people.ConditionUser = if users == null then "!@system" else map (user: "|${user}") users;
  hooks = all.hooks "/run/current-system/sw/bin";
  below = dir: lib.mapAttrs' (file: source: lib.nameValuePair "${dir}/${file}" { inherit source; });
in
{
  _class = "nixos";
  imports = [ ./options.nix ];

  options.services.agent-memory.users = lib.mkOption {
    type = lib.types.nullOr (lib.types.listOf lib.types.str);
    default = null;
    example = [ "ada" ];
    description = ''
      Users whose timers run, those of agents included. If `null`, those of all users who are not system users. Each user's
      timers read `environmentFile` as that user: with `/run/secrets/llm-%u.env`, each has a file of their own.
    '';
  };

  config = {
    # All users have the same file, and their notes would meet in the same remote.
    assertions =
      let
        memory = config.services.agent-memory;
        remote = memory.settings.sync.remote or memory.sync.remote;
        isName = user: builtins.match "[a-zA-Z0-9_][a-zA-Z0-9_.-]*[$]?" user != null;
      in
      lib.optionals memory.enable (
        [
          {
            assertion = remote == null || (users != null && builtins.length users == 1);
            message = ''
              services.agent-memory.sync.remote would mix the notes of all users. Name the one whose notes they are in
              services.agent-memory.users, or let each user set it with home-manager.
            '';
          }
        ]
        ++ map (user: {
          assertion = isName user;
          message = "services.agent-memory.users: \"${user}\" is not the name of a user.";
        }) (if users == null then [ ] else users)
      );
    environment.systemPackages = all.packages;
    environment.etc =
      below "axe" axeFiles
      // below "agent-memory" memoryFiles
      // lib.listToAttrs (
        map (file: lib.nameValuePair file.etc { inherit (file) source; }) (
          hooks.homeFiles ++ hooks.configFiles
        )
      );
    # Also when both families are off: it then removes the links that are left.
    system.userActivationScripts.axe = {
      text = "${import ./links.nix { inherit lib pkgs; } {
        inherit axeFiles memoryFiles;
        axeDir = ".config";
        inherit hooks;
      }}";
      deps = [ ];
    };

    warnings =
      let
        isLingering = user: (config.users.users.${user}.linger or false) == true;
        leaving = lib.filter (user: !isLingering user) (if users == null then [ ] else users);
      in
      lib.optional (jobs != { } && leaving != [ ]) ''
        services.agent-memory.users: timers stop when these users log out: ${lib.concatStringsSep ", " leaving}.
        To keep them running, set users.users.NAME.linger = true.
      '';

    systemd.user.services = lib.mapAttrs (
      name: job:
      let
        sections = systemd name job;
      in
      {
        path = all.extraPackages;
        # What NixOS and this machine's configuration add to the PATH comes first.
        environment.PATH = lib.mkForce (
          lib.concatStringsSep ":" (
            lib.optional (config.systemd.user.services.${name}.path != [ ]) (
              lib.makeBinPath config.systemd.user.services.${name}.path
            )
            ++ path
          )
        );
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
        unitConfig = sections.timerUnit // people;
        timerConfig = sections.timer;
        wantedBy = [ "timers.target" ];
      }
    ) jobs;
  };
}
