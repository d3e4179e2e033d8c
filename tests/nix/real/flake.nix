# The modules with the real home-manager, nix-darwin and NixOS, which the tests only have stand-ins for. It needs the
# network:  nix flake check ./tests/nix/real --override-input axe . --no-write-lock-file
{
  description = "Checks of axe's modules in real configurations";

  inputs.axe.url = "path:../../..";
  inputs.nixpkgs.follows = "axe/nixpkgs";
  inputs.home-manager = {
    url = "github:nix-community/home-manager/release-26.05";
    inputs.nixpkgs.follows = "nixpkgs";
  };
  inputs.nix-darwin = {
    url = "github:nix-darwin/nix-darwin/nix-darwin-26.05";
    inputs.nixpkgs.follows = "nixpkgs";
  };

  outputs =
    {
      axe,
      nixpkgs,
      home-manager,
      nix-darwin,
      ...
    }:
    let
      on = {
        programs.axe.enable = true;
        services.agent-memory = {
          enable = true;
          llm.command = "claude";
          hooks.codex.enable = true;
          hooks.opencode.enable = true;
        };
      };
      home =
        system: directory:
        (home-manager.lib.homeManagerConfiguration {
          pkgs = nixpkgs.legacyPackages.${system};
          modules = [
            axe.homeModules.axe
            on
            {
              home.username = "ada";
              home.homeDirectory = "${directory}/ada";
              home.stateVersion = "26.05";
            }
          ];
        }).activationPackage;
    in
    {
      checks.x86_64-linux = {
        home-manager = home "x86_64-linux" "/home";
        nixos =
          (nixpkgs.lib.nixosSystem {
            system = "x86_64-linux";
            modules = [
              axe.nixosModules.axe
              on
              {
                boot.isContainer = true;
                system.stateVersion = "26.05";
              }
            ];
          }).config.system.build.toplevel;
      };
      checks.aarch64-darwin = {
        home-manager = home "aarch64-darwin" "/Users";
        nix-darwin =
          (nix-darwin.lib.darwinSystem {
            system = "aarch64-darwin";
            modules = [
              axe.darwinModules.axe
              on
              {
                system.primaryUser = "ada";
                system.stateVersion = 6;
              }
            ];
          }).system;
      };
    };
}
