fn main() -> std::process::ExitCode {
    axe::axe_map()
}
