# Values as the text that they become: units, property lists, TOML, Nix.
let
  inherit (builtins)
    attrNames
    concatLists
    concatStringsSep
    filter
    isAttrs
    isBool
    isInt
    isList
    isString
    replaceStrings
    toJSON
    ;
  lines = concatStringsSep "\n";
  escapeXml = replaceStrings [ "&" "<" ">" ] [ "&amp;" "&lt;" "&gt;" ];
  isPlainKey = key: builtins.match "[A-Za-z0-9_-]+" key != null;
in
rec {
  # { Section.Key = value or list of values; }
  toUnit =
    sections:
    concatStringsSep "\n" (
      map (
        section:
        "[${section}]\n"
        + concatStringsSep "" (
          concatLists (
            map (
              key:
              let
                value = sections.${section}.${key};
                line = one: "${key}=${if isBool one then (if one then "true" else "false") else toString one}\n";
              in
              map line (if isList value then value else [ value ])
            ) (attrNames sections.${section})
          )
        )
      ) (filter (section: sections.${section} != { }) (attrNames sections))
    );

  toPlist =
    value:
    lines [
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
      "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">"
      "<plist version=\"1.0\">"
      (element "" value)
      "</plist>\n"
    ];
  element =
    indent: value:
    let
      deeper = "${indent}\t";
      block =
        tag: content:
        if content == [ ] then
          "${indent}<${tag}/>"
        else
          lines ([ "${indent}<${tag}>" ] ++ content ++ [ "${indent}</${tag}>" ]);
    in
    if isBool value then
      "${indent}<${if value then "true" else "false"}/>"
    else if isInt value then
      "${indent}<integer>${toString value}</integer>"
    else if isList value then
      block "array" (map (element deeper) value)
    else if isAttrs value then
      block "dict" (
        concatLists (
          map (key: [
            "${deeper}<key>${escapeXml key}</key>"
            (element deeper value.${key})
          ]) (attrNames value)
        )
      )
    else
      "${indent}<string>${escapeXml value}</string>";

  toToml = table "";
  table =
    path: settings:
    let
      key = name: if isPlainKey name then name else toJSON name;
      names = attrNames settings;
      below = name: if path == "" then key name else "${path}.${key name}";
    in
    concatStringsSep "" (
      map (name: "${key name} = ${inline settings.${name}}\n") (
        filter (name: !isAttrs settings.${name}) names
      )
      ++ map (name: "\n[${below name}]\n${table (below name) settings.${name}}") (
        filter (name: isAttrs settings.${name}) names
      )
    );
  inline =
    value:
    if isList value then
      "[${concatStringsSep ", " (map inline value)}]"
    else if isAttrs value then
      "{ ${
        concatStringsSep ", " (map (name: "${toJSON name} = ${inline value.${name}}") (attrNames value))
      } }"
    else
      toJSON value;

  # On one line, as a person would write it.
  toNix =
    value:
    if
      builtins.elem value._type or "" [
        "literalExpression"
        "literalMD"
      ]
    then
      value.text
    else if isAttrs value then
      if value == { } then
        "{ }"
      else
        "{ ${concatStringsSep " " (map (assignment value) (attrNames value))} }"
    else if isList value then
      if value == [ ] then "[ ]" else "[ ${concatStringsSep " " (map toNix value)} ]"
    else if isString value then
      toJSON value
    else if value == null then
      "null"
    else if isBool value then
      (if value then "true" else "false")
    else
      toString value;
  assignment =
    set: name:
    let
      value = set.${name};
      inner = attrNames value;
    in
    if isAttrs value && builtins.length inner == 1 then
      "${name}.${assignment value (builtins.head inner)}"
    else
      "${name} = ${toNix value};";
}
