//! Tables of programs: who asks the network, who runs another command, who prints files.

/// Programs that print what the network sends.
const NETWORK: &[&str] = &[
    "aria2c", "axel", "bitsadmin", "certutil", "curl", "curlie", "dig", "drill", "elinks", "ftp", "gh",
    "glab", "gsutil", "host", "http", "httpie", "https", "invoke-restmethod", "invoke-webrequest", "irm",
    "iwr", "lftp", "links", "lynx", "nc", "ncat", "netcat", "nslookup", "rclone", "s3cmd", "scp", "sftp",
    "socat", "ssh", "start-bitstransfer", "telnet", "tftp", "w3m", "wget", "wget2", "whois", "xh", "xhs",
    "youtube-dl", "yt-dlp",
];
/// Other agents: what they print is a report of which nobody knows the sources.
const AGENTS: &[&str] = &[
    "aider", "amp", "claude", "codex", "copilot", "cursor-agent", "gemini", "goose", "llm", "opencode",
    "qwen",
];
/// Programs that print nothing but what the command says, or what the shell knows.
const QUIET: &[&str] = &[
    "[", "[[", "basename", "break", "chmod", "chown", "continue", "date", "declare", "dirname", "du", "echo",
    "exit", "export", "false", "hash", "kill", "local", "mkdir", "mktemp", "popd", "printf", "pwd",
    "realpath", "read", "readlink", "return", "rm", "rmdir", "seq", "set", "shift", "sleep", "stat", "test",
    "touch", "trap", "true", "type", "ulimit", "umask", "uname", "unset", "wait", "wc", "which", "whoami",
];
/// Programs that fetch a package and run it, if the project does not have it.
const FETCH_AND_RUN: &[&str] = &["bunx", "npx", "pnpx"];
/// Programs that ask the network with some of their commands: what is installed, downloaded, looked up.
const MANAGERS: &[&str] = &[
    "apk", "apt", "apt-cache", "apt-get", "brew", "bun", "bundle", "cabal", "cargo", "composer", "conda",
    "cpan", "cpanm", "dart", "deno", "dnf", "dotnet", "flutter", "gem", "go", "hf", "huggingface-cli",
    "luarocks", "mamba", "micromamba", "mix", "npm", "ollama", "opam", "pdm", "pip", "pip2", "pip3",
    "pipenv", "pipx", "pnpm", "pod", "poetry", "port", "rustup", "snap", "stack", "swift", "uv", "winget",
    "yarn", "yum", "zypper",
];
const MANAGER_COMMANDS: &[&str] = &[
    "add", "audit", "ci", "create", "deps.get", "dlx", "download", "fetch", "get", "i", "info", "inject",
    "install", "lock", "outdated", "pull", "require", "restore", "search", "show", "sync", "tidy", "update",
    "upgrade", "view",
];
/// What may stand before those: `go mod download`, `uv pip install`.
const MANAGER_GROUPS: &[&str] =
    &["global", "mod", "package", "pip", "pub", "python", "repo", "tool", "toolchain"];
const CONTAINERS: &[&str] = &["docker", "nerdctl", "podman"];

