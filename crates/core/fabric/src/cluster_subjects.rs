//! The subjects of a cluster: each has its name here, and nowhere else.

use crate::subject::{SubjectError, SubjectName};

/// The subjects of a cluster, all below one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSubjects {
    root: SubjectName,
    heartbeats: SubjectName,
    spread: SubjectName,
    journals: SubjectName,
    nodes: SubjectName,
    presence: SubjectName,
}

impl ClusterSubjects {
    /// The subjects of the cluster of this name, which is one token.
    ///
    /// # Errors
    /// [`SubjectError`] when the name is none, or too long.
    pub fn of(cluster: &str) -> Result<Self, SubjectError> {
        let unfit = || SubjectError::of(cluster);
        let root = format!("pm.{cluster}").parse();
        let root = root.map_err(|_| unfit())?;
        // With a dot its subjects would be below those of another cluster.
        if cluster.contains('.') {
            return Err(unfit());
        }
        Self::below(root)
    }

    /// The subjects below this one.
    ///
    /// # Errors
    /// [`SubjectError`] when they would be too long.
    pub fn below(root: SubjectName) -> Result<Self, SubjectError> {
        Ok(Self {
            heartbeats: format!("{root}.hb").parse()?,
            spread: format!("{root}.spread").parse()?,
            journals: format!("{root}.j").parse()?,
            nodes: format!("{root}.n").parse()?,
            presence: format!("{root}.at").parse()?,
            root,
        })
    }

    /// The subject above all others.
    #[must_use]
    pub fn root(&self) -> &SubjectName {
        &self.root
    }

    /// The subject of heartbeats.
    #[must_use]
    pub fn heartbeats(&self) -> &SubjectName {
        &self.heartbeats
    }

    /// The subject of records that were just appended.
    #[must_use]
    pub fn spread(&self) -> &SubjectName {
        &self.spread
    }

    /// The subject above all journals: all below it is records of the log.
    #[must_use]
    pub fn journals(&self) -> &SubjectName {
        &self.journals
    }

    /// The subject above those of frames from one node to another, as [`crate::Mesh`] wants it.
    #[must_use]
    pub fn nodes(&self) -> &SubjectName {
        &self.nodes
    }

    /// The subject on which nodes say where they are reached.
    #[must_use]
    pub fn presence(&self) -> &SubjectName {
        &self.presence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SUBJECT_BYTES_MAX;

    #[test]
    fn a_cluster_has_its_subjects_below_its_name() {
        let subjects = ClusterSubjects::of("prod-1").unwrap();
        let all = [
            subjects.root(),
            subjects.heartbeats(),
            subjects.spread(),
            subjects.journals(),
            subjects.nodes(),
            subjects.presence(),
        ];
        let expect = ["", ".hb", ".spread", ".j", ".n", ".at"].map(|end| format!("pm.prod-1{end}"));
        assert_eq!(all.map(ToString::to_string), expect);
        let same = ClusterSubjects::below("pm.prod-1".parse().unwrap());
        assert_eq!(same, Ok(subjects));
        let long = "a".repeat(SUBJECT_BYTES_MAX);
        for name in ["", "a.b", ".", "a*", ">", "a b", &long] {
            assert_eq!(ClusterSubjects::of(name), Err(SubjectError::of(name)));
        }
        let long: SubjectName = long.parse().unwrap();
        assert!(ClusterSubjects::below(long).is_err());
    }
}
