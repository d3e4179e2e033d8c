# The shell around a command, where systemd or launchd cannot do it alone.
{ lib, pkgs }:

name:
{
  command,
  stdin ? null,
  environmentFile ? null,
}:

let
  # Its own script, so that no text of it can end the one around it.
  input = pkgs.writeShellScript "${name}-stdin" ''
    set -eo pipefail
    ${stdin}
  '';
in
pkgs.writeShellScript name ''
  set -euo pipefail
  shopt -s inherit_errexit extglob
  ${lib.optionalString (environmentFile != null) ''
    # launchd knows no EnvironmentFile. As with systemd's, nothing in it is run; a backslash stands for itself.
    while IFS= read -r line || [ -n "$line" ]; do
      line=''${line##+([[:space:]])}
      line=''${line%%+([[:space:]])}
      case $line in
        "" | "#"* | ";"*) continue ;;
        [A-Za-z_]*([A-Za-z0-9_])=*) ;;
        *)
          echo "${name}: a line without KEY= in" ${lib.escapeShellArg environmentFile} >&2
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
        # Whole before the first call that costs money: half an input is worse than none.
        input=$(${input})
        exec ${lib.escapeShellArgs command} <<<"$input"
      ''
  }
''
