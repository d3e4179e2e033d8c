# What home-manager, nix-darwin and NixOS are to our modules: the options that these set, and what becomes of
# them. `files` are texts by their paths.
{
  lib,
  read ? builtins.readFile,
}:

let
  inherit (lib) mkOption types;
  inherit (import ./text.nix) toUnit toPlist;

  option = type: mkOption { inherit type; };
  optional =
    default: type:
    mkOption {
      inherit default type;
    };
  anything = types.attrsOf types.raw;

  file = types.submodule (
    { name, ... }:
    {
      options = {
        enable = optional true types.bool;
        target = optional name types.str;
        source = optional null types.raw;
        text = optional null (types.nullOr types.str);
      };
    }
  );
  content = file: if file.text != null then file.text else read file.source;
  filesIn = dir: lib.mapAttrs' (path: file: lib.nameValuePair "${dir}/${path}" (content file));

  assertions = optional [ ] (types.listOf types.raw);
  warnings = optional [ ] (types.listOf types.str);
  packages = optional [ ] (types.listOf types.package);

  withName =
    ending: render:
    lib.mapAttrs' (name: unit: lib.nameValuePair "systemd/user/${name}.${ending}" (render unit));
  agents = lib.mapAttrs' (
    _: agent: lib.nameValuePair "Library/LaunchAgents/${agent.Label}.plist" (toPlist agent)
  );
in
{
  home-manager = {
    class = "homeManager";
    module = ../../nix/modules/home-manager.nix;
    host =
      { config, ... }:
      {
        options = {
          inherit assertions warnings;
          home.packages = packages;
          home.username = optional "ada" types.str;
          home.file = optional { } (types.attrsOf file);
          home.homeDirectory = optional "/home/ada" types.str;
          home.profileDirectory = optional "${config.home.homeDirectory}/.nix-profile" types.str;
          xdg.enable = optional false types.bool;
          xdg.configHome = optional "${config.home.homeDirectory}/.config" types.str;
          xdg.cacheHome = optional "${config.home.homeDirectory}/.cache" types.str;
          xdg.stateHome = optional "${config.home.homeDirectory}/.local/state" types.str;
          xdg.dataHome = optional "${config.home.homeDirectory}/.local/share" types.str;
          xdg.configFile = optional { } (types.attrsOf file);
          systemd.user.enable = optional true types.bool;
          systemd.user.services = optional { } (types.attrsOf (types.attrsOf anything));
          systemd.user.timers = optional { } (types.attrsOf (types.attrsOf anything));
          launchd.agents = optional { } (
            types.attrsOf (
              types.submodule {
                options.enable = option types.bool;
                options.config = option anything;
              }
            )
          );
        };
      };
    packages = config: config.home.packages;
    files =
      config: isDarwin:
      filesIn "~" config.home.file
      // filesIn "~/.config" config.xdg.configFile
      // lib.optionalAttrs (config.programs ? claude-code) {
        "programs.claude-code.settings" = builtins.toJSON config.programs.claude-code.settings;
      }
      // (
        if isDarwin then
          agents (lib.mapAttrs (_: agent: agent.config) config.launchd.agents)
        else
          withName "service" toUnit config.systemd.user.services
          // withName "timer" toUnit config.systemd.user.timers
      );
  };

  nixos = {
    class = "nixos";
    module = ../../nix/modules/nixos.nix;
    host = {
      options = {
        inherit assertions warnings;
        environment.systemPackages = packages;
        environment.etc = optional { } (types.attrsOf file);
        users.users = optional { } anything;
        system.userActivationScripts = optional { } (types.attrsOf types.raw);
        systemd.user.services = optional { } (
          types.attrsOf (
            types.submodule {
              options = {
                path = optional [ ] (types.listOf types.raw);
                environment = optional { } (types.attrsOf types.str);
                unitConfig = optional { } anything;
                serviceConfig = optional { } anything;
              };
            }
          )
        );
        systemd.user.timers = optional { } (
          types.attrsOf (
            types.submodule {
              options = {
                unitConfig = optional { } anything;
                timerConfig = option anything;
                wantedBy = option (types.listOf types.str);
              };
            }
          )
        );
      };
    };
    packages = config: config.environment.systemPackages;
    files =
      config: _:
      filesIn "/etc" config.environment.etc
      // lib.mapAttrs' (
        name: script: lib.nameValuePair "activation/${name}" script.text
      ) config.system.userActivationScripts
      // withName "service" (
        service:
        toUnit {
          Service = service.serviceConfig // {
            Environment = lib.mapAttrsToList (
              name: value: builtins.toJSON "${name}=${value}"
            ) service.environment;
          };
          Unit = service.unitConfig;
        }
      ) config.systemd.user.services
      // withName "timer" (
        timer:
        toUnit {
          Install.WantedBy = timer.wantedBy;
          Timer = timer.timerConfig;
          Unit = timer.unitConfig;
        }
      ) config.systemd.user.timers;
  };

  nix-darwin = {
    class = "darwin";
    module = ../../nix/modules/nix-darwin.nix;
    host = {
      options = {
        inherit assertions warnings;
        environment.systemPackages = packages;
        environment.etc = optional { } (types.attrsOf file);
        system.activationScripts.postActivation.text = optional "" types.str;
        system.primaryUser = optional "ada" (types.nullOr types.str);
        system.primaryUserHome = optional "/Users/ada" types.str;
        launchd.user.agents = optional { } (
          types.attrsOf (types.submodule { options.serviceConfig = option anything; })
        );
      };
    };
    packages = config: config.environment.systemPackages;
    files =
      config: _:
      filesIn "/etc" config.environment.etc
      // lib.optionalAttrs (config.system.activationScripts.postActivation.text != "") {
        "activation/postActivation" = config.system.activationScripts.postActivation.text;
      }
      // agents (lib.mapAttrs (_: agent: agent.serviceConfig) config.launchd.user.agents);
  };
}
