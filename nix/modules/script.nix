# A shell script around commands, for what systemd or launchd cannot do themselves.
{ lib, pkgs }:

name:
{
  commands,
  stdin ? null,
  output ? null,
  environmentFile ? null,
}:

let
  secret = import ./secret.nix { inherit lib; };
  # A separate script, so that its text cannot end the script around it.
  input = pkgs.writeShellScript "${name}-stdin" ''
    set -eo pipefail
    ${stdin}
  '';
  first = lib.escapeShellArgs (builtins.head commands);
  run = if stdin == null then first else "${first} <<<\"$input\"";
  # What comes after it runs whether it succeeded or not.
  rest = lib.concatStringsSep "" (
    map (command: "${lib.escapeShellArgs command} || status=$?\n") (builtins.tail commands)
  );
  home = if lib.hasPrefix "~/" output then "\"$HOME\"/" else "";
in
pkgs.writeShellScript name ''
  set -euo pipefail
  shopt -s inherit_errexit extglob
  ${lib.optionalString (environmentFile != null) ''
    # launchd has no EnvironmentFile. As in systemd, nothing in the file is executed. A backslash is an ordinary character.
    runtime=''${XDG_RUNTIME_DIR:-$(getconf DARWIN_USER_TEMP_DIR 2>/dev/null || true)}
    runtime=''${runtime%/}
    secrets=${secret.toShell environmentFile}
    ${
      if secret.isOptional environmentFile then
        "[ -e \"$secrets\" ] || secrets=/dev/null"
      else
        ''
          # At login, it may appear only after the timer has fired.
          tries=60
          until [ -e "$secrets" ]; do
            tries=$((tries - 1))
            if [ "$tries" -lt 0 ]; then
              echo "${name}: there is no file \"$secrets\"" >&2
              exit 1
            fi
            sleep 10
          done''
    }
    while IFS= read -r line || [ -n "$line" ]; do
      line=''${line##+([[:space:]])}
      line=''${line%%+([[:space:]])}
      case $line in
        "" | "#"* | ";"*) continue ;;
        [A-Za-z_]*([A-Za-z0-9_])=*) ;;
        *)
          echo "${name}: ignoring a line without KEY= in" "$secrets" >&2
          continue
          ;;
      esac
      value=''${line#*=}
      case $value in
        \"*\") value=''${value#\"} value=''${value%\"} ;;
        \'*\') value=''${value#\'} value=''${value%\'} ;;
      esac
      export "''${line%%=*}=$value"
    done <"$secrets"
  ''}
  ${lib.optionalString (stdin != null) ''
    # Read all input before the first call that costs money: half an input is worse than none.
    input=$(${input})
  ''}
  ${
    if output == null && rest == "" then
      run
    else if output == null then
      "status=0\n${run} || status=$?\n${rest}exit $status"
    else
      ''
        # The file changes only when the run has succeeded.
        output=${home}${lib.escapeShellArg (lib.removePrefix "~/" output)}
        mkdir -p -- "$(dirname -- "$output")"
        new=$(mktemp -- "$output.XXXXXX")
        trap 'rm -f -- "$new"' EXIT
        ${run} >"$new"
        [ ! -s "$new" ] || mv -f -- "$new" "$output"''
  }
''