/// Programs that run the command in their arguments, and their options with a value.
const PREFIXES: &[(&str, &[&str])] = &[
    ("builtin", &[]),
    ("busybox", &[]),
    ("caffeinate", &["-t", "-w"]),
    ("chronic", &[]),
    ("chroot", &[]),
    ("command", &[]),
    ("doas", &["-u", "-C"]),
    ("env", &["-u", "-C", "--unset", "--chdir"]),
    ("exec", &["-a"]),
    ("flock", &["-w", "-E"]),
    ("ionice", &["-c", "-n", "-p"]),
    ("ltrace", &["-o", "-e", "-p"]),
    ("nice", &["-n"]),
    ("nohup", &[]),
    ("parallel", &["-j", "--jobs"]),
    ("proxychains", &["-f"]),
    ("proxychains4", &["-f"]),
    ("setsid", &[]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("strace", &["-o", "-e", "-p", "-s"]),
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U"]),
    ("time", &["-f", "-o"]),
    ("timeout", &["-s", "-k", "--signal", "--kill-after"]),
    ("torify", &[]),
    ("torsocks", &[]),
    ("unbuffer", &[]),
    ("watch", &["-n", "-d"]),
    ("xargs", &["-I", "-n", "-P", "-L", "-d", "-a", "-s", "-E", "-i"]),
];
/// The same with a word of their own before it: `uv run pytest`.
const RUNNERS: &[(&str, &str)] = &[
    ("bundle", "exec"),
    ("direnv", "exec"),
    ("hatch", "run"),
    ("mise", "exec"),
    ("pdm", "run"),
    ("pipenv", "run"),
    ("pnpm", "exec"),
    ("poetry", "run"),
    ("uv", "run"),
];

pub(super) const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "zsh"];

/// Programs that run code, and their options for it.
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("bun", &["-e", "--eval", "-p", "--print"]),
    ("deno", &["eval"]),
    ("lua", &["-e"]),
    ("node", &["-e", "--eval", "-p", "--print", "-pe"]),
    ("nodejs", &["-e", "--eval", "-p", "--print", "-pe"]),
    ("osascript", &["-e"]),
    ("perl", &["-e", "-E"]),
    ("php", &["-r"]),
    ("powershell", &["-c", "-command"]),
    ("pwsh", &["-c", "-command"]),
    ("pypy", &["-c"]),
    ("python", &["-c"]),
    ("rscript", &["-e"]),
    ("ruby", &["-e"]),
    ("ts-node", &["-e", "--eval"]),
    ("tsx", &["-e", "--eval"]),
];

/// What code that asks the network has in it.
const NETWORK_CODE: &[&str] = &[
    "aiohttp", "axios", "curl_exec", "curl_init", "dns.lookup", "dns.resolve", "fetch(", "fsockopen",
    "ftplib", "got(", "http.client", "http.get", "http.request", "httparty", "httpclient", "https.get",
    "https.request", "httpx", "invoke-restmethod", "invoke-webrequest", "io::socket", "lwp", "net.connect",
    "net.webclient", "net/http", "net::http", "open-uri", "paramiko", "requests.", "smtplib", "socket",
    "undici", "urllib", "urlopen", "websocket", "xmlhttprequest",
];
/// What code that reads files has in it.
const READING_CODE: &[&str] = &[
    "file.read", "file_get_contents", "fopen(", "glob", "io.read", "open(", "open ", "path(", "read_text",
    "readfile", "require(", "import(", "slurp",
];

