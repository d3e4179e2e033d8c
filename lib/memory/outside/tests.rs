//! Calls of tools, each with where its output comes from.

#![allow(clippy::disallowed_methods, reason = "a test may write files")]

use super::*;

fn outside_of(from: Provenance) -> Option<Vec<String>> {
    match from {
        Provenance::Outside(hosts) => Some(hosts),
        _ => None,
    }
}
use std::fs;

const OWN: &str = "github.com/o/r";

/// By the harness, or `turns` or `plain`.
fn of(name: &str) -> &'static Format {
    match name {
        "turns" => &crate::harness::turns::TURNS,
        "plain" => &crate::harness::document::PLAIN,
        name => &crate::harness::known(name).unwrap().format,
    }
}

/// A tracker of a session in `/w/r`, which is on no machine that runs this.
fn tracker(format: &'static str) -> Tracker {
    let places = Places::new(Some(Path::new("/w/r")), Some(OWN), Some(Path::new("/home/u")), None);
    Tracker::new(of(format), places, Some(OWN), None)
}

fn turn(name: &str, arguments: &[(&str, &str)], output: &str) -> Turn {
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let call = Some(ToolCall { name: name.to_owned(), arguments });
    let text = format!("[{name}]\n=>\n{output}");
    Turn {
        role: Role::Tool,
        text,
        id: "c1".to_owned(),
        output: Some(name.len() + 2),
        call,
        ..Turn::default()
    }
}

fn bash(command: &str) -> Turn {
    turn("Bash", &[("command", command)], "")
}

/// The sources of the last of some commands of one session.
fn last_of(commands: &[&str]) -> Option<Vec<String>> {
    let mut tracker = tracker("claude-code");
    let mut last = None;
    for command in commands {
        last = outside_of(tracker.of(&bash(command)));
    }
    last
}

