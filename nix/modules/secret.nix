# The file with a timer's secrets. It is written as systemd writes it: `%t`, `%h` and `%u` stand for the runtime
# directory, the home directory and the user, `%%` for a percent sign; a leading `-` makes the file optional.
{ lib }:

rec {
  # agenix and sops-nix name the runtime directory in other ways.
  toSystemd =
    builtins.replaceStrings
      [
        "\${XDG_RUNTIME_DIR}"
        "$XDG_RUNTIME_DIR"
        "$(getconf DARWIN_USER_TEMP_DIR)"
        "%r"
        "%%"
      ]
      [
        "%t"
        "%t"
        "%t"
        "%t"
        "%%"
      ];

  isOptional = lib.hasPrefix "-";
  path = file: lib.removePrefix "-" (toSystemd file);

  # As a word for bash, in which $runtime is the runtime directory.
  toShell =
    file:
    "'${
      builtins.replaceStrings
        [ "'" "%%" "%t" "%h" "%u" ]
        [ "'\\''" "%" "'\"$runtime\"'" "'\"$HOME\"'" "'\"$(id -un)\"'" ]
        (path file)
    }'";

  isAbsolute =
    file:
    builtins.any (start: lib.hasPrefix start (path file)) [
      "/"
      "%t/"
      "%h/"
    ];
  hasUnknownSpecifier =
    file:
    builtins.match ".*%.*" (builtins.replaceStrings [ "%%" "%t" "%h" "%u" ] [ "" "" "" "" ] (path file))
    != null;
}
