# A stand-in for what our modules take from nixpkgs' packages. Files come out as files, so that their text can be
# read; packages are names.
{
  lib,
  system,
  # nixpkgs' own, for their types.
  formats ? null,
}:

let
  package = name: {
    type = "derivation";
    inherit name;
    outPath = "/nix/store/00000000000000000000000000000000-${name}";
  };

  inherit (import ./text.nix) toToml;

  # What such a file may hold. Merged like nixpkgs does it: sets by key, the rest must agree.
  value = description: atom: rec {
    inherit description;
    options = { };
    check =
      given:
      if builtins.isAttrs given then
        builtins.all check (builtins.attrValues given)
      else if builtins.isList given then
        builtins.all check given
      else
        atom given;
    merge =
      loc: values:
      if builtins.all builtins.isAttrs values then
        (lib.types.attrsOf (value description atom)).merge loc values
      else if builtins.all (given: given == builtins.head values) values then
        builtins.head values
      else
        throw "The option `${lib.concatStringsSep "." loc}' has conflicting definition values.";
  };
  atom =
    given:
    builtins.isBool given
    || builtins.isInt given
    || builtins.isFloat given
    || builtins.isString given
    || builtins.isPath given;
in
{
  stdenv = {
    buildPlatform.canExecute = _: true;
    hostPlatform = {
      inherit system;
      isDarwin = lib.hasSuffix "-darwin" system;
      isLinux = lib.hasSuffix "-linux" system;
    };
  };
  # The file that is checked, or the script if it is the script's result that counts.
  runCommandLocal =
    name: env: text:
    env.source or (builtins.toFile name text);
  buildPackages.systemd = package "systemd";
  claude-code = package "claude-code" // {
    meta.mainProgram = "claude";
  };
  callPackage = _: _: package "axe";
  coreutils = package "coreutils";
  gitMinimal = package "git-minimal";
  writeText = builtins.toFile;
  writeShellScript = name: text: builtins.toFile name "#!/bin/bash\n${text}";
  formats = {
    toml = _: {
      type = if formats != null then (formats.toml { }).type else value "TOML value" atom;
      generate = name: settings: builtins.toFile name (toToml settings);
    };
    json = _: {
      type =
        if formats != null then
          (formats.json { }).type
        else
          value "JSON value" (given: given == null || atom given);
      generate = name: settings: builtins.toFile name (builtins.toJSON settings);
    };
  };
}
