# NixOS and nix-darwin do not manage files in home directories. The files are in /etc, and this script, run as the
# user, links to them from the user's configuration. A file that the user made is kept and used. Without files it only
# removes the links that an earlier configuration made.
{ lib, pkgs }:

{
  axeFiles,
  memoryFiles,
  # In the home directory, if XDG_CONFIG_HOME is not set.
  axeDir,
  # Paths in the home directory, with the files in /etc.
  homeFiles ? { },
  # More that the script does.
  more ? "",
}:

let
  link =
    dir: etc: file: _:
    "link \"${dir}\"/${lib.escapeShellArg file} ${lib.escapeShellArg "/etc/${etc}/${file}"}";
  homeLink = file: target: "link \"$HOME\"/${lib.escapeShellArg file} ${lib.escapeShellArg target}";
  # All that a configuration can have linked from a home directory.
  known = map (hook: hook.file) (lib.attrValues (import ./hooks.nix { programs = ""; }));
in
pkgs.writeShellScript "axe-links" ''
  set -eu
  PATH=${lib.makeBinPath [ pkgs.coreutils ]}
  axe=''${XDG_CONFIG_HOME:-$HOME/${axeDir}}/axe
  memory=''${XDG_CONFIG_HOME:-$HOME/.config}/agent-memory

  is_ours() {
    case $(readlink -- "$1") in
      /etc/axe/* | /etc/agent-memory/*) ;;
      *) return 1 ;;
    esac
  }

  # True if there is nothing, or a link of ours.
  is_free() {
    if [ -L "$1" ]; then is_ours "$1"; else [ ! -e "$1" ]; fi
  }

  link() { # LINK FILE
    if ! is_free "$1"; then
      echo "axe: \"$1\" is your own file and is used; \"$2\" is not" >&2
      return
    fi
    mkdir -p -- "$(dirname -- "$1")"
    ln -sfn -- "$2" "$1"
  }

  # Links to files that are no longer in /etc.
  for old in "$axe"/config.toml "$axe"/agents/*.toml "$memory"/config.json ${
    lib.concatStringsSep " " (map (file: "\"$HOME\"/${lib.escapeShellArg file}") known)
  }; do
    if [ -L "$old" ] && [ ! -e "$old" ] && is_ours "$old"; then
      rm -- "$old"
    fi
  done
  ${lib.concatStringsSep "\n" (
    lib.mapAttrsToList (link "$axe" "axe") axeFiles
    ++ lib.mapAttrsToList (link "$memory" "agent-memory") memoryFiles
    ++ lib.mapAttrsToList homeLink homeFiles
    ++ lib.optional (more != "") more
  )}
''