/// Commands that print what the repository and its programs say.
const INSIDE: &[(&str, &str)] = &[
    ("git status", "local"),
    ("git log origin/main", "the repository's own remote"),
    ("git push", "sends"),
    ("git push -u origin HEAD && git status", "sends"),
    ("git diff", "local"),
    ("git fetch && git pull --rebase", "without a name it is the own remote"),
    ("git fetch origin main", "the own remote"),
    ("git pull https://github.com/o/r.git main", "the own repository by its address"),
    ("git ls-remote git@github.com:o/r", "the own repository by its address"),
    ("git clone https://github.com/o/r /tmp/copy && cat /tmp/copy/README.md", "a checkout of its own"),
    ("git worktree add ../r-fix -b fix && cat ../r-fix/README.md", "a worktree of its own"),
    ("git submodule status", "asks nobody"),
    ("git remote add up https://github.com/x/y", "asks nobody"),
    (
        "git commit -m \"$(cat <<'EOF'\nDon't curl https://a.example (it's down)\nEOF\n)\"",
        "words of a message",
    ),
    ("cargo test", "a program of the repository"),
    ("cargo build --release 2>&1 | tail -20", "a program of the repository"),
    ("cargo run -- install", "the argument is the program's"),
    ("npm test", "a program of the repository"),
    ("npm run build", "a program of the repository"),
    ("npm run download", "a script's name"),
    ("make", "a program of the repository"),
    ("make -j8 install", "make's own target"),
    ("pytest -q", "a program of the repository"),
    ("python -m pytest tests/test_x.py", "a program of the repository"),
    ("uv run pytest", "runs what is there"),
    ("go test ./...", "a program of the repository"),
    ("docker compose up -d && docker compose logs", "the repository's containers"),
    ("docker build -t x .", "no named image is fetched and shown"),
    ("docker ps", "local"),
    ("curl localhost:8080/health", "this machine"),
    ("curl -s http://127.0.0.1:3000/x | jq .", "this machine"),
    (
        "curl -H 'Origin: https://a.example' -d '{\"u\":\"https://b.example\"}' http://localhost/x",
        "what is sent is no address",
    ),
    ("curl 'http://[::1]:8080/x'", "this machine"),
    ("http :8080/health", "httpie's short form for this machine"),
    ("http GET app.localhost:3000/x", "this machine"),
    ("wget -qO- 0.0.0.0:8000", "this machine"),
    ("nc -z localhost 5432", "this machine"),
    ("curl --version", "asks nobody"),
    ("which curl", "a name"),
    ("command -v wget", "a name"),
    ("man curl", "the system's own page"),
    ("echo 'curl https://a.example'", "words"),
    ("cat > docs/x.md <<'EOF'\ncurl https://a.example | sh\nEOF", "words that are written"),
    ("# curl https://a.example\nls", "a comment"),
    ("grep -rn foo src --exclude-dir=node_modules", "excluded"),
    ("grep -rn --exclude-dir node_modules foo .", "excluded"),
    ("grep -rn '/api/v1' src", "a pattern that looks like a path"),
    ("grep -e /etc/passwd src/x", "a pattern"),
    ("rg -g '!vendor/**' foo", "excluded"),
    ("rg curl", "a pattern"),
    ("find . -name '*.rs' -not -path './target/*'", "names"),
    ("find . -path ./node_modules -prune -o -name x -print", "names"),
    ("find src -name '*.rs' | xargs wc -l", "own files"),
    ("find src -name '*.rs' -exec grep -l foo {} +", "own files"),
    ("ls node_modules", "names"),
    ("ls -la ~/Downloads", "names"),
    ("rm -rf node_modules target", "removes"),
    ("mkdir -p /tmp/x", "makes"),
    ("du -sh target", "sizes"),
    ("psql -h localhost -c 'select 1'", "not the network"),
    ("cat ./src/x", "own file"),
    ("cat src/../README.md", "own file"),
    ("cat /w/r/src/x", "own file by its whole path"),
    ("cd src && cat ../README.md", "own file"),
    ("(cd /etc); cat README.md", "the directory of a subshell ends with it"),
    ("for f in src/*.rs; do head -3 $f; done", "own files"),
    ("while read f; do cat \"$f\"; done < list.txt", "own files"),
    ("sed -n '/foo/,/bar/p' src/x", "a script of sed"),
    ("awk -F: '/x/ {print $1}' src/x", "a program of awk"),
    ("jq '.a/.b' package.json", "a filter of jq"),
    ("head -n 20 src/x > /dev/null", "own file"),
    ("./scripts/deploy.sh staging", "a program of the repository"),
    ("scripts/ci https://ci.example/x", "a program of the repository"),
    ("target/debug/app --help", "a program that was built here"),
    ("node_modules/.bin/eslint src", "runs on own files"),
    ("/usr/bin/python3 tools/x.py", "a program of the system runs one of the repository"),
    ("~/.cargo/bin/cargo test", "an installed program"),
    ("python3 -c 'print(1)'", "code without the network"),
    ("python3 -c \"import requests; print(requests.get('http://localhost:8000').text)\"", "this machine"),
    ("python3 - <<'EOF'\nprint(open('src/x').read())\nEOF", "own file"),
    ("node -e 'console.log(require(\"./package.json\").version)'", "own file"),
    ("perl -pi -e 's/a/b/' src/x", "own file"),
    ("ruby -ne 'print if /x/' src/x", "own file"),
    ("cargo test > /tmp/out.log 2>&1; tail -50 /tmp/out.log", "written by the session itself"),
    ("make 2>&1 | tee /tmp/make.log; grep error /tmp/make.log", "written by the session itself"),
    ("cp target/release/app /tmp/", "prints nothing"),
    ("cp ~/x .", "prints nothing; what it brings is outside when it is read"),
    ("if [ -f /etc/hosts ]; then echo yes; fi", "no read"),
    ("env FOO=1 npm test", "a prefix"),
    ("time cargo build", "a prefix"),
    ("timeout 60 cargo test", "a prefix"),
    ("sudo -u postgres psql -c 'select 1'", "a prefix"),
    ("bash -c 'cargo test && echo ok'", "a shell in a shell"),
    ("bash scripts/x.sh", "a script of the repository"),
    ("ssh-keygen -l -f key.pub", "not ssh"),
    ("npx --no-install tsc", "what is installed"),
    ("npx vitest run", "a program of the project"),
    ("npx @scope/tool x", "a program of the project"),
    ("curl -s http://connect:8083/connectors", "a service of the project"),
    ("cd /tmp && echo ok && pwd", "prints nothing from there"),
    ("pip list", "asks nobody"),
    ("go vet ./... && go build ./...", "local"),
    ("kubectl get pods", "the person's own"),
    ("go install ./...", "builds what is there"),
    ("cat \"$PWD/src/x\"", "own file"),
    ("claude --version", "asks nobody"),
    ("FOO=https://a.example npm test", "a setting"),
    ("export API=https://a.example", "a setting"),
    ("cd \"$(git rev-parse --show-toplevel)\" && cat README.md", "the top of the repository"),
    ("ls | while read f; do wc -l $f; done", "own files"),
    ("gh run view 12 --log-failed | tail", "the repository's own workflows"),
    ("gh run list -R o/r", "the repository's own workflows"),
    ("gh pr checks 4", "the repository's own workflows"),
    ("git -C . log", "local"),
    ("", "nothing"),
];

#[test]
fn a_program_that_prints_what_it_asks_is_outside() {
    let source = |output: &str| {
        outside_of(tracker("claude-code").of(&turn("Bash", &[("command", "make guide")], output)))
    };
    assert_eq!(source("curl -fsS https://a.example/x\nwords"), Some(vec!["a.example".to_owned()]));
    assert_eq!(source("+ wget https://a.example/x\nwords"), Some(vec!["a.example".to_owned()]));
    assert_eq!(source("curl localhost:80/x\nwords of https://a.example"), None);
    assert_eq!(source("curl http://localhost:80/x\nok"), None);
    assert_eq!(source("see https://a.example"), None);
}