/// Programs that print files: how many words before the files are none, and the options with a value.
const READERS: &[(&str, usize, &[&str])] = &[
    ("ack", 1, &["-A", "-B", "-C", "-m"]),
    ("ag", 1, &["-A", "-B", "-C", "-m", "-G", "--ignore"]),
    ("awk", 1, &["-F", "-v", "-f"]),
    ("base64", 0, &[]),
    ("bat", 0, &["-r", "-l", "--theme", "--style", "--line-range", "--language"]),
    ("batcat", 0, &["-r", "-l", "--theme", "--style", "--line-range", "--language"]),
    ("bzcat", 0, &[]),
    ("cat", 0, &[]),
    ("cmp", 0, &["-n", "-i"]),
    ("column", 0, &["-s", "-t", "-o"]),
    ("comm", 0, &[]),
    ("csvcut", 0, &["-c", "-d"]),
    ("cut", 0, &["-d", "-f", "-c", "-b"]),
    ("diff", 0, &["-U", "-x", "-I", "--exclude"]),
    ("egrep", 1, &["-A", "-B", "-C", "-m", "--include", "--exclude", "--exclude-dir"]),
    ("expand", 0, &["-t"]),
    ("fgrep", 1, &["-A", "-B", "-C", "-m", "--include", "--exclude", "--exclude-dir"]),
    ("fold", 0, &["-w"]),
    ("gawk", 1, &["-F", "-v", "-f"]),
    ("grep", 1, &["-A", "-B", "-C", "-m", "-D", "-d", "--include", "--exclude", "--exclude-dir"]),
    ("head", 0, &["-n", "-c"]),
    ("hexdump", 0, &["-n", "-s", "-e"]),
    ("join", 0, &["-t", "-1", "-2", "-j", "-o"]),
    ("jq", 1, &["-f", "--indent"]),
    ("less", 0, &[]),
    ("mapfile", 0, &[]),
    ("mawk", 1, &["-F", "-v", "-f"]),
    ("more", 0, &[]),
    ("nl", 0, &["-b", "-w", "-s"]),
    ("od", 0, &["-A", "-N", "-j", "-t"]),
    ("paste", 0, &["-d"]),
    ("pdftotext", 0, &["-f", "-l"]),
    ("pr", 0, &["-l", "-w"]),
    ("rev", 0, &[]),
    ("rg", 1, &["-A", "-B", "-C", "-m", "-g", "-t", "-T", "-j", "-M", "-r", "--glob", "--type", "--iglob"]),
    ("sed", 1, &["-f", "-l"]),
    ("sort", 0, &["-k", "-t", "-o", "-S", "-T"]),
    ("source", 0, &[]),
    ("sqlite3", 0, &["-cmd", "-separator"]),
    (".", 0, &[]),
    ("strings", 0, &["-n", "-t", "-e"]),
    ("tac", 0, &[]),
    ("tail", 0, &["-n", "-c"]),
    ("uniq", 0, &["-f", "-s", "-w"]),
    ("vi", 0, &["-c"]),
    ("vim", 0, &["-c"]),
    ("view", 0, &[]),
    ("xxd", 0, &["-l", "-s", "-c", "-g"]),
    ("xzcat", 0, &[]),
    ("yq", 1, &["-p", "-o"]),
    ("zcat", 0, &[]),
    ("zgrep", 1, &["-A", "-B", "-C", "-m"]),
    ("zless", 0, &[]),
    ("zstdcat", 0, &[]),
];
/// Of those: they search whole directories by themselves.
const SEARCHERS: &[&str] = &["ack", "ag", "rg"];
/// Programs that print names of files, and run something with each if they are told.
pub(super) const LISTERS: &[&str] = &["fd", "fdfind", "find", "ls", "locate", "tree"];

/// Options of curl and wget whose value is sent, or says how: no address of what is asked.
const SENT: &[&str] = &[
    "--cookie", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "--form",
    "--header", "--json", "--max-time", "--output", "--output-document", "--post-data", "--referer",
    "--request", "--user", "--user-agent", "--write-out", "-A", "-H", "-U", "-o", "-u",
];
/// The same with a meaning of their own.
const SENT_BY_CURL: &[&str] = &["-F", "-X", "-b", "-d", "-e", "-m", "-w"];
const SENT_BY_WGET: &[&str] = &["-O", "-P", "-a"];

fn has(table: &[&str], name: &str) -> bool {
    table.contains(&name)
}

pub(super) fn is_network(name: &str) -> bool {
    has(NETWORK, name)
}

/// Commands that show what the repository's own workflows did.
const RUNS: &[(&str, &str, &str)] = &[
    ("gh", "pr", "checks"),
    ("gh", "run", ""),
    ("gh", "workflow", ""),
    ("glab", "ci", ""),
    ("glab", "job", ""),
    ("glab", "pipeline", ""),
];

pub(super) fn shows_runs(name: &str, command: &str, verb: &str) -> bool {
    RUNS.iter().any(|run| (run.0, run.1) == (name, command) && (run.2.is_empty() || run.2 == verb))
}

pub(super) fn is_quiet(name: &str) -> bool {
    has(QUIET, name)
}

