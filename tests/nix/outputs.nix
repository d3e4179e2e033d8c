# The flake's outputs, made with the stand-ins.
let
  lib = import ./lib.nix;
  flake = import ../../flake.nix;
  systems = [
    "x86_64-linux"
    "aarch64-linux"
    "aarch64-darwin"
  ];
  nixpkgs = {
    inherit lib;
    legacyPackages = lib.genAttrs systems (system: import ./pkgs.nix { inherit lib system; });
  };
  self = flake.outputs { inherit self nixpkgs; };

  hosts = import ./hosts.nix { inherit lib; };
  # With the module of the flake, twice, as two parts of a configuration may import it.
  configured =
    host: module:
    (lib.evalModules {
      inherit (hosts.${host}) class;
      specialArgs.pkgs = nixpkgs.legacyPackages.aarch64-linux // {
        callPackage = throw "the flake's own package was to be taken";
      };
      modules = [
        hosts.${host}.host
        module
        { imports = [ module ]; }
        {
          programs.axe.enable = true;
          services.agent-memory.enable = true;
        }
      ];
    }).config;
in
{
  # A flake of a user, with ours and home-manager as inputs: the files of its home configurations.
  homes =
    file:
    let
      user = (import file).outputs {
        inherit nixpkgs;
        axe = self;
        home-manager.lib.homeManagerConfiguration =
          { pkgs, modules }:
          hosts.home-manager.files
            (lib.evalModules {
              inherit (hosts.home-manager) class;
              specialArgs = { inherit pkgs; };
              modules = [ hosts.home-manager.host ] ++ modules;
            }).config
            false;
      };
    in
    lib.mapAttrs (_: lib.attrNames) user.homeConfigurations;

  names = lib.attrNames self;
  systems = lib.mapAttrs (_: lib.attrNames) {
    inherit (self)
      packages
      apps
      checks
      devShells
      formatter
      ;
  };
  apps = lib.mapAttrs (_: app: app.program) self.apps.aarch64-linux;
  overlay = (self.overlays.default { callPackage = file: _: toString file; } { }).axe;
  packages = {
    home-manager =
      map (package: package.name)
        (configured "home-manager" self.homeModules.default).home.packages;
    by-its-name =
      map (package: package.name)
        (configured "home-manager" self.homeModules.axe).home.packages;
    older-name =
      map (package: package.name)
        (configured "home-manager" self.homeManagerModules.default).home.packages;
    nixos =
      map (package: package.name)
        (configured "nixos" self.nixosModules.default).environment.systemPackages;
    nix-darwin =
      map (package: package.name)
        (configured "nix-darwin" self.darwinModules.default).environment.systemPackages;
  };
}
