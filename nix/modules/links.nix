# NixOS and nix-darwin do not manage files in home directories. The files are in /etc, and this script, run as the
# user, links to them from the user's configuration. A file that the user made is kept and used. Without files it only
# removes the links that an earlier configuration made.
{ lib, pkgs }:

{
  axeFiles,
  memoryFiles,
  # In the home directory, if XDG_CONFIG_HOME is not set.
  axeDir,
  hooks,
  # More that the script does.
  more ? "",
}:

let
  below = dir: path: "\"${dir}\"/${lib.escapeShellArg path}";
  link =
    dir: etc: file: _:
    "link ${below dir file} ${lib.escapeShellArg "/etc/${etc}/${file}"}";
  hookLink = dir: file: "link ${below dir file.path} ${lib.escapeShellArg "/etc/${file.etc}"}";
  # All hooks that a configuration can have linked to.
  known = lib.concatMap (
    hook:
    map (below "$HOME") (lib.attrNames (hook.homeFiles or { }))
    ++ map (below "$config") (lib.attrNames (hook.configFiles or { }))
  ) (lib.attrValues (import ./hooks.nix { programs = ""; }));
in
pkgs.writeShellScript "axe-links" ''
  set -eu
  PATH=${lib.makeBinPath [ pkgs.coreutils ]}
  axe=''${XDG_CONFIG_HOME:-$HOME/${axeDir}}/axe
  config=''${XDG_CONFIG_HOME:-$HOME/.config}
  memory=$config/agent-memory

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
  for old in "$axe"/config.toml "$axe"/agents/*.toml "$memory"/config.json ${lib.concatStringsSep " " known}; do
    if [ -L "$old" ] && [ ! -e "$old" ] && is_ours "$old"; then
      rm -- "$old"
    fi
  done
  ${lib.concatStringsSep "\n" (
    lib.mapAttrsToList (link "$axe" "axe") axeFiles
    ++ lib.mapAttrsToList (link "$memory" "agent-memory") memoryFiles
    ++ map (hookLink "$HOME") hooks.homeFiles
    ++ map (hookLink "$config") hooks.configFiles
    ++ lib.optional (more != "") more
  )}
''