pub(super) fn is_agent(name: &str) -> bool {
    has(AGENTS, name)
}

/// The options of a prefix that have a value.
pub(super) fn prefix(name: &str) -> Option<&'static [&'static str]> {
    PREFIXES.iter().find(|(prefix, _)| *prefix == name).map(|(_, options)| *options)
}

pub(super) fn is_runner(name: &str, word: &str) -> bool {
    RUNNERS.contains(&(name, word))
}

/// The options of an interpreter for code: `python3.12` is Python.
pub(super) fn interpreter(name: &str) -> Option<&'static [&'static str]> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|(known, _)| *known == name || *known == plain).map(|(_, options)| *options)
}

/// A program that prints files: how many words stand before them, and its options with a value.
pub(super) fn reader(name: &str) -> Option<(usize, &'static [&'static str])> {
    READERS.iter().find(|(reader, ..)| *reader == name).map(|(_, before, options)| (*before, *options))
}

pub(super) fn is_searcher(name: &str) -> bool {
    has(SEARCHERS, name)
}

/// `-fsSLo`: switches of curl, and the option for the file.
pub(super) fn is_output_cluster(option: &str) -> bool {
    let switches = option.strip_prefix('-').and_then(|option| option.strip_suffix('o'));
    switches
        .is_some_and(|switches| !switches.is_empty() && switches.bytes().all(|c| b"fgijkLNsSv#".contains(&c)))
}

pub(super) fn is_sent(name: &str, option: &str) -> bool {
    match name {
        "curl" | "curlie" => has(SENT, option) || has(SENT_BY_CURL, option) || is_output_cluster(option),
        "wget" | "wget2" => has(SENT, option) || has(SENT_BY_WGET, option),
        _ => false,
    }
}

pub(super) fn asks_network(code: &str) -> bool {
    let code = code.to_lowercase();
    NETWORK_CODE.iter().any(|sign| code.contains(sign))
}

pub(super) fn reads_files(code: &str) -> bool {
    let code = code.to_lowercase();
    READING_CODE.iter().any(|sign| code.contains(sign))
}

/// Does this command of a package manager, or of containers, ask the network? `words` are no options.
fn is_elsewhere(words: &[&str], all: &[&str]) -> bool {
    let package = words.first().copied().unwrap_or_default();
    let is_named = |word: &&str| {
        ["-y", "--yes", "-p", "--package", "-c"].contains(word) || word.starts_with("--package=")
    };
    all.iter().any(is_named)
        || package.get(1..).is_some_and(|rest| rest.contains('@'))
        || package.rsplit('/').next().is_some_and(|name| name.starts_with("create-"))
}

pub(super) fn fetches(name: &str, words: &[&str], all: &[&str]) -> bool {
    let first = words.first().copied().unwrap_or_default();
    let second = words.get(1).copied().unwrap_or_default();
    if has(FETCH_AND_RUN, name) {
        return is_elsewhere(words, all);
    }
    match name {
        "uvx" => true,
        "pipx" => ["run", "install", "upgrade"].contains(&first),
        // Without a word it installs.
        "yarn" if first.is_empty() => true,
        "npm" if first == "exec" => true,
        "bun" | "npm" if first == "x" => true,
        // The repository's own.
        "go" if words.len() > 1 && words[1..].iter().all(|word| word.starts_with('.')) => false,
        "openssl" => first == "s_client",
        "hg" | "svn" | "fossil" | "bzr" => {
            ["clone", "pull", "checkout", "co", "update", "up", "cat", "export", "branch"].contains(&first)
        }
        _ if has(CONTAINERS, name) => {
            let command = if ["container", "image"].contains(&first) { second } else { first };
            ["pull", "run", "search"].contains(&command)
        }
        _ if has(MANAGERS, name) => {
            let command = if has(MANAGER_GROUPS, first) { second } else { first };
            has(MANAGER_COMMANDS, command)
        }
        _ => false,
    }
}
