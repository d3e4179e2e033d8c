# For home-manager, on Linux and macOS. It sets both systemd units and launchd agents; home-manager uses
# those of the platform.
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
  inherit (pkgs.stdenv.hostPlatform) isDarwin;
  inherit (config.home) homeDirectory profileDirectory;

  # The variables of the session if home-manager manages the XDG directories. The programs find their files by them.
  environment = lib.optionalAttrs config.xdg.enable {
    XDG_CACHE_HOME = config.xdg.cacheHome;
    XDG_CONFIG_HOME = config.xdg.configHome;
    XDG_DATA_HOME = config.xdg.dataHome;
    XDG_STATE_HOME = config.xdg.stateHome;
  };
  # The LLM command can be anywhere. git is last, so that the user's own git is found first.
  path = [
    "${profileDirectory}/bin"
    "${homeDirectory}/.local/bin"
  ];
  git = lib.makeBinPath [ pkgs.gitMinimal ];

  systemd = import ./systemd.nix { inherit lib pkgs; } {
    path = map (builtins.replaceStrings [ "%" ] [ "%%" ]) path ++ [
      "/run/wrappers/bin"
      "/run/current-system/sw/bin"
      "/nix/var/nix/profiles/default/bin"
      "/usr/local/bin"
      "/usr/bin"
      "/bin"
      git
    ];
    inherit environment;
  };
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
in
{
  _class = "homeManager";
  imports = [ ./options.nix ];

  config = {
    home.packages = packages;
    xdg.configFile =
      lib.optionalAttrs (!inLibrary) (below "axe" axeFiles) // below "agent-memory" memoryFiles;
    home.file =
      lib.optionalAttrs inLibrary (below "Library/Application Support/axe" axeFiles)
      // lib.optionalAttrs isDarwin logDirectories;

    systemd.user.services = lib.mapAttrs (
      name: job:
      let
        sections = systemd name job;
      in
      {
        Unit = sections.unit;
        Service = sections.service;
      }
    ) jobs;
    systemd.user.timers = lib.mapAttrs (
      name: job:
      let
        sections = systemd name job;
      in
      {
        Unit.Description = sections.timerDescription;
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
