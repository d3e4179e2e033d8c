# Configurations. `right` ones are kept as golden files; of `wrong` ones the messages; `impossible` ones have a
# value of the wrong type, at which evaluation ends.
let
  agent = more: {
    programs.axe.enable = true;
    programs.axe.agents.reviewer = {
      settings.model = "openai/gpt-5";
    }
    // more;
  };
  memory = more: {
    services.agent-memory = {
      enable = true;
    }
    // more;
  };
in
{
  right = {
    disabled.config = {
      programs.axe.settings.retry.max = 1;
      programs.axe.agents.sleeper.schedule = "daily";
      services.agent-memory.settings.llm.command = "claude";
    };
    defaults.config = {
      programs.axe.enable = true;
      services.agent-memory.enable = true;
    };
    full.config = {
      programs.axe = {
        enable = true;
        settings = {
          retry.max = 5;
          providers.openai.api_key_file = "/run/secrets/openai";
          providers.local = {
            kind = "openai";
            base_url = "http://localhost:8080";
            api_key = "none";
          };
          providers."open router" = {
            kind = "openai";
            base_url = "https://openrouter.ai/api";
            api_key_command = "pass show 'open router'";
          };
        };
        agents = {
          reviewer = {
            settings = {
              model = "openai/gpt-5";
              system_prompt = "You review a change.\nBe \"kind\".";
              files = [
                "README.md"
                "docs/**/*.md"
              ];
              memory.enabled = true;
              params.temperature = 0.5;
            };
            schedule = "daily";
            stdin = "git -C \"$HOME/my project\" log --since=yesterday | head -c 100000 # 100 %";
            environmentFile = "/run/secrets/it's 100%% mine.env";
          };
          "Überprüfer".settings.model = "command/claude";
          digest = {
            settings.model = "command/claude";
            schedule.interval = 5400;
          };
        };
      };
      services.agent-memory = {
        enable = true;
        settings = {
          llm.command = "claude";
          agentsMd.targets = [ "~/.claude/CLAUDE.md" ];
        };
        consolidate.intervalHours = 3;
        defrag.intervalHours = 48;
        environmentFile = "/run/secrets/llm.env";
      };
    };
    # What the first case leaves out.
    typed.config =
      {
        lib,
        options,
        pkgs,
        ...
      }:
      {
        programs.axe = {
          enable = true;
          extraPackages = [ pkgs.coreutils ];
          gc.enable = true;
          agents.digest = {
            settings.model = "command/claude";
            schedule = "Mon..Fri 07:00";
            prompt = "What is new\nin 100 % of \"$HOME\"?";
            extraArgs = [
              "--timeout"
              "600"
            ];
            stdin = "date";
            skipIfEmpty = true;
            output = "~/notes/the digest.md";
            environmentFile = "-%h/keys.env";
            after = [ "sops-nix.service" ];
          };
          agents.quick = {
            settings.model = "command/claude";
            schedule.interval = 60;
            prompt = "What is new\nin 100 % of \"$HOME\"?";
          };
          agents.daily = {
            settings.model = "command/claude";
            schedule.interval = 86400;
          };
        };
        services.agent-memory = {
          enable = true;
          settings.llm.maxCallsPerDay = 9;
          llm.package = pkgs.claude-code;
          extraPackages = [ pkgs.gitMinimal ];
          targets = [ "~/.codex/AGENTS.md" ];
          consolidate.schedule = "Mon,Thu 07:30";
          environmentFile = "\${XDG_RUNTIME_DIR}/agenix/llm.env";
          after = [ "agenix.service" ];
          sync.remote = "git@example.com:ada/notes.git";
          hooks = {
            claude-code.enable = true;
            codex.enable = true;
            copilot.enable = true;
            cursor.enable = true;
            gemini.enable = true;
            qwen-code.enable = true;
          };
        }
        // lib.optionalAttrs (options.services.agent-memory ? users) { users = [ "ada" ]; };
      };
    # home-manager manages Claude Code.
    with-claude-code = {
      hosts = [ "home-manager" ];
      config = {
        services.agent-memory = {
          enable = true;
          llm.command = "claude";
          hooks.claude-code.enable = true;
          targets = [ "~/.claude/CLAUDE.md" ];
          consolidate.enable = false;
          defrag.enable = false;
        };
        programs.claude-code = {
          enable = true;
          settings.theme = "dark";
        };
        home.file.".claude/CLAUDE.md".text = "mine";
      };
      module =
        { lib, ... }:
        {
          options.programs.claude-code = {
            enable = lib.mkOption {
              type = lib.types.bool;
              default = false;
            };
            settings = lib.mkOption {
              type = lib.types.attrsOf lib.types.raw;
              default = { };
            };
          };
        };
    };
    # Timers for some, of whom one does not linger; and what a machine adds to a service's PATH.
    users = {
      hosts = [ "nixos" ];
      config =
        { pkgs, ... }:
        {
          services.agent-memory = {
            enable = true;
            users = [
              "ada"
              "bob"
            ];
            environmentFile = "/run/secrets/llm-%u.env";
            defrag.enable = false;
          };
          users.users.ada.linger = true;
          systemd.user.services.agent-memory-consolidate.path = [ pkgs.coreutils ];
        };
    };
    # A home-manager that manages the XDG directories, and a home that wants quoting.
    xdg = {
      hosts = [ "home-manager" ];
      config = {
        home.homeDirectory = "/home/ada & bob's 100%";
        xdg.enable = true;
        programs.axe = {
          enable = true;
          settings.limits.max_calls = 9;
        };
        services.agent-memory = {
          enable = true;
          defrag.enable = false;
          consolidate.intervalHours = 6;
        };
      };
    };
  };

  wrong = {
    hours-twice = memory { settings.schedule.defragIntervalHours = 12; };
    calendar-of-systemd = agent { schedule = "*:0/5"; };
    calendar-of-memory = memory { defrag.schedule = " "; };
    calendar-twice = memory {
      consolidate.schedule = "daily";
      settings.schedule.consolidate = "weekly";
    };
    command-twice = memory {
      llm.command = "claude";
      settings.llm.command = "codex";
    };
    command-of-white-space = memory { llm.command = " "; };
    remote-with-a-password = memory { sync.remote = "https://ada:sk-123@example.com/notes.git"; };
    remote-with-a-token = memory {
      settings.sync.remote = "https://github_pat_sk-123sk-123sk-123@example.com/notes.git";
    };
    remote-of-all-users = memory { sync.remote = "git@example.com:ada/notes.git"; };
    section-that-is-text = memory {
      settings.llm = "claude";
      llm.command = "claude";
    };
    targets-that-are-text = memory {
      settings.agentsMd.targets = "~/AGENTS.md";
      targets = [ "~/.codex/AGENTS.md" ];
    };
    target-at-a-relative-path = memory { targets = [ "AGENTS.md" ]; };
    unit-that-is-none = memory { after = [ "agenix" ]; };
    input-that-is-none-is-skipped = agent {
      schedule = "daily";
      skipIfEmpty = true;
    };
    output-at-a-relative-path = agent {
      schedule = "daily";
      output = "digest.md";
    };
    key-as-a-nix-path = {
      programs.axe.enable = true;
      programs.axe.settings.providers.openai.api_key_file = ./cases.nix;
    };
    key-in-the-store = {
      programs.axe.enable = true;
      programs.axe.settings.providers.openai.api_key_file = "${builtins.storeDir}/abc-key";
    };
    key-of-an-agent-as-a-nix-path = agent {
      settings = {
        model = "a/b";
        tools.x.token_file = ./cases.nix;
      };
    };
    keys-with-a-specifier-of-systemd = memory { environmentFile = "/run/%i.env"; };
    calendar-empty = agent { schedule = " "; };
    calendar-of-two-lines = agent { schedule = "daily\nhourly"; };
    calendar-that-goes-on = agent { schedule = "daily\\"; };
    no-model = {
      programs.axe.enable = true;
      programs.axe.agents.reviewer.schedule = "daily";
    };
    agent-with-a-slash = {
      programs.axe.enable = true;
      programs.axe.agents."../reviewer".settings.model = "a/b";
    };
    agent-with-a-dot-in-front = {
      programs.axe.enable = true;
      programs.axe.agents.".reviewer".settings.model = "a/b";
    };
    agent-that-is-no-unit = {
      programs.axe.enable = true;
      programs.axe.agents."my reviewer" = {
        settings.model = "a/b";
        schedule = "daily";
      };
    };
    stdin-without-a-timer = agent { stdin = "date"; };
    keys-without-a-timer = agent { environmentFile = "/run/secrets/x"; };
    key-in-the-settings = {
      programs.axe.enable = true;
      programs.axe.settings.providers.openai.api_key = "sk-123";
    };
    key-in-an-agent = agent {
      settings = {
        model = "a/b";
        params.api_key = "sk-123";
      };
    };
    keys-at-a-relative-path = memory { environmentFile = "secrets/llm.env"; };
    keys-in-the-store = memory { environmentFile = "${builtins.storeDir}/abc-llm.env"; };
    keys-on-two-lines = memory { environmentFile = "/run/a\nExecStart=/bin/true"; };
    keys-after-a-carriage-return = memory { environmentFile = "/run/a\rExecStart=/bin/true"; };
    keys-on-a-line-that-goes-on = memory { environmentFile = "/run/a\\"; };
  };

  impossible = {
    a-path-is-no-string = memory { environmentFile = ./cases.nix; };
    an-unknown-option = memory { consolidte.enable = true; };
    an-unknown-option-of-an-agent = agent { shedule = "daily"; };
    an-unknown-unit-of-time = agent { schedule.minutes = 5; };
    hours-zero = memory { consolidate.intervalHours = 0; };
    hours-negative = memory { defrag.intervalHours = -1; };
    hours-of-a-year = memory { defrag.intervalHours = 8785; };
    seconds-zero = agent { schedule.interval = 0; };
    hours-as-text = memory { consolidate.intervalHours = "2"; };
    null-in-toml = {
      programs.axe.enable = true;
      programs.axe.settings.retry.max = null;
    };
    settings-as-text = memory { settings = "llm"; };
    target-that-is-a-number = memory { targets = [ 5 ]; };
  };
}