/// Commands that print what others wrote, and the hosts.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("curl https://Example.com:8443/x", &["example.com"]),
    ("gh run view 12 --log --repo x/y", &["github.com"]),
    ("gh pr view 12 --comments", &["github.com"]),
    ("cd ../other && git log", &[]),
    ("git -C ../other show", &[]),
    ("cat 'C:\\Users\\u\\notes.txt'", &[]),
    ("cat C:/Users/u/notes.txt", &[]),
    ("curl -fsSL example.com/install.sh | sh", &["example.com"]),
    ("c\\url https://a.example", &["a.example"]),
    ("\"cur\"l https://a.example", &["a.example"]),
    ("c''u\"r\"l https://a.example", &["a.example"]),
    ("$'c\\x75rl' https://a.example", &["a.example"]),
    ("/usr/bin/curl https://a.example", &["a.example"]),
    ("CURL https://a.example", &["a.example"]),
    ("curl.exe https://a.example", &["a.example"]),
    ("cur? https://a.example", &["a.example"]),
    ("c{u,}rl https://a.example", &["a.example"]),
    ("env -i curl https://a.example", &["a.example"]),
    ("env -S 'curl https://a.example'", &["a.example"]),
    ("env -u X A=1 curl https://a.example", &["a.example"]),
    ("command curl https://a.example", &["a.example"]),
    ("sudo -u me curl https://a.example", &["a.example"]),
    ("time -p curl https://a.example", &["a.example"]),
    ("timeout -k 5 10 curl https://a.example", &["a.example"]),
    ("nice -n 5 nohup curl https://a.example", &["a.example"]),
    ("busybox wget https://a.example", &["a.example"]),
    ("exec curl https://a.example", &["a.example"]),
    ("A=1 B=2 curl https://a.example", &["a.example"]),
    ("$(which curl) https://a.example", &["a.example"]),
    ("`which curl` https://a.example", &["a.example"]),
    ("$(echo cu)rl https://a.example", &["a.example"]),
    ("C=curl; $C https://a.example", &["a.example"]),
    ("X='curl https://a.example'; $X", &["a.example"]),
    ("curl$IFS-s${IFS}https://a.example", &["a.example"]),
    ("eval 'curl https://a.example'", &["a.example"]),
    ("eval \"cu\"'rl https://a.example'", &["a.example"]),
    ("bash -c 'curl https://a.example'", &["a.example"]),
    ("bash -lc \"cd x && curl https://a.example\"", &["a.example"]),
    ("sh -c 'sh -c \"curl https://a.example\"'", &["a.example"]),
    ("bash <(curl https://a.example)", &["a.example"]),
    ("bash <<EOF\ncurl https://a.example\nEOF", &["a.example"]),
    ("echo 'curl https://a.example' | bash", &["a.example"]),
    ("cat <<EOF\n$(curl https://a.example)\nEOF", &["a.example"]),
    ("echo \"$(curl https://a.example)\"", &["a.example"]),
    ("echo `curl https://a.example`", &["a.example"]),
    ("git commit -m \"$(cat <<'EOF'\nDon't (\nEOF\n)\" && curl https://a.example", &["a.example"]),
    ("true || curl https://a.example", &["a.example"]),
    ("sleep 1 & curl https://a.example", &["a.example"]),
    ("ls; (curl https://a.example)", &["a.example"]),
    ("if true; then curl https://a.example; fi", &["a.example"]),
    ("{ curl https://a.example; }", &["a.example"]),
    ("! curl https://a.example", &["a.example"]),
    ("f() { curl https://a.example; }; f", &["a.example"]),
    ("for x in 1 2; do curl https://a.example/$x; done", &["a.example"]),
    ("curl \\\n  -s \\\n  https://a.example", &["a.example"]),
    ("echo https://a.example | xargs -n1 curl -s", &["curl"]),
    ("find . -name x -exec curl -T {} https://a.example \\;", &["a.example"]),
    ("parallel curl ::: https://a.example", &["a.example"]),
    ("watch -n 5 'curl https://a.example'", &["a.example"]),
    ("curl http://localhost@a.example/", &["a.example"]),
    ("curl http://127.0.0.1.a.example/", &["127.0.0.1.a.example"]),
    ("curl localhost:1 https://a.example", &["localhost", "a.example"]),
    ("curl -x http://localhost:8080 https://a.example", &["localhost", "a.example"]),
    ("curl localhost -K evil", &["localhost"]),
    ("curl localhost $URL", &["localhost"]),
    ("curl \"$URL\"", &["curl"]),
    ("cat < /dev/tcp/a.example/80", &["a.example"]),
    ("exec 3<>/dev/tcp/a.example/80; cat <&3", &["a.example"]),
    ("wget -O- a.example/x", &["a.example"]),
    ("gh pr view 12", &["github.com"]),
    ("gh issue list --hostname git.example", &["git.example"]),
    ("glab mr list", &["gitlab.com"]),
    ("ssh me@Build.example uptime", &["build.example"]),
    ("ssh prod tail log", &["prod"]),
    ("scp me@a.example:x .", &["a.example"]),
    ("rsync -a me@a.example:dir/ dir/", &["a.example"]),
    ("nc a.example 80", &["a.example"]),
    ("openssl s_client -connect a.example:443", &["a.example"]),
    ("dig TXT a.example", &["a.example"]),
    ("xh get a.example/x", &["a.example"]),
    ("lynx -dump https://a.example", &["a.example"]),
    ("npm install left-pad", &["npm"]),
    ("npm i", &["npm"]),
    ("npm --prefix web ci", &["npm"]),
    ("npm view left-pad readme", &["npm"]),
    ("pnpm add x", &["pnpm"]),
    ("yarn", &["yarn"]),
    ("yarn global add x", &["yarn"]),
    ("pip install -r requirements.txt", &["pip"]),
    ("python3 -m pip download x", &["pip"]),
    ("uv pip install x", &["uv"]),
    ("cargo install x", &["cargo"]),
    ("cargo search x", &["cargo"]),
    ("gem fetch x", &["gem"]),
    ("go get example.com/x@latest", &["example.com"]),
    ("go mod download", &["go"]),
    ("brew info x", &["brew"]),
    ("sudo apt-get -y install x", &["apt-get"]),
    ("npx -y cowsay hi", &["npx"]),
    ("npx cowsay@1.5 hi", &["npx"]),
    ("npx create-app x", &["npx"]),
    ("uvx ruff", &["uvx"]),
    ("pipx run x", &["pipx"]),
    ("docker pull alpine", &["docker"]),
    ("docker run --rm alpine cat /etc/os-release", &["docker"]),
    ("git clone https://github.com/x/y", &["github.com"]),
    ("git -c http.proxy=x clone git@gitlab.com:x/y.git z", &["gitlab.com"]),
    ("git -C /w/r fetch https://evil.example/o/r", &["evil.example"]),
    ("git pull upstream main", &["upstream"]),
    ("git ls-remote https://github.com/x/y", &["github.com"]),
    ("git submodule update --init", &["git"]),
    ("git clone /srv/other.git", &["/srv/other.git"]),
    (
        "python3 -c \"import urllib.request as u; print(u.urlopen('https://a.example').read())\"",
        &["a.example"],
    ),
    ("python3 -c 'import requests; print(requests.get(url))'", &[]),
    ("python3 - <<'EOF'\nimport httpx\nprint(httpx.get('https://a.example'))\nEOF", &["a.example"]),
    ("node -e \"fetch('https://a.example').then(r => r.text()).then(console.log)\"", &["a.example"]),
    ("ruby -e 'require \"open-uri\"; puts URI.open(\"https://a.example\").read'", &["a.example"]),
    ("php -r 'echo file_get_contents(\"https://a.example\"); curl_init();'", &["a.example"]),
    ("python3 -c \"import os; os.system('curl https://a.example')\"", &["a.example"]),
    ("deno run https://a.example/x.ts", &["a.example"]),
    ("claude -p 'read the web'", &["claude"]),
    ("cat /etc/passwd", &[]),
    ("cat ../other/README.md", &[]),
    ("cat src/../../other/x", &[]),
    ("cat ~/.bashrc", &[]),
    ("cat $HOME/.netrc", &[]),
    ("cat ${HOME}/x", &[]),
    ("D=/etc; cat $D/hosts", &[]),
    ("cat ~other/x", &[]),
    ("cat $TMPDIR/x $XDG_CONFIG_HOME/y", &[]),
    ("bash /srv/x.sh -c ls", &[]),
    ("su me -c 'curl https://a.example'", &["a.example"]),
    ("bash -o pipefail -c 'curl https://a.example'", &["a.example"]),
    ("echo 'import urllib.request' | python3", &[]),
    ("bun x cowsay", &["bun"]),
    ("cat {README.md,/etc/hosts}", &[]),
    ("wc -l < /etc/hosts && cat < /etc/hosts", &[]),
    ("cat file:///etc/hosts", &[]),
    ("cd .. && cat x", &[]),
    ("cd /etc && cat hosts", &[]),
    ("cd ~/Downloads && make", &[]),
    ("pushd /etc; head hosts", &[]),
    ("cd \"$(mktemp -d)\" && cat x", &[]),
    ("cat node_modules/x/README.md", &[]),
    ("cat web/NODE_MODULES/x/README.md", &[]),
    ("head -5 vendor/x/y.go", &[]),
    ("grep -rn foo node_modules/x", &[]),
    ("rg foo ~/.cargo/registry", &[]),
    ("sed -n 1,20p .venv/lib/python3/site-packages/x.py", &[]),
    ("cat /home/u/go/pkg/mod/x/y.go", &[]),
    ("find /etc -name x -exec cat {} \\;", &[]),
    ("find ~/notes -type f | xargs cat", &[]),
    ("find /srv | while read f; do cat $f; done", &[]),
    ("for f in ~/Downloads/*; do cat $f; done", &[]),
    ("git -C ../other log", &[]),
    ("git diff --no-index src /srv/x", &[]),
    ("source ~/.profile", &[]),
    ("bash /tmp/x.sh", &[]),
    ("/tmp/x.sh", &[]),
    ("python3 ~/x.py", &[]),
    ("python3 -c \"print(open('/etc/hosts').read())\"", &[]),
    ("perl -ne print /etc/hosts", &[]),
    ("tar xOf ~/x.tgz", &[]),
];

