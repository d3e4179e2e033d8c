fn main() -> std::process::ExitCode {
    axe::memory_agents_md()
}
