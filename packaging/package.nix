# For nixpkgs: pkgs/by-name/ax/axe-toolkit/package.nix. PACKAGING.md says what to replace: OWNER, the two hashes, the maintainer.
# The flake builds nix/package.nix instead, from the checkout, with all tests.
{
  lib,
  stdenv,
  rustPlatform,
  fetchFromGitHub,
  # minreq's rustls uses the cryptography of aws-lc-sys, which is C and is built with cmake.
  cmake,
  gitMinimal,
  installShellFiles,
  nix-update-script,
  python3,
  versionCheckHook,
}:

rustPlatform.buildRustPackage (finalAttrs: {
  pname = "axe-toolkit";
  version = "0.1.0";

  src = fetchFromGitHub {
    owner = "OWNER";
    repo = "axe-toolkit";
    tag = "v${finalAttrs.version}";
    hash = lib.fakeHash;
  };
  cargoHash = lib.fakeHash;

  nativeBuildInputs = [
    cmake
    installShellFiles
  ];
  # cmake is for a crate; this directory is not a cmake project.
  dontUseCmakeConfigure = true;

  nativeCheckInputs = [
    gitMinimal
    python3
  ];
  # The tests start servers on 127.0.0.1.
  __darwinAllowLocalNetworking = true;

  postInstall = lib.optionalString (stdenv.buildPlatform.canExecute stdenv.hostPlatform) ''
    bash .ci/share "$out/bin" share
    rm -r share/doc
    installManPage share/man/man?/*
    for program in "$out"/bin/*; do
      program=''${program##*/}
      installShellCompletion --cmd "$program" \
        --bash "share/bash-completion/completions/$program" \
        --zsh "share/zsh/site-functions/_$program" \
        --fish "share/fish/vendor_completions.d/$program.fish"
    done
  '';

  nativeInstallCheckInputs = [ versionCheckHook ];
  versionCheckProgram = "${placeholder "out"}/bin/axe";
  doInstallCheck = true;

  passthru.updateScript = nix-update-script { };

  meta = {
    description = "Small Unix programs that run LLM agents and keep what they learn";
    homepage = "https://github.com/OWNER/axe-toolkit";
    changelog = "https://github.com/OWNER/axe-toolkit/blob/v${finalAttrs.version}/CHANGELOG.md";
    license = with lib.licenses; [
      mit
      asl20
    ];
    maintainers = [ ];
    mainProgram = "axe";
    platforms = lib.platforms.linux ++ lib.platforms.darwin;
  };
})
