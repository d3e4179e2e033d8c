# Checks at build time, by the programs themselves. Where what is built cannot run here, there are none.
{ pkgs }:

let
  canRun = pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform;
  # The file itself, checked by a script that finds it as $source.
  checked =
    name: package: source: script:
    if !canRun then
      source
    else
      pkgs.runCommandLocal name
        {
          inherit source;
          nativeBuildInputs = [ package ];
        }
        ''
          export HOME=$PWD XDG_CONFIG_HOME=$PWD/config
          mkdir -p config/axe/agents
          ${script}
          cp "$source" "$out"
        '';
in
{
  memoryConfig =
    package: source:
    checked "agent-memory-config.json" package source ''
      memory-config show --config "$source" >/dev/null
    '';
  # A dry run of any agent reads it.
  axeConfig =
    package: source:
    checked "axe-config.toml" package source ''
      cp "$source" config/axe/config.toml
      printf 'name = "check"\nmodel = "command/llm"\n' >config/axe/agents/check.toml
      axe-run --dry-run --no-stdin check >/dev/null
    '';
  # The name of the file does not matter here, and may contain what a store path may not.
  agent =
    package: source:
    checked "axe-agent.toml" package source ''
      cp "$source" config/axe/agents/check.toml
      axe-agents show check >/dev/null
    '';
  # A file that exists if systemd accepts the calendar.
  calendar =
    calendar:
    pkgs.runCommandLocal "axe-calendar"
      {
        inherit calendar;
        nativeBuildInputs = [ pkgs.buildPackages.systemd ];
      }
      ''
        systemd-analyze calendar -- "$calendar" >"$out"
      '';
}
