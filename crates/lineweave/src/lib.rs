//! lineweave runtime.
