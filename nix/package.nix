# All the programs, their man pages and their completions.
{
  lib,
  stdenv,
  rustPlatform,
  installShellFiles,
  # aws-lc-sys, which minreq's rustls has its cryptography from, is C that cmake builds.
  cmake,
  # What the tests run.
  bashInteractive,
  fish,
  gitMinimal,
  groff,
  jq,
  mandoc,
  openssl,
  python3,
  zsh,
}:

let
  cargo = lib.importTOML ../Cargo.toml;
  inherit (lib) fileset;
in
rustPlatform.buildRustPackage {
  pname = cargo.package.name;
  inherit (cargo.package) version;

  src = fileset.toSource {
    root = ../.;
    # What the build and the tests read.
    fileset = fileset.unions [
      ../Cargo.toml
      ../Cargo.lock
      ../README.md
      ../CHANGELOG.md
      ../CONTRIBUTING.md
      ../benches
      ../bins
      ../examples
      ../fuzz
      ../lib
      ../launchd
      ../man
      ../systemd
      (fileset.difference ../tests ../tests/nix)
      ./OPTIONS.md
      ./README.md
    ];
  };
  cargoLock.lockFile = ../Cargo.lock;

  nativeBuildInputs = [
    cmake
    installShellFiles
  ];
  # cmake is for a crate, not for this directory.
  dontUseCmakeConfigure = true;

  nativeCheckInputs = [
    bashInteractive
    fish
    gitMinimal
    groff
    jq
    mandoc
    openssl
    python3
    zsh
  ];
  # Servers of the tests listen on 127.0.0.1.
  __darwinAllowLocalNetworking = true;

  # A program's completions lie in a file of its name: bash and fish look for that.
  postInstall = lib.optionalString (stdenv.buildPlatform.canExecute stdenv.hostPlatform) ''
    for family in axe memory; do
      "$out/bin/$family" --generate man "$family.7" >"$family.7"
      installManPage "$family.7"
    done
    for program in ${lib.escapeShellArgs (map (bin: bin.name) cargo.bin)}; do
      family="$out/bin/''${program%%-*}"
      "$family" --generate man "$program" >"$program.1"
      installManPage "$program.1"
      for shell in bash zsh fish; do
        "$family" --generate "$shell" "$program" >"$program.$shell"
      done
      installShellCompletion --cmd "$program" --bash "$program.bash" --zsh "$program.zsh" --fish "$program.fish"
    done
  '';

  meta = {
    inherit (cargo.package) description;
    license = with lib.licenses; [
      mit
      asl20
    ];
    mainProgram = "axe";
    platforms = lib.platforms.linux ++ lib.platforms.darwin;
  }
  // lib.optionalAttrs (cargo.package ? homepage) {
    inherit (cargo.package) homepage;
  };
}
