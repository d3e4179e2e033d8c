fn main() -> std::process::ExitCode {
    axe::axe_runs()
}
