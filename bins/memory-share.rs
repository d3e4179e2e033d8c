fn main() -> std::process::ExitCode {
    axe::memory_share()
}
