//! `config.toml`: faults, warnings, and that no key in it ever comes out again.

use crate::support::{Sandbox, said, set_mode, symlink};
use std::fs;

const KEY: &str = "sk-ant-0123456789";

fn with_config(config: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.agent_file("a", "name = 'a'\nmodel = 'p/m'");
    sandbox.write(&sandbox.config().join("config.toml"), config);
    set_mode(&sandbox.config().join("config.toml"), 0o600);
    sandbox
}

#[test]
fn a_missing_or_empty_file_is_an_empty_one() {
    let sandbox = with_config("");
    sandbox.agent_file("a", "name = 'a'\nmodel = 'anthropic/x'");
    assert_eq!(said(sandbox.run("a").arg("--dry-run")).0, Some(0));
    fs::remove_file(sandbox.config().join("config.toml")).unwrap();
    let (code, _, err) = said(sandbox.run("a").arg("--dry-run"));
    assert_eq!((code, err.as_str()), (Some(0), ""));
}

#[test]
fn a_broken_file_is_placed_and_exit_two() {
    for (config, place) in [
        ("[providers", "line 1, column "),
        ("[providers.p]\ncommand = 5", "line 2, column 11: "),
        ("[providers.p]\nkind = 'gemini'", "line 2, column 8: "),
        ("[retry]\nmax = -1", "line 2, column 7: "),
        ("\n\nproviders = 3", "line 3, column 13: "),
    ] {
        let (code, out, err) = said(&mut with_config(config).run("a"));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{config}");
        assert!(
            err.starts_with(&format!("axe-run: failed to parse config file: {place}")),
            "{config:?}: {err}"
        );
        assert_eq!(err.lines().count(), 1, "{err}");
    }
}

#[test]
fn a_directory_in_its_place_says_so() {
    let sandbox = with_config("");
    fs::remove_file(sandbox.config().join("config.toml")).unwrap();
    fs::create_dir(sandbox.config().join("config.toml")).unwrap();
    let (code, _, err) = said(&mut sandbox.run("a"));
    assert_eq!(code, Some(2));
    assert!(err.contains("config.toml\" is not a regular file"), "{err}");
}

#[test]
fn an_unknown_key_is_a_warning_that_names_the_nearest() {
    for (more, what) in [
        ("comand = 'x'", "unknown key \"providers.p.comand\" on line 3, did you mean \"command\"?"),
        ("[provider.x]", "unknown key \"provider\" on line 3, did you mean \"providers\"?"),
        ("[retry]\nmaxx = 1", "unknown key \"retry.maxx\" on line 4, did you mean \"max\"?"),
    ] {
        let sandbox = with_config(&format!("[providers.p]\ncommand = 'echo ok'\n{more}\n"));
        let (code, out, err) = said(&mut sandbox.run("a"));
        assert_eq!((code, out.as_str()), (Some(0), "ok"));
        let path = sandbox.config().join("config.toml");
        assert_eq!(err, format!("Warning: config file \"{}\": {what}\n", path.display()));
    }
}

#[test]
fn a_key_that_others_can_read_is_a_warning() {
    let with_key = format!("[providers.p]\ncommand = 'echo ok'\n[providers.openai]\napi_key = '{KEY}'");
    let without = "[providers.p]\ncommand = 'echo ok'\n[providers.openai]\napi_key_file = 'k'";
    for (config, mode, warns) in [
        (with_key.as_str(), 0o600, false),
        (&with_key, 0o400, false),
        (&with_key, 0o644, true),
        (&with_key, 0o640, true),
        (&with_key, 0o604, true),
        (without, 0o644, false),
        ("[providers.p]\ncommand = 'echo ok'\n[providers.openai]\napi_key = ''", 0o644, false),
        ("[providers.p]\ncommand = 'echo ok'\n[providers.local]\napi_key = 'none'", 0o644, false),
    ] {
        let sandbox = with_config(config);
        let path = sandbox.config().join("config.toml");
        set_mode(&path, mode);
        let (code, out, err) = said(&mut sandbox.run("a"));
        assert_eq!((code, out.as_str()), (Some(0), "ok"));
        let warning =
            format!("Warning: \"{0}\" contains an API key, and other users can read it", path.display());
        assert_eq!(
            (err.starts_with(&warning), err.lines().count()),
            (warns, usize::from(warns)),
            "{mode:o}: {err}"
        );
        // It is the file that counts, not a link to it.
        let real = sandbox.home().join("real.toml");
        fs::rename(&path, &real).unwrap();
        symlink(&real, &path);
        assert_eq!(said(&mut sandbox.run("a")).2.is_empty(), !warns, "{mode:o} behind a symlink");
    }
}

#[test]
fn a_key_never_comes_out_whatever_is_wrong_around_it() {
    let configs = [
        format!("[providers.p]\ncommand = 'cat; exit 1'\napi_key = '{KEY}'"),
        format!(
            "[providers.anthropic]\napi_key = '{KEY}'\n[providers.p]\nkind = 'openai'\napi_key = '{KEY}'"
        ),
        format!("[providers.p]\napi_key = '{KEY}'"),
        format!("[providers.p]\napi_key = ['{KEY}']"),
        format!("[providers.p]\napi_key = {{ value = '{KEY}' }}"),
        format!("[providers.p]\napi_key = {KEY}"),
        format!("[providers.p]\napi_key = '{KEY}"),
        format!("[providers.p]\napi_key = \"{KEY}\\q\""),
        format!("[providers.p]\napi_key = '{KEY}'\napi_key = '{KEY}'"),
        format!("[providers.p]\napi_kye = '{KEY}'\ncommand = 'echo ok'"),
        format!("[providers.p]\n{KEY}"),
        format!("[providers]\np = '{KEY}'"),
        format!("providers = '{KEY}'"),
        format!("[providers.p]\nkind = '{KEY}'"),
        format!("[retry]\nmax = '{KEY}'"),
        KEY.to_owned(),
    ];
    for config in configs {
        for mode in [0o600, 0o644] {
            let sandbox = with_config(&config);
            set_mode(&sandbox.config().join("config.toml"), mode);
            for args in [&[][..], &["--dry-run"], &["-v", "--json"], &["--model", "other/x"]] {
                let mut run = sandbox.run("a");
                run.args(args);
                run.env("P_API_KEY", format!("{KEY}-of-the-environment"));
                let (_, out, err) = said(&mut run);
                for text in [out, err, sandbox.log("a")] {
                    assert!(!text.contains(KEY), "{config:?} {args:?}: {text}");
                }
            }
        }
    }
}