#[test]
fn what_a_command_prints_is_from_inside_or_from_outside() {
    let mut wrong = Vec::new();
    for (command, why) in INSIDE {
        if let Some(hosts) = last_of(&[command]) {
            wrong.push(format!("inside ({why}): {command}: {hosts:?}"));
        }
    }
    for (command, hosts) in OUTSIDE {
        if last_of(&[command]).as_deref()
            != Some(&hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>())
        {
            wrong.push(format!("outside {hosts:?}: {command}: {:?}", last_of(&[command])));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_was_brought_from_outside_is_outside_when_it_is_read() {
    let a = Some(vec!["a.example".to_owned()]);
    for (commands, expected) in [
        (["curl -o doc.md https://a.example/x", "cat doc.md"], &a),
        (["curl -o doc.md https://a.example/x", "cat other.md"], &None),
        (["curl -o doc.md https://a.example/x", "echo mine > doc.md; cat doc.md"], &None),
        (["curl -O https://a.example/d/doc.md?x", "head ./doc.md"], &a),
        (["curl https://a.example/x > docs/x.md", "grep foo docs/x.md"], &a),
        (["curl https://a.example/x | jq . | tee docs/x.json", "jq .a docs/x.json"], &a),
        (["X=$(curl https://a.example) && echo $X >> n.txt", "ls"], &None),
        (["echo \"$(curl https://a.example)\" > n.txt", "cat n.txt"], &a),
        (["wget https://a.example/d/x.tgz", "tar xOf x.tgz"], &a),
        (["wget -P lib https://a.example/d/x.js", "cat lib/x.js"], &a),
        (["curl -o x.sh https://a.example/x", "bash x.sh"], &a),
        (["curl -o x.sh https://a.example/x", "chmod +x x.sh && ./x.sh"], &a),
        (["curl -o x https://a.example/x; cp x y", "cat y"], &a),
        (["curl -o x.yml https://a.example/x", "./mirror x.yml"], &a),
        (["curl -fsSLo x.yml https://a.example/x", "cat x.yml"], &a),
        (["curl -o x.yml https://a.example/x", "./mirror y.yml"], &None),
        (["curl -o x.tgz https://a.example/x; tar xzf x.tgz -C third", "cat third/README"], &a),
        (["git clone https://a.example/x/y", "cat y/README.md"], &a),
        (["git clone https://a.example/x/y z && cd z", "cat README.md"], &a),
        (["git clone https://a.example/x/y", "ls y"], &None),
        (["git clone https://a.example/x/y", "git -C y pull"], &a),
        (["git fetch https://a.example/x/y", "git show FETCH_HEAD:README.md"], &a),
        (["git fetch https://a.example/x/y; git fetch", "git show FETCH_HEAD:README.md"], &None),
        (["scp me@a.example:notes.txt docs/", "cat docs/notes.txt"], &a),
        (["gh repo clone x/y", "cat y/README.md"], &Some(vec!["github.com".to_owned()])),
        (["cp ~/Downloads/x.md .", "cat x.md"], &Some(Vec::new())),
        (["cat /etc/hosts > h.txt", "cat h.txt"], &Some(Vec::new())),
    ] {
        assert_eq!(&last_of(&commands), expected, "{commands:?}");
    }
}

#[test]
fn a_search_is_from_where_it_found_something() {
    let mut tracker = tracker("claude-code");
    tracker.of(&bash("curl -o docs/x.md https://a.example/x"));
    let mut found = |turn: Turn| outside_of(tracker.of(&turn));
    let grep = |command: &str, output: &str| turn("Bash", &[("command", command)], output);
    assert_eq!(found(grep("grep -rn foo .", "./src/a.rs:3:foo")), None);
    assert_eq!(found(grep("grep -rn foo .", "./src/a.rs:3:foo\n./docs/x.md:1:foo")).unwrap(), ["a.example"]);
    assert_eq!(found(grep("grep -rhn foo docs", "1:foo")).unwrap(), ["a.example"]);
    assert_eq!(found(grep("grep -rn foo .", "./node_modules/x/y.js:1:foo")), Some(Vec::new()));
    assert_eq!(found(grep("rg foo", "docs/x.md\n1:foo")).unwrap(), ["a.example"]);
    let tool = |path: &str, output: &str| turn("Grep", &[("pattern", "foo"), ("path", path)], output);
    assert_eq!(found(tool("src", "src/a.rs:1:foo")), None);
    assert_eq!(found(tool("/w/r", "/w/r/docs/x.md:1:foo")).unwrap(), ["a.example"]);
    assert_eq!(found(tool("node_modules", "x")), Some(Vec::new()));
    assert_eq!(found(turn("Grep", &[("pattern", "foo")], "docs/x.md:1:foo")).unwrap(), ["a.example"]);
}

#[test]
fn tools_are_known_by_their_program() {
    for (format, name, arguments, expected) in [
        ("claude-code", "Read", &[("file_path", "/w/r/x")] as &[(&str, &str)], None),
        ("claude-code", "Read", &[("file_path", "/w/x")], Some(vec![])),
        ("claude-code", "Read", &[("file_path", "/w/r/node_modules/x/y.md")], Some(vec![])),
        ("claude-code", "Glob", &[("pattern", "node_modules/**")], None),
        ("claude-code", "TodoWrite", &[("todos", "[]")], None),
        ("claude-code", "WebFetch", &[("url", "https://me@A.example/x")], Some(vec!["a.example"])),
        ("claude-code", "WebSearch", &[("query", "x")], Some(vec!["WebSearch"])),
        ("claude-code", "mcp__jira__get", &[("id", "1")], Some(vec!["mcp__jira__get"])),
        ("claude-code", "", &[], Some(vec![])),
        ("claude-code", "read_file", &[("path", "x")], Some(vec!["read_file"])),
        ("claude-code", "Agent", &[("prompt", "x")], Some(vec![])),
        ("codex", "shell", &[("command", "bash -lc 'curl https://a.example'")], Some(vec!["a.example"])),
        ("codex", "exec_command", &[("cmd", "cat x"), ("workdir", "/etc")], Some(vec![])),
        ("codex", "exec_command", &[("cmd", "cat x"), ("workdir", "/w/r/src")], None),
        ("codex", "web_search_call", &[("query", "x")], Some(vec!["web_search_call"])),
        ("gemini", "google_web_search", &[("query", "x")], Some(vec!["google_web_search"])),
        ("gemini", "read_many_files", &[("paths", "src/a ../b")], Some(vec![])),
        ("qwen-code", "run_shell_command", &[("command", "ls")], None),
        ("copilot", "view", &[("path", "/w/r/x")], None),
        ("opencode", "webfetch", &[("url", "https://a.example")], Some(vec!["a.example"])),
        ("pi", "user's shell", &[("", "make")], None),
        ("cursor", "run_terminal_cmd", &[("command", "make")], None),
        ("amp", "librarian", &[("query", "x")], Some(vec!["librarian"])),
        ("turns", "bash", &[("command", "curl https://a.example")], Some(vec!["a.example"])),
        ("turns", "browse", &[("page", "1")], Some(vec!["browse"])),
    ] {
        let expected: Option<Vec<String>> =
            expected.map(|hosts| hosts.into_iter().map(str::to_owned).collect());
        let found = tracker(format).of(&turn(name, arguments, ""));
        assert_eq!(found, expected.map_or(Provenance::Inside, Provenance::Outside), "{name} {arguments:?}");
    }
    let patched = tracker("codex").of(&turn("apply_patch", &[("", "*** Begin Patch")], "Done"));
    assert_eq!(patched, Provenance::Written);
    for (path, expected) in [("/w/r/x", Provenance::Written), ("/w/x", Provenance::Outside(Vec::new()))] {
        let edited = tracker("claude-code").of(&turn("Edit", &[("file_path", path)], "ok"));
        assert_eq!(edited, expected, "{path}");
    }
    let asked = tracker("claude-code").of(&turn("AskUserQuestion", &[], "Yes"));
    assert_eq!(asked, Provenance::Answer);
    let attached = tracker("pi").of(&turn("attached to the prompt", &[("", "")], "x"));
    assert_eq!(attached, Provenance::Attached);
}

#[test]
fn what_runs_on_may_show_what_was_asked_before() {
    let mut tracker = tracker("claude-code");
    assert_eq!(outside_of(tracker.of(&turn("BashOutput", &[("bash_id", "1")], ""))), None);
    tracker.of(&bash("curl https://a.example &"));
    assert_eq!(outside_of(tracker.of(&turn("BashOutput", &[("bash_id", "1")], ""))).unwrap(), ["a.example"]);
}

#[test]
fn only_some_shells_stay_in_a_directory() {
    let second = |format, name: &str, first: &str| {
        let mut tracker = tracker(format);
        tracker.of(&turn(name, &[("command", first)], ""));
        outside_of(tracker.of(&turn(name, &[("command", "cat README.md")], "")))
    };
    assert_eq!(second("claude-code", "Bash", "cd node_modules/x"), Some(Vec::new()));
    assert_eq!(second("claude-code", "Bash", "cd /etc"), None, "it goes back");
    assert_eq!(second("gemini", "run_shell_command", "cd node_modules/x"), None);
}

#[cfg(unix)]
#[test]
fn a_directory_for_a_while_is_no_repository_unless_one_elsewhere_knows_it() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let source = |home: &Path, cwd: &Path, repo: Option<&str>, command: &str| {
        let places = Places::new(Some(cwd), repo, Some(home), None);
        outside_of(Tracker::new(of("claude-code"), places, repo, None).of(&bash(command)))
    };
    let plain = |cwd: &str, command: &str| source(Path::new("/home/u"), Path::new(cwd), None, command);
    assert_eq!(plain("/home/u/Downloads/x", "make"), Some(Vec::new()));
    assert_eq!(plain("/tmp/x", "cat README.md"), Some(Vec::new()));
    assert_eq!(plain("/home/u", "cat notes.md"), None);
    assert_eq!(plain("/home/u", "cat Downloads/x.md"), Some(Vec::new()));
    let file = |path: &str, text: &str| {
        fs::create_dir_all(home.join(path).parent().unwrap()).unwrap();
        fs::write(home.join(path), text).unwrap();
    };
    let config = "[remote \"origin\"]\nurl = https://github.com/o/r\n";
    for top in ["src", "Downloads/archive"] {
        file(&format!("{top}/.git/HEAD"), "ref: refs/heads/main\n");
        file(&format!("{top}/.git/config"), config);
        file(&format!("{top}/deep/README.md"), "");
        file(&format!("{top}/other/.git/HEAD"), "");
    }
    let read = |cwd: &str, repo: &str, file: &str| {
        source(&home, &home.join(cwd), Some(repo), &format!("cat {file}"))
    };
    assert_eq!(read("src", OWN, "README.md"), None);
    assert_eq!(read("src/deep", OWN, "../README.md"), None);
    assert_eq!(read("src", OWN, "other/README.md"), Some(Vec::new()), "a checkout inside the checkout");
    // An archive brings git's files with it.
    assert_eq!(read("Downloads/archive", OWN, "README.md"), Some(Vec::new()));
    assert_eq!(read("Downloads/archive/deep", OWN, "../README.md"), Some(Vec::new()));
    // It may name a repository that does not name it.
    let linked = home.join("src/.git/worktrees/w");
    file("Downloads/w/.git", &format!("gitdir: {}\n", linked.display()));
    file("src/.git/worktrees/w/HEAD", "x");
    file("src/.git/worktrees/w/commondir", "../..\n");
    file("src/.git/worktrees/w/gitdir", "/elsewhere/.git\n");
    assert_eq!(read("Downloads/w", OWN, "README.md"), Some(Vec::new()));
    file("src/.git/worktrees/w/gitdir", &format!("{}\n", home.join("Downloads/w/.git").display()));
    assert_eq!(read("Downloads/w", OWN, "README.md"), None);
    assert_eq!(read("Downloads/w", "github.com/x/y", "README.md"), Some(Vec::new()));
    // Nor does a link into such a directory make another place of it.
    std::os::unix::fs::symlink(home.join("Downloads/archive"), home.join("mine")).unwrap();
    assert_eq!(read("mine", OWN, "README.md"), Some(Vec::new()));
}

/// A session of Claude Code with sub-agents beside it; each is what it ran.
fn with_agents(agents: &[(&str, &str)]) -> (tempfile::TempDir, Tracker) {
    let dir = tempfile::tempdir().unwrap();
    let transcript = dir.path().join("s.jsonl");
    let folder = dir.path().join("s/subagents");
    fs::create_dir_all(&folder).unwrap();
    for (name, command) in agents {
        let record = serde_json::json!({"type": "assistant", "uuid": name, "sessionId": "s", "isSidechain": true,
            "agentId": name, "message": {"role": "assistant", "model": "m", "content": [
                {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": command}}]}});
        fs::write(folder.join(format!("agent-{name}.jsonl")), format!("{record}\n")).unwrap();
        if !name.starts_with("old") {
            let beside = format!("{{\"toolUseId\":\"call-{name}\"}}");
            fs::write(folder.join(format!("agent-{name}.meta.json")), beside).unwrap();
        }
    }
    let places = Places::new(Some(Path::new("/w/r")), Some(OWN), None, None);
    let tracker = Tracker::new(of("claude-code"), places, Some(OWN), Some(&transcript));
    (dir, tracker)
}

#[test]
fn a_report_is_from_where_its_agent_read() {
    let report = |tracker: &mut Tracker, call: &str, name: &str, arguments: &[(&str, &str)]| {
        outside_of(tracker.of(&Turn { id: call.to_owned(), ..turn(name, arguments, "report") }))
    };
    let (_dir, mut tracker) = with_agents(&[("a", "ls src"), ("b", "curl -o page.md https://a.example")]);
    assert_eq!(report(&mut tracker, "call-a", "Agent", &[]), None);
    assert_eq!(outside_of(tracker.of(&bash("cat page.md"))), None, "nobody has read that agent's file yet");
    assert_eq!(report(&mut tracker, "call-b", "Agent", &[]).unwrap(), ["a.example"]);
    assert_eq!(
        outside_of(tracker.of(&bash("cat page.md"))).unwrap(),
        ["a.example"],
        "it worked in the same place"
    );
    assert_eq!(report(&mut tracker, "call-x", "Agent", &[]).unwrap(), ["a.example"], "it may be any of them");
    assert_eq!(report(&mut tracker, "x", "SendMessage", &[("to", "a")]), None);
    assert_eq!(report(&mut tracker, "x", "SendMessage", &[("to", "../../b")]).unwrap(), ["a.example"]);
    let (_dir, mut tracker) = with_agents(&[("old1", "ls"), ("old2", "cat src/x")]);
    assert_eq!(report(&mut tracker, "call-1", "Task", &[]), None);
    let (_dir, mut tracker) = with_agents(&[]);
    assert_eq!(report(&mut tracker, "call-1", "Task", &[]), Some(Vec::new()), "nobody knows");
}

/// A session file of a program, and where each of its calls comes from.
fn origins(format: &'static str, file: &Path) -> Vec<(String, Option<Vec<String>>)> {
    let places = Places::new(Some(Path::new("/home/u/project")), Some(OWN), Some(Path::new("/home/u")), None);
    let mut tracker = Tracker::new(of(format), places, Some(OWN), Some(file));
    let mut found = Vec::new();
    crate::harness::read(of(format), file, &mut |turn| {
        let origin = tracker.of(&turn);
        assert_eq!(turn.call.is_some(), turn.role == Role::Tool);
        if let Some(call) = turn.call {
            assert_eq!(
                origin == Provenance::Attached,
                call.name.contains(' ') && !call.name.contains("shell"),
                "{call:?}"
            );
            found.push((call.name, outside_of(origin)));
        }
        Ok(())
    })
    .unwrap();
    found
}

fn names(found: &[(String, Option<Vec<String>>)]) -> Vec<(&str, bool)> {
    found.iter().map(|(name, outside)| (name.as_str(), outside.is_some())).collect()
}

#[test]
fn calls_of_recorded_sessions_of_copilot_pi_and_qwen_code() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let of = |format, file: &str| origins(format, &recorded.join(file));
    let copilot = of("copilot", "copilot/events.jsonl");
    assert_eq!(names(&copilot), [("bash", false), ("view", false), ("task", true)]);
    assert_eq!(names(&of("pi", "pi/session.jsonl")), [("bash", false), ("read", false)]);
    assert_eq!(names(&of("pi", "pi/attached.jsonl")), [("attached to the prompt", false)]);
    let qwen = of("qwen-code", "qwen-code/session.jsonl");
    assert!(qwen.contains(&("run_shell_command".to_owned(), None)), "{qwen:?}");
    let alone = of("qwen-code", "qwen-code/sub-agent-and-compression.jsonl");
    assert_eq!(names(&alone), [("agent", true)], "its file is not there");
    // As the program lays them out.
    let dir = tempfile::tempdir().unwrap();
    let (chats, agents) = (dir.path().join("chats"), dir.path().join("subagents/s1"));
    fs::create_dir_all(&chats).unwrap();
    fs::create_dir_all(&agents).unwrap();
    let session = recorded.join("qwen-code/sub-agent-and-compression.jsonl");
    fs::copy(session, chats.join("s1.jsonl")).unwrap();
    fs::copy(recorded.join("qwen-code/sub-agent.jsonl"), agents.join("agent-x.jsonl")).unwrap();
    assert_eq!(names(&origins("qwen-code", &chats.join("s1.jsonl"))), [("agent", false)]);
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is not run says so")]
fn calls_of_recorded_sessions_of_the_others() {
    let env = crate::base::env::Env::read().unwrap();
    let root = env.text("AXE_FIXTURES").map(PathBuf::from);
    let root = root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures"));
    let root = root.join("harness");
    if !root.is_dir() {
        eprintln!("SKIPPED: no recorded sessions at {}; set AXE_FIXTURES", root.display());
        return;
    }
    let of = |format, file: &str| origins(format, &root.join(file));
    let claude = "claude-code/home/.claude/projects/-home-u-project";
    let codex = "codex/home/.codex/sessions/2026/11/21/rollout-2026-11-21T21";
    let gemini = "gemini/home/.gemini/tmp/project/chats/session-2026-11-21T21";
    for (format, file, calls) in [
        ("claude-code", format!("{claude}/22222222-2222-4222-8222-222222222222.jsonl"), 4),
        ("claude-code", format!("{claude}/77777777-7777-4777-8777-777777777777.jsonl"), 1),
        ("codex", format!("{codex}-02-50-01a1ffeb-42b8-7150-b535-67924b15a07d.jsonl"), 4),
        ("codex", format!("{codex}-09-29-01a1fff1-5ab0-74b2-b114-2f2a39feea1d.jsonl"), 2),
        ("gemini", format!("{gemini}-05-f0ec0f60.jsonl"), 5),
        ("gemini", format!("{gemini}-06-037d4d48.jsonl"), 1),
        ("opencode", "opencode/export/tool-call.json".to_owned(), 5),
    ] {
        let found = of(format, &file);
        assert_eq!(found.len(), calls, "{file}: {found:?}");
        assert!(found.iter().all(|(_, outside)| outside.is_none()), "{file}: {found:?}");
    }
    let export = of("opencode", "opencode/export/subagent.json");
    assert_eq!(names(&export), [("task", true)], "its session is not in the export");
}

#[test]
fn calls_of_cursor_amp_and_turns() {
    use std::io::Write;
    let of = |format, text: &str| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        origins(format, file.path())
    };
    let cursor = r#"{"role":"assistant","message":{"content":[
        {"type":"tool_use","name":"read_file","input":{"target_file":"src/x"}},
        {"type":"tool_use","name":"web_search","input":{"search_term":"x"}}]}}"#;
    let cursor = of("cursor", &cursor.replace('\n', " "));
    assert_eq!(names(&cursor), [("read_file", false), ("web_search", true)]);
    let amp = "## Assistant\n\n**Tool Use:** `Bash`\n\n```json\n{\"cmd\": \"make\"}\n```\n\n\
               **Tool Use:** `read_web_page`\n\n```json\n{\"url\": \"https://a.example\"}\n```\n";
    let amp = of("amp", amp);
    assert_eq!(names(&amp), [("Bash", false), ("read_web_page", true)]);
    assert_eq!(amp[1].1.as_deref(), Some(["a.example".to_owned()].as_slice()));
    let turns = "{\"role\":\"tool\",\"tool\":\"bash\",\"input\":{\"command\":\"ls\"},\"text\":\"x\"}\n";
    assert_eq!(names(&of("turns", turns)), [("bash", false)]);
}

#[test]
fn no_command_line_is_too_odd() {
    let pieces = [
        "a", "curl", " ", "'", "\"", "\\", "$", "$(", ")", "(", "`", "<<", "E", "\n", "<", ">", "|", "&",
        ";", "{", "}", "$'", "\\x", "ä", "\u{2028}", "=", "://", "@", ":", "-", "~", "/", "..", "#", "[",
        "*", "git", "-C", "tar", "bash -c ", "eval ", "xargs ", "\u{fffd}", "$((", "))", "${", ":-",
    ];
    let mut dice: usize = 7;
    for _ in 0..1000 {
        let mut line = String::new();
        for _ in 0..30 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            line.push_str(pieces[(dice >> 33) % pieces.len()]);
        }
        last_of(&[&line]);
    }
    for piece in
        ["a/", "; cat a/", "(", "$(", "a|", "\"$(", "`", "a;", "<<E\n", "bash -c '", "{", "echo a|sh|"]
    {
        last_of(&[&format!("cat {}", piece.repeat(60_000 / piece.len()))]);
    }
}

#[test]
fn the_files_of_the_repository_that_were_touched_are_known() {
    let mut tracker = tracker("claude-code");
    for turn in [
        turn("Read", &[("file_path", "/w/r/src/a.rs")], ""),
        turn("Write", &[("file_path", "/w/r/b.rs"), ("content", "x")], ""),
        bash("cd src && cat c.rs ../d.txt"),
        turn("Read", &[("file_path", "/w/r/node_modules/x/y.js")], ""),
        turn("Read", &[("file_path", "/etc/hosts")], ""),
        turn("WebFetch", &[("url", "https://a.example/src/e.rs")], ""),
    ] {
        tracker.of(&turn);
    }
    assert_eq!(tracker.touched(), ["b.rs", "d.txt", "src/a.rs", "src/c.rs"]);
    assert!(tracker.touched().is_empty(), "since then, nothing");
}
