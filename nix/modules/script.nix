# A shell script around a command, for what systemd or launchd cannot do themselves.
{ lib, pkgs }:

name:
{
  command,
  stdin ? null,
  environmentFile ? null,
}:

let
  # A separate script, so that its text cannot end the script around it.
  input = pkgs.writeShellScript "${name}-stdin" ''
    set -eo pipefail
    ${stdin}
  '';
in
pkgs.writeShellScript name ''
  set -euo pipefail
  shopt -s inherit_errexit extglob
  ${lib.optionalString (environmentFile != null) ''
    # launchd has no EnvironmentFile. As in systemd, nothing in the file is executed. A backslash is an ordinary character.
    while IFS= read -r line || [ -n "$line" ]; do
      line=''${line##+([[:space:]])}
      line=''${line%%+([[:space:]])}
      case $line in
        "" | "#"* | ";"*) continue ;;
        [A-Za-z_]*([A-Za-z0-9_])=*) ;;
        *)
          echo "${name}: ignoring a line without KEY= in" ${lib.escapeShellArg environmentFile} >&2
          continue
          ;;
      esac
      value=''${line#*=}
      case $value in
        \"*\") value=''${value#\"} value=''${value%\"} ;;
        \'*\') value=''${value#\'} value=''${value%\'} ;;
      esac
      export "''${line%%=*}=$value"
    done <${lib.escapeShellArg environmentFile}
  ''}
  ${
    if stdin == null then
      "exec ${lib.escapeShellArgs command}"
    else
      ''
        # Read all input before the first call that costs money: half an input is worse than none.
        input=$(${input})
        exec ${lib.escapeShellArgs command} <<<"$input"
      ''
  }
''
