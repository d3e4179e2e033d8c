# For home-manager, on Linux and macOS. It sets both systemd units and launchd agents; home-manager uses
# those of the platform.
{
  config,
  lib,
  options,
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
  inherit (pkgs.stdenv.hostPlatform) isDarwin;
  inherit (config.home) homeDirectory profileDirectory username;

  # The variables of the session if home-manager manages the XDG directories. The programs find their files by them.
  environment = lib.optionalAttrs config.xdg.enable {
    XDG_CACHE_HOME = config.xdg.cacheHome;
    XDG_CONFIG_HOME = config.xdg.configHome;
    XDG_DATA_HOME = config.xdg.dataHome;
    XDG_STATE_HOME = config.xdg.stateHome;
  };
  # The LLM command can be anywhere. git is last, so that the user's own git is found first.
  path =
    map (package: "${lib.getBin package}/bin") all.extraPackages
    ++ lib.unique [
      "${profileDirectory}/bin"
      "${homeDirectory}/.nix-profile/bin"
      "/etc/profiles/per-user/${username}/bin"
      "${homeDirectory}/.local/bin"
    ];
  git = lib.makeBinPath [ pkgs.gitMinimal ];

  systemd = import ./systemd.nix { inherit lib pkgs; } { inherit environment; };
  systemdPath = lib.concatStringsSep ":" (
    map (builtins.replaceStrings [ "%" ] [ "%%" ]) path
    ++ [
      "/run/wrappers/bin"
      "/run/current-system/sw/bin"
      "/nix/var/nix/profiles/default/bin"
      "/usr/local/bin"
      "/usr/bin"
      "/bin"
      git
    ]
  );
  # home-manager itself lets each agent wait for the Nix store.
  launchd = import ./launchd.nix { inherit lib pkgs; } {
    home = homeDirectory;
    path = path ++ [
      "/run/current-system/sw/bin"
      "/nix/var/nix/profiles/default/bin"
      "/opt/homebrew/bin"
      "/usr/local/bin"
      "/usr/bin"
      "/bin"
      "/usr/sbin"
      "/sbin"
      git
    ];
    inherit environment;
  };

  below = dir: lib.mapAttrs' (file: source: lib.nameValuePair "${dir}/${file}" { inherit source; });
  # axe's directory on macOS, unless XDG_CONFIG_HOME is set.
  inLibrary = isDarwin && !config.xdg.enable;
  # launchd creates a log file, but not its directory.
  logDirectories = lib.mapAttrs' (
    _: job: lib.nameValuePair "Library/Logs/${dirOf job.log}/.keep" { text = ""; }
  ) jobs;

  # home-manager's own module for Claude Code writes the file that our hooks belong in.
  hooks = all.hooks "${profileDirectory}/bin";
  hasModule = options.programs ? claude-code;
  inModule = hasModule && config.programs.claude-code.enable;
  hookFiles =
    files:
    lib.listToAttrs (
      map (file: lib.nameValuePair file.path { inherit (file) source; }) (
        lib.filter (file: file.harness != "claude-code" || !inModule) files
      )
    );

  # Targets that home-manager writes: they are links into the Nix store.
  relative =
    target:
    let
      path = target.path or target;
    in
    lib.removePrefix "~/" (lib.removePrefix "${homeDirectory}/" path);
  managed = map (file: file.target) (
    lib.filter (file: file.enable) (lib.attrValues config.home.file)
  );
  clashes = lib.filter (target: lib.elem (relative target) managed) all.targets;
in
{
  _class = "homeManager";
  imports = [ ./options.nix ];

  config = {
    home.packages = all.packages;
    xdg.configFile =
      lib.optionalAttrs (!inLibrary) (below "axe" axeFiles)
      // below "agent-memory" memoryFiles
      // hookFiles hooks.configFiles;
    home.file =
      lib.optionalAttrs inLibrary (below "Library/Application Support/axe" axeFiles)
      // lib.optionalAttrs isDarwin logDirectories
      // hookFiles hooks.homeFiles;
    programs = lib.optionalAttrs hasModule {
      claude-code.settings = lib.optionalAttrs (
        inModule && hooks.enabled ? claude-code
      ) hooks.enabled.claude-code.homeFiles.".claude/settings.json".settings;
    };

    warnings =
      map (target: ''
        services.agent-memory.targets: home-manager writes "~/${relative target}" itself, and memory-agents-md cannot
        change it. Switch on a hook that recalls notes, or take the file away from home-manager.
      '') clashes
      ++ lib.optional (!isDarwin && jobs != { } && !config.systemd.user.enable) ''
        axe: systemd.user.enable is off, so the timers of programs.axe and services.agent-memory are not installed.
      '';

    systemd.user.services = lib.mapAttrs (
      name: job:
      let
        sections = systemd name job;
      in
      {
        Unit = sections.unit;
        Service = sections.service // {
          Environment = [ (sections.pathLine systemdPath) ] ++ sections.service.Environment;
        };
      }
    ) jobs;
    systemd.user.timers = lib.mapAttrs (
      name: job:
      let
        sections = systemd name job;
      in
      {
        Unit = sections.timerUnit;
        Timer = sections.timer;
        Install.WantedBy = [ "timers.target" ];
      }
    ) jobs;

    launchd.agents = lib.mapAttrs (name: job: {
      enable = true;
      config = launchd name job;
    }) jobs;
  };
}
