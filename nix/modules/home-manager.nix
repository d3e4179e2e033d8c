# For home-manager, on Linux and macOS. It sets systemd's units and launchd's agents; home-manager takes
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

  # What the session has if home-manager manages the XDG directories, and so where it looks for files.
  environment = lib.optionalAttrs config.xdg.enable {
    XDG_CACHE_HOME = config.xdg.cacheHome;
    XDG_CONFIG_HOME = config.xdg.configHome;
    XDG_DATA_HOME = config.xdg.dataHome;
    XDG_STATE_HOME = config.xdg.stateHome;
  };
  # The LLM command may come from anywhere; git comes last, so that the user's own is taken first.
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
  # Where axe looks on macOS, unless XDG_CONFIG_HOME says otherwise.
  inLibrary = isDarwin && !config.xdg.enable;
  # launchd makes a log, but not its directory.
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
