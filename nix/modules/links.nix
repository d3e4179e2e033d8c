# NixOS and nix-darwin have no files of a user's. The files lie in /etc; this script, run as the user, links them
# to where the programs look. A file that the user made stays, and counts.
{ lib, pkgs }:

{
  axeFiles,
  memoryFiles,
  # Below the home directory, where XDG_CONFIG_HOME is not set.
  axeDir,
}:

let
  link =
    dir: etc: file: _:
    "link \"${dir}\"/${lib.escapeShellArg file} ${lib.escapeShellArg "/etc/${etc}/${file}"}";
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

  # Nothing is there, or a link of ours.
  is_free() {
    if [ -L "$1" ]; then is_ours "$1"; else [ ! -e "$1" ]; fi
  }

  link() { # LINK FILE
    if ! is_free "$1"; then
      echo "axe: \"$1\" is your own, and counts; \"$2\" is not used" >&2
      return
    fi
    mkdir -p -- "$(dirname -- "$1")"
    ln -sfn -- "$2" "$1"
  }

  # Links whose files have gone from /etc.
  for old in "$axe"/config.toml "$axe"/agents/*.toml "$memory"/config.json; do
    if [ -L "$old" ] && [ ! -e "$old" ] && is_ours "$old"; then
      rm -- "$old"
    fi
  done
  ${lib.concatStringsSep "\n" (
    lib.mapAttrsToList (link "$axe" "axe") axeFiles
    ++ lib.mapAttrsToList (link "$memory" "agent-memory") memoryFiles
  )}
''
