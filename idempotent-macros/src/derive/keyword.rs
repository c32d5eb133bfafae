//! The arguments of `#[key]`, and where each may stand.

/// Where an attribute stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    Type,
    Variant,
    Field,
}

impl Place {
    pub(super) fn article(self) -> &'static str {
        match self {
            Self::Type => "a type",
            Self::Variant => "a variant",
            Self::Field => "a field",
        }
    }

    pub(super) fn arguments(self) -> impl Iterator<Item = &'static str> {
        let keywords: &[Keyword] = match self {
            Self::Type => &[Keyword::Crate, Keyword::Transparent],
            Self::Variant => &[Keyword::Name],
            Self::Field => &[Keyword::Stable, Keyword::Nullable, Keyword::Required],
        };
        keywords.iter().map(|keyword| keyword.name())
    }
}

/// The arguments there are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Keyword {
    Crate,
    Transparent,
    Name,
    Stable,
    Nullable,
    Required,
}

impl Keyword {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Crate => "crate",
            Self::Transparent => "transparent",
            Self::Name => "name",
            Self::Stable => "stable",
            Self::Nullable => "nullable",
            Self::Required => "required",
        }
    }

    pub(super) fn place(self) -> Place {
        match self {
            Self::Crate | Self::Transparent => Place::Type,
            Self::Name => Place::Variant,
            Self::Stable | Self::Nullable | Self::Required => Place::Field,
        }
    }

    pub(super) fn find(name: &str) -> Option<Self> {
        [
            Self::Crate,
            Self::Transparent,
            Self::Name,
            Self::Stable,
            Self::Nullable,
            Self::Required,
        ]
        .into_iter()
        .find(|known| known.name() == name)
    }
}
