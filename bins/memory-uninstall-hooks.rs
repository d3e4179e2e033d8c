fn main() -> std::process::ExitCode {
    axe::memory_uninstall_hooks()
}
