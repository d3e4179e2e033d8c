# For Homebrew: Formula/a/axe-toolkit.rb. PACKAGING.md says what to replace: OWNER and the hash of the tag's tarball.
class AxeToolkit < Formula
  desc "Small Unix programs that run LLM agents and keep what they learn"
  homepage "https://github.com/OWNER/axe-toolkit"
  url "https://github.com/OWNER/axe-toolkit/archive/refs/tags/v0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "cmake" => :build
  depends_on "rust" => :build
  uses_from_macos "git"

  def install
    system "cargo", "install", *std_cargo_args
    system "bash", ".ci/share", bin, buildpath/"share"
    man1.install Dir["share/man/man1/*"]
    man7.install Dir["share/man/man7/*"]
    bash_completion.install Dir["share/bash-completion/completions/*"]
    zsh_completion.install Dir["share/zsh/site-functions/*"]
    fish_completion.install Dir["share/fish/vendor_completions.d/*"]
  end

  test do
    system bin/"memory-capture", "--direct", "--title", "Port", "--body", "The server listens on 4310."
    assert_match "4310", shell_output("#{bin}/memory-recall port")
    assert_match version.to_s, shell_output("#{bin}/axe --version")
  end
end
