//! Outline of a frame: places of the members along one path, found in the frame's only scan.

use smallvec::SmallVec;

use crate::error::JsonError;
use crate::members::{Member, Members};
use crate::scan;
use crate::span::{MemberSpan, Span};

/// The most members of inner objects that an [`Outline`] keeps.
pub const OUTLINE_MEMBERS_MAX: usize = 64;

/// Places of the members of a frame's inner objects along one path, to be kept beside the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    // The members of most messages need no allocation.
    spans: SmallVec<[MemberSpan; 8]>,
}

impl Outline {
    /// The members of the object at `object` in `frame`, without another scan. `depth` says which
    /// object of the path it is: 1 is the value of the first key. The frame must be the one that
    /// was outlined.
    ///
    /// # Errors
    /// [`JsonError::Duplicate`] when a key occurs twice.
    pub fn members<'a>(
        &'a self,
        frame: &'a [u8],
        object: Span,
        depth: u8,
    ) -> Result<Members<'a>, JsonError> {
        Members::outlined(frame, object, &self.spans, depth).without_duplicates()
    }
}

/// Gives each member of the object that fills `frame`, with its key as it was spelled, and returns
/// the places of the members of the objects in it along `path`: of the member `path[0]` at depth 1,
/// of `path[1]` in that at depth 2, and so on. All syntax is checked.
///
/// `None` leaves the frame to [`members_with_duplicates`](crate::members_with_duplicates); members
/// that were given by then do not count. It is the answer to bad syntax, and to valid frames with
/// an escape in a key, nesting beyond 32, white space around the object, or more than
/// [`OUTLINE_MEMBERS_MAX`] members along the path.
pub fn outline<'a>(
    frame: &'a [u8],
    path: &[&[u8]],
    mut give: impl FnMut(&'a [u8], Member<'a>),
) -> Option<Outline> {
    let mut spans = SmallVec::new();
    let mut count = 0;
    let mut odd = false;
    scan::object(frame, Span::all(frame), path, |member| {
        odd |= member.key_escaped;
        if member.depth == 0 {
            return give(member.key().of(frame), Member::at(&member, frame));
        }
        count += 1;
        if count <= OUTLINE_MEMBERS_MAX {
            spans.push(member);
        }
    })?;
    (frame.first() == Some(&b'{') && !odd && count <= OUTLINE_MEMBERS_MAX)
        .then_some(Outline { spans })
}
