//! `axe-run` on its main way: prompt in, answer out, an entry in the log.

use crate::support::{NOW, Said, Sandbox};

#[test]
fn piped_text_goes_to_the_command_and_its_answer_to_stdout() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "system_prompt = 'Be kind.'\n[memory]\nenabled = true");
    let output = sandbox.run("a").write_stdin("hello").output().unwrap();
    assert_eq!(
        (output.code(), output.out().as_str(), output.err().as_str()),
        (Some(0), "Be kind.\n\nhello", "")
    );
    assert_eq!(sandbox.log("a"), format!("## {NOW}\n**Task:** hello\n**Result:** Be kind.\n\nhello\n\n"));
}
