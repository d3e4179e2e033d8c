# A stand-in for the part of nixpkgs' lib that our modules use, for machines without nixpkgs: a module system in
# small. The tests of it are the same cases with the real lib (nix flake check).
let
  inherit (builtins)
    all
    attrNames
    concatLists
    concatMap
    concatStringsSep
    elem
    filter
    foldl'
    head
    isAttrs
    isBool
    isInt
    isList
    isString
    length
    listToAttrs
    map
    mapAttrs
    stringLength
    substring
    ;

  nameValuePair = name: value: { inherit name value; };
  mapAttrsToList = f: set: map (name: f name set.${name}) (attrNames set);
  mapAttrs' = f: set: listToAttrs (mapAttrsToList f set);
  filterAttrs =
    keep: set:
    listToAttrs (
      map (name: nameValuePair name set.${name}) (filter (name: keep name set.${name}) (attrNames set))
    );
  optionals = condition: list: if condition then list else [ ];
  optionalString = condition: text: if condition then text else "";
  unique = foldl' (seen: item: if elem item seen then seen else seen ++ [ item ]) [ ];
  hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;
  hasSuffix =
    suffix: text:
    let
      start = stringLength text - stringLength suffix;
    in
    start >= 0 && substring start (-1) text == suffix;
  removePrefix =
    prefix: text: if hasPrefix prefix text then substring (stringLength prefix) (-1) text else text;
  removeSuffix =
    suffix: text:
    if hasSuffix suffix text then substring 0 (stringLength text - stringLength suffix) text else text;
  hasInfix = infix: text: length (builtins.split (escapeRegex infix) text) > 1;
  escapeRegex =
    builtins.replaceStrings
      (map (c: c) [
        "\\"
        "."
        "*"
        "["
        "("
        "|"
        "+"
        "?"
        "^"
        "$"
      ])
      (
        map (c: "\\" + c) [
          "\\"
          "."
          "*"
          "["
          "("
          "|"
          "+"
          "?"
          "^"
          "$"
        ]
      );
  # As few quotes as nixpkgs sets.
  escapeShellArg =
    arg:
    let
      text = toString arg;
    in
    if builtins.match "[[:alnum:],._+:@%/-]+" text != null then
      text
    else
      "'${builtins.replaceStrings [ "'" ] [ "'\\''" ] text}'";

  isKind = kind: value: isAttrs value && value._type or null == kind;
  at = loc: concatStringsSep "." loc;

  # What a value is after mkDefault and mkForce, with its priority.
  discharge =
    value:
    if isKind "override" value then
      map (given: given // { inherit (value) priority; }) (discharge value.content)
    else
      [
        {
          priority = 100;
          inherit value;
        }
      ];

  # One value of the type, from all that was given.
  merged =
    loc: type: given:
    let
      strongest = foldl' (least: one: if one.priority < least then one.priority else least) 9999 given;
      values = map (one: one.value) (filter (one: one.priority == strongest) given);
      wrong = filter (value: !type.check value) values;
    in
    if wrong != [ ] then
      throw "A definition for option `${at loc}' is not of type `${type.description}'."
    else
      type.merge loc values;

  same =
    loc: values:
    if all (value: value == head values) values then
      head values
    else
      throw "The option `${at loc}' has conflicting definition values.";

  plain = description: check: {
    inherit description check;
    merge = same;
    options = { };
  };

  attrsOf = inner: {
    description = "attribute set of (${inner.description})";
    check = isAttrs;
    merge =
      loc: values:
      let
        names = unique (concatMap attrNames values);
        given = name: concatMap (value: optionals (value ? ${name}) (discharge value.${name})) values;
      in
      listToAttrs (
        map (name: nameValuePair name (merged (loc ++ [ name ]) inner (given name))) (
          filter (name: given name != [ ]) names
        )
      );
    options = mapAttrs' (
      name: nameValuePair (if name == "" then "<name>" else "<name>.${name}")
    ) inner.options;
  };

  either = first: second: {
    description = "${first.description} or (${second.description})";
    check = value: first.check value || second.check value;
    merge = loc: values: (if all first.check values then first else second).merge loc values;
    options = first.options // second.options;
  };

  types = {
    inherit attrsOf either;
    bool = plain "boolean" isBool;
    int = plain "signed integer" isInt;
    ints = {
      between =
        least: most:
        plain "integer between ${toString least} and ${toString most} (both inclusive)" (
          value: isInt value && value >= least && value <= most
        );
      positive = plain "positive integer, meaning >0" (value: isInt value && value > 0);
    };
    str = plain "string" isString;
    raw = plain "raw value" (_: true);
    package = plain "package" (value: isKind "derivation" value || value.type or null == "derivation");
    nullOr =
      inner:
      let
        given = either (plain "null" (value: value == null)) inner;
      in
      given // { description = "null or ${inner.description}"; };
    listOf = inner: {
      description = "list of (${inner.description})";
      check = isList;
      merge =
        loc: values: map (value: merged (loc ++ [ "*" ]) inner (discharge value)) (concatLists values);
      inherit (inner) options;
    };
    submodule =
      module:
      let
        evaluated =
          prefix: values:
          evalModules {
            inherit prefix;
            modules = [ module ] ++ map (value: { config = value; }) values;
          };
      in
      {
        description = "submodule";
        check = isAttrs;
        merge = loc: values: (evaluated loc values).config;
        options = flat "" (evaluated [ ] [ ]).options;
      };
  };

  # Options by their dotted names, those of submodules too.
  flat =
    prefix: options:
    foldl' (
      all: name:
      let
        option = options.${name};
        path = if prefix == "" then name else "${prefix}.${name}";
      in
      all
      // (
        if isKind "option" option then
          { ${path} = option; } // mapAttrs' (inner: nameValuePair "${path}.${inner}") option.type.options
        else
          flat path option
      )
    ) { } (attrNames options);

  evalModules =
    {
      modules,
      specialArgs ? { },
      class ? null,
      prefix ? [ ],
    }:
    let
      # Each file once, with all that it imports.
      collect =
        seen: module:
        let
          isFile = builtins.isPath module || isString module;
          called = if isFile then import module else module;
          opened = if builtins.isFunction called then called arguments else called;
          key = opened.key or (if isFile then toString module else null);
          begun =
            if opened ? _class && opened._class != class then
              throw "A module of class ${opened._class} is used in a configuration of class ${toString class}."
            else
              foldl' collect {
                keys = seen.keys ++ optionals (key != null) [ key ];
                inherit (seen) modules;
              } (opened.imports or [ ]);
        in
        if key != null && elem key seen.keys then
          seen
        else
          begun // { modules = begun.modules ++ [ opened ]; };
      all =
        (foldl' collect {
          keys = [ ];
          modules = [ ];
        } modules).modules;
      arguments = specialArgs // {
        inherit config lib options;
        name = if prefix == [ ] then null else builtins.elemAt prefix (length prefix - 1);
      };

      isSpecial =
        name:
        elem name [
          "_class"
          "config"
          "imports"
          "key"
          "options"
        ];
      configOf =
        module:
        module.config or (if module ? options then { } else filterAttrs (name: _: !isSpecial name) module);

      join =
        loc: first: second:
        first
        // mapAttrs (
          name: option:
          if !first ? ${name} then
            option
          else if isKind "option" option || isKind "option" first.${name} then
            throw "The option `${at (loc ++ [ name ])}' is declared twice."
          else
            join (loc ++ [ name ]) first.${name} option
        ) second;
      options = foldl' (join prefix) { } (map (module: module.options or { }) all);

      tree =
        loc: options: given:
        let
          sets = map (one: one.value) (concatMap discharge given);
          unknown = filter (name: !options ? ${name}) (concatMap attrNames sets);
          of = name: concatMap (set: optionals (set ? ${name}) [ set.${name} ]) sets;
        in
        if unknown != [ ] then
          throw "The option `${at (loc ++ [ (head unknown) ])}' does not exist."
        else
          mapAttrs (
            name: option:
            if isKind "option" option then
              leaf (loc ++ [ name ]) option (of name)
            else
              tree (loc ++ [ name ]) option (of name)
          ) options;

      leaf =
        loc: option: given:
        let
          all =
            concatMap discharge given
            ++ optionals (option ? default) [
              {
                priority = 1500;
                value = option.default;
              }
            ];
        in
        if all == [ ] then
          throw "The option `${at loc}' was accessed but has no value defined."
        else
          merged loc option.type all;

      config = tree prefix options (map configOf all);
    in
    {
      inherit config options;
    };

  lib = {
    inherit
      all
      attrNames
      concatLists
      concatMap
      concatStringsSep
      elem
      escapeShellArg
      evalModules
      filter
      filterAttrs
      flat
      hasInfix
      hasPrefix
      hasSuffix
      removePrefix
      removeSuffix
      isAttrs
      isList
      listToAttrs
      mapAttrs
      mapAttrs'
      mapAttrsToList
      nameValuePair
      optionals
      optionalString
      types
      unique
      ;
    inherit (builtins) any attrValues;
    mod = base: by: base - by * (base / by);
    toLower =
      let
        upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        lower = "abcdefghijklmnopqrstuvwxyz";
        letters = text: builtins.genList (n: substring n 1 text) (stringLength text);
      in
      builtins.replaceStrings (letters upper) (letters lower);
    getBin = package: package;
    getExe = package: "${package}/bin/${package.meta.mainProgram}";
    escapeShellArgs = args: concatStringsSep " " (map escapeShellArg args);
    genAttrs = names: make: listToAttrs (map (name: nameValuePair name (make name)) names);
    importTOML = file: builtins.fromTOML (builtins.readFile file);
    literalExpression = text: {
      _type = "literalExpression";
      inherit text;
    };
    literalMD = text: {
      _type = "literalMD";
      inherit text;
    };
    mkPackageOption =
      pkgs: name: _:
      lib.mkOption {
        type = types.package;
        default = pkgs.${name};
        description = "The ${name} package to use.";
      };
    makeBinPath = packages: concatStringsSep ":" (map (package: "${package}/bin") packages);
    mkDefault = content: {
      _type = "override";
      priority = 1000;
      inherit content;
    };
    mkForce = content: {
      _type = "override";
      priority = 50;
      inherit content;
    };
    mkOption = option: option // { _type = "option"; };
    mkEnableOption =
      what:
      lib.mkOption {
        type = types.bool;
        default = false;
        example = true;
        description = "Whether to enable ${what}.";
      };
    optional = condition: item: optionals condition [ item ];
    optionalAttrs = condition: set: if condition then set else { };
  };
in
lib
