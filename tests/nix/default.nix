# Our three modules, evaluated with the cases of cases.nix: what `right` ones give, what is said of `wrong` ones, each
# by case and host; `options` as a table in Markdown.
# Without arguments it stands on the stand-ins; nix flake check gives it the real lib and packages.
{
  lib ? import ./lib.nix,
  pkgsFor ? system: import ./pkgs.nix { inherit lib system; },
  # Without, files stand as their paths, which hold the hash of their text: where nothing may be read, as in a flake.
  reads ? true,
}:

let
  read = if reads then builtins.readFile else builtins.unsafeDiscardStringContext;
  hosts = import ./hosts.nix { inherit lib read; };
  cases = import ./cases.nix;
  inherit (import ./text.nix) toNix;

  # A host on a platform.
  platforms = {
    home-manager-linux = hosts.home-manager // {
      name = "home-manager";
      system = "x86_64-linux";
    };
    home-manager-macos = hosts.home-manager // {
      name = "home-manager";
      system = "aarch64-darwin";
    };
    nixos = hosts.nixos // {
      name = "nixos";
      system = "x86_64-linux";
    };
    nix-darwin = hosts.nix-darwin // {
      name = "nix-darwin";
      system = "aarch64-darwin";
    };
  };

  evaluate =
    platform: given:
    lib.evalModules {
      inherit (platform) class;
      specialArgs.pkgs = pkgsFor platform.system;
      modules = [
        platform.host
        platform.module
      ]
      ++ (if builtins.isList given then given else [ given ]);
    };

  # The scripts that a text names, and those that they name.
  scriptsIn =
    text:
    lib.concatMap (path: [ path ] ++ scriptsIn (builtins.readFile path)) (
      builtins.filter builtins.pathExists (
        map (match: "${builtins.storeDir}/${builtins.head match}") (
          builtins.filter builtins.isList (
            builtins.split "${builtins.storeDir}/([0-9a-z]{32}-[A-Za-z0-9._-]+)" (
              builtins.unsafeDiscardStringContext text
            )
          )
        )
      )
    );

  # The hash of a script says nothing to a reader.
  nameOf = path: builtins.substring 33 (-1) (baseNameOf path);
  anonymous =
    scripts:
    builtins.replaceStrings scripts (
      map (path: "/nix/store/00000000000000000000000000000000-${nameOf path}") scripts
    );

  broken = config: map (one: one.message) (builtins.filter (one: !one.assertion) config.assertions);

  result =
    platform: config:
    let
      files = platform.files config (lib.hasSuffix "-darwin" platform.system);
      scripts = lib.optionals reads (lib.unique (lib.concatMap scriptsIn (builtins.attrValues files)));
      all =
        files
        // lib.mapAttrs' (_: path: lib.nameValuePair "bin/${nameOf path}" (builtins.readFile path)) (
          lib.genAttrs scripts (path: path)
        );
    in
    {
      packages = map (package: package.name) (platform.packages config);
      inherit (config) warnings;
      files = lib.mapAttrs (_: text: anonymous scripts (builtins.unsafeDiscardStringContext text)) all;
    };
in
{
  right = lib.mapAttrs (
    _: case:
    lib.mapAttrs (
      _: platform:
      let
        inherit
          (evaluate platform [
            case.config
            (case.module or { })
          ])
          config
          ;
      in
      if broken config == [ ] then result platform config else throw (toString (broken config))
    ) (lib.filterAttrs (_: platform: !case ? hosts || builtins.elem platform.name case.hosts) platforms)
  ) cases.right;

  wrong = lib.mapAttrs (
    _: case:
    lib.mapAttrs (
      _: platform:
      map (builtins.replaceStrings [ builtins.storeDir ] [ "/nix/store" ]) (
        broken (evaluate platform case).config
      )
    ) platforms
  ) cases.wrong;

  # The scripts that check configuration files, for bash, with the file in $source.
  checks =
    let
      pkgs = pkgsFor "x86_64-linux" // {
        runCommandLocal =
          _: _: script:
          script;
      };
      check = import ../../nix/modules/check.nix { inherit pkgs; };
    in
    lib.mapAttrs (_: check: check "the package" "the file") {
      inherit (check) memoryConfig axeConfig agent;
    };

  # One at a time, each as a whole: they throw.
  impossible = lib.mapAttrs (
    _: case: lib.mapAttrs (_: platform: result platform (evaluate platform case).config) platforms
  ) cases.impossible;

  impossibleNames = lib.attrNames cases.impossible;

  # A configuration from a file, on each host: what is wrong with it, and what it gives.
  tried =
    file:
    lib.mapAttrs (
      _: platform:
      let
        inherit (evaluate platform (import file)) config;
      in
      {
        broken = broken config;
      }
      // result platform config
    ) platforms;

  # A module in the wrong place.
  misplaced = (evaluate (platforms.nixos // { class = "homeManager"; }) { }).config.assertions;

  options =
    let
      all = lib.flat "" (evaluate platforms.home-manager-linux { }).options;
      ours = lib.filterAttrs (
        name: _: lib.hasPrefix "programs.axe" name || lib.hasPrefix "services.agent-memory" name
      ) all;
      oneLine = builtins.replaceStrings [ "\n" "|" ] [ " " "\\|" ];
      trimmed = text: builtins.head (builtins.match "(.*[^[:space:]])[[:space:]]*" text);
      row =
        name: option:
        let
          default = option.defaultText or option.default or null;
          isRequired = !(option ? default);
          example =
            if option ? example && name != "" then " Example: `${oneLine (toNix option.example)}`" else "";
        in
        "| `${name}` | ${oneLine option.type.description} | ${
          if isRequired then "" else "`${oneLine (toNix default)}`"
        } | ${oneLine (trimmed option.description)}${example} |\n";
    in
    "| option | type | default | what it is |\n|---|---|---|---|\n"
    + lib.concatStringsSep "" (lib.mapAttrsToList row ours);
}
