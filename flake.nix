{
  description = "Small Unix programs that run LLM agents and keep what they learn";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "aarch64-darwin"
      ];
      eachSystem = make: lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});

      # Cargo.toml has the only list of programs.
      programs = map (bin: bin.name) (lib.importTOML ./Cargo.toml).bin;

      # A module that uses this flake's package by default, on systems that the flake builds for. The keys keep a
      # module that is imported twice from being applied twice; they differ from the key of the imported file.
      withPackage = _class: file: {
        inherit _class;
        key = "${toString file}#flake";
        imports = [
          file
          (
            { lib, pkgs, ... }:
            let
              inherit (pkgs.stdenv.hostPlatform) system;
            in
            {
              key = "${toString file}#package";
              programs.axe = lib.optionalAttrs (self.packages ? ${system}) {
                package = lib.mkDefault self.packages.${system}.default;
              };
            }
          )
        ];
      };
    in
    {
      packages = eachSystem (pkgs: rec {
        axe = pkgs.callPackage ./nix/package.nix { };
        default = axe;
      });

      apps = eachSystem (
        pkgs:
        let
          package = self.packages.${pkgs.stdenv.hostPlatform.system}.default;
          app = program: {
            type = "app";
            program = "${package}/bin/${program}";
            meta.description = "${program}, of the axe toolkit";
          };
        in
        lib.genAttrs programs app // { default = app "axe"; }
      );

      overlays.default = import ./nix/overlay.nix;

      homeModules = rec {
        axe = withPackage "homeManager" ./nix/modules/home-manager.nix;
        default = axe;
      };
      homeManagerModules = self.homeModules; # the older name
      darwinModules = rec {
        axe = withPackage "darwin" ./nix/modules/nix-darwin.nix;
        default = axe;
      };
      nixosModules = rec {
        axe = withPackage "nixos" ./nix/modules/nixos.nix;
        default = axe;
      };

      devShells = eachSystem (pkgs: {
        default = pkgs.mkShell {
          inputsFrom = [ self.packages.${pkgs.stdenv.hostPlatform.system}.default ];
          packages = with pkgs; [
            cargo
            clippy
            deadnix
            nixfmt
            rust-analyzer
            rustc
            rustfmt
          ];
          # rust-analyzer needs the source of the standard library.
          RUST_SRC_PATH = "${pkgs.rustPlatform.rustLibSrc}";
        };
      });

      formatter = eachSystem (pkgs: pkgs.nixfmt-tree);

      checks = eachSystem (
        pkgs:
        let
          inherit (pkgs.stdenv.hostPlatform) system;
          standIn = import ./tests/nix { reads = false; };
          real = import ./tests/nix {
            inherit lib;
            reads = false;
            pkgsFor =
              system:
              import ./tests/nix/pkgs.nix {
                inherit lib system;
                inherit (pkgs) formats;
              };
          };
          nixos = lib.nixosSystem {
            inherit system;
            modules = [
              self.nixosModules.default
              {
                programs.axe.enable = true;
                services.agent-memory.enable = true;
                system.stateVersion = "26.05";
              }
            ];
          };
        in
        {
          package = self.packages.${system}.default;

          # cargo test checks the modules with a stand-in for nixpkgs' module system. This check compares the
          # stand-in with the real one.
          modules =
            assert real.right == standIn.right && real.wrong == standIn.wrong;
            pkgs.writeText "axe-modules" "the same";

          format =
            pkgs.runCommand "axe-nix-format"
              {
                nativeBuildInputs = [
                  pkgs.deadnix
                  pkgs.nixfmt
                ];
              }
              ''
                cd ${
                  lib.fileset.toSource {
                    root = ./.;
                    fileset = lib.fileset.fileFilter (file: file.hasExt "nix") ./.;
                  }
                }
                find . -name '*.nix' -exec nixfmt --check {} +
                deadnix --fail .
                touch "$out"
              '';
        }
        // lib.optionalAttrs pkgs.stdenv.hostPlatform.isLinux {
          nixos = pkgs.writeText "axe-nixos" nixos.config.systemd.user.units."agent-memory-defrag.timer".text;
        }
      );
    };
}
