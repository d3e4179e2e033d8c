# All the programs, their man pages and their completions.
{
  lib,
  stdenv,
  rustPlatform,
  installShellFiles,
  testers,
  versionCheckHook,
  # minreq's rustls uses the cryptography of aws-lc-sys, which is C and is built with cmake.
  cmake,
  # Programs that the tests run.
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
  # The manuals of section 7, such as memory-hooks.7.
  manuals = map (lib.removeSuffix ".md") (builtins.attrNames (builtins.readDir ../man));
in
rustPlatform.buildRustPackage (finalAttrs: {
  pname = cargo.lib.name;
  inherit (cargo.package) version;

  src = fileset.toSource {
    root = ../.;
    # Files that the build and the tests read.
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
      ../plugin
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
  # cmake is for a crate; this directory is not a cmake project.
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
  # The tests start servers on 127.0.0.1.
  __darwinAllowLocalNetworking = true;

  # bash and fish look for a program's completions in a file of its name.
  postInstall = lib.optionalString (stdenv.buildPlatform.canExecute stdenv.hostPlatform) ''
    for page in ${lib.escapeShellArgs manuals}; do
      "$out/bin/''${page%%[-.]*}" --generate man "$page" >"$page"
      installManPage "$page"
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

  nativeInstallCheckInputs = [ versionCheckHook ];
  doInstallCheck = true;

  # versionCheckHook asks axe; this asks the other family.
  passthru.tests.version = testers.testVersion {
    package = finalAttrs.finalPackage;
    command = "memory --version";
  };

  meta = {
    inherit (cargo.package) description;
    license = with lib.licenses; [
      mit
      asl20
    ];
    maintainers = [ ];
    mainProgram = "axe";
    platforms = lib.platforms.linux ++ lib.platforms.darwin;
  }
  // lib.optionalAttrs (cargo.package ? homepage) {
    inherit (cargo.package) homepage;
  };
})
