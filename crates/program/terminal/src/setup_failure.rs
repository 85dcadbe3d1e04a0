//! Failures of set-up: files that cannot be read, edited or written.

use setup::{EditError, FileError, SetupError};

use crate::exit::Exit;
use crate::failure::Failure;

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Failure {
        let message = error.to_string();
        match error {
            SetupError::File(error) => error.into(),
            SetupError::TooMany { .. } => Failure::new(Exit::Failed, "too_many_servers", message)
                .hint("nothing was changed: take out those that you do not use"),
            SetupError::ToolHidden { server, pattern, .. } => {
                Failure::new(Exit::Failed, "tool_hidden", message).hint(format!(
                    "nothing was changed: show all of them with `portmoot tools enable {server} '{pattern}'`, or name in `hide` what stays hidden"
                ))
            }
            SetupError::Edit { snippet: Some(snippet), .. } => {
                Failure::new(Exit::Failed, "file_not_editable", message)
                    .hint(format!("nothing was changed. Write this into it yourself:\n{snippet}"))
            }
            SetupError::Edit { error: EditError::Unsafe, .. } => {
                Failure::new(Exit::Failed, "file_not_editable", message)
                    .hint("nothing was changed: edit the file yourself")
            }
            SetupError::Edit { error: EditError::Syntax { .. } | EditError::Shape(_), .. } => {
                Failure::new(Exit::Usage, "file_broken", message)
                    .hint("nothing was changed: correct the file, then run the command again")
            }
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        let message = error.to_string();
        match error {
            FileError::Changed { .. } => {
                Failure::new(Exit::Failed, "file_changed", message).hint("run the command again")
            }
            FileError::Unreadable { .. } | FileError::NotText { .. } => {
                Failure::new(Exit::Failed, "file_unreadable", message).hint("nothing was changed")
            }
            FileError::Unwritable { .. } => Failure::new(Exit::Failed, "file_unwritable", message),
        }
    }
}
