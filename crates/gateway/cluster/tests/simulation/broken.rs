//! Rules that a run breaks on purpose, so that the books can be seen to notice.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// None.
    Nothing,
    /// Appends do not name the last message that they follow.
    Unfenced,
    /// An approved proposal without an outcome is pending again at the next home.
    ApprovedIsPending,
    /// A change takes place before the log has it.
    EarlyAcks,
    /// The runner remembers that it admits, and not until when.
    AdmitsWithoutEnd,
    /// A heartbeat counts as contact when it comes, however old it is.
    ReceiptIsContact,
    /// Nodes say that they hear no other.
    DeafVoters,
    /// A door answers whenever the home does.
    AnswersAgain,
    /// A request at a token endpoint is sent however late it is.
    LateFlights,
    /// The result of a use of a refresh token is handed in once, whatever becomes of it.
    ResultsOnce,
    /// A purge removes the beginning of the snapshot too.
    PurgesBeyond,
    /// A purge is made when the beginning of the snapshot is durable.
    PurgesEarly,
    /// A purge is made whatever the log has in place of the snapshot.
    PurgesUnseen,
    /// Nodes keep and say nothing of the heads that they know of.
    NoHeads,
}
