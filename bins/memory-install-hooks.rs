fn main() -> std::process::ExitCode {
    axe::memory_install_hooks()
}
