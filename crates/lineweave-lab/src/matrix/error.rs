//! Errors of matrices: reasons why a text is not a matrix, or a matrix not this machine's.

use lineweave_core::topology::Level;

/// Every error names the line, where there is one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// The output of another program.
    #[error("expected latencies between CPUs, found the output of {program}: {instead}")]
    Foreign {
        /// Name of the program.
        program: &'static str,
        /// Reason why the output does not serve, and what to do.
        instead: &'static str,
    },
    /// Too few CPUs for a pair.
    #[error("expected the latencies of at least 2 CPUs, found {rows} rows of numbers")]
    Empty {
        /// Rows with numbers.
        rows: usize,
    },
    /// More rows or columns than any machine has CPUs.
    #[error(
        "line {line}: expected a matrix of at most {most} CPUs, with a row and a column for each, found more"
    )]
    TooLarge {
        /// Line of the text, from 1.
        line: usize,
        /// The most.
        most: usize,
    },
    /// Rows and columns are not as many.
    #[error("line {line}: expected {expected} columns, as many as there are rows, found {found}")]
    NotSquare {
        /// Line of the text, from 1.
        line: usize,
        /// Rows.
        expected: usize,
        /// Columns of this one.
        found: usize,
    },
    /// A cell that is no latency.
    #[error("line {line}, column {column}: expected a latency in ns, found `{found}`")]
    Cell {
        /// Line of the text, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Text of the cell.
        found: String,
    },
    /// A pair that nobody measured.
    #[error("line {line}: no latency between CPUs {a} and {b}: expected one for every pair of {cpus} CPUs")]
    Hole {
        /// Line of the text where it could stand, from 1.
        line: usize,
        /// A CPU.
        a: usize,
        /// Another CPU.
        b: usize,
        /// CPUs.
        cpus: usize,
    },
    /// A triangle whose last cells would be what a CPU is from itself.
    #[error("line {line}: CPU {cpu} would be {ns:.1} ns from itself: expected an empty diagonal, and a triangle to begin with an empty row, such as `,`")]
    Diagonal {
        /// Line of the text, from 1.
        line: usize,
        /// The CPU.
        cpu: usize,
        /// Value that the cell would have, in ns.
        ns: f64,
    },
    /// A heading that is no CPU's number, or one that occurs twice.
    #[error("line {line}: expected a heading for each CPU with its number, each once, found `{found}`")]
    Heading {
        /// Line of the text, from 1.
        line: usize,
        /// The heading.
        found: String,
    },
    /// A unit that does not say how long.
    #[error(
        "line {line}: expected latencies in ps, ns, us, ms or s, found the unit `{found}`; convert them"
    )]
    Unit {
        /// Line of the text, from 1.
        line: usize,
        /// The unit.
        found: String,
    },
    /// Numbers that are no latencies in ns.
    #[error("line {line}: the median latency would be {ns} ns: expected {least} to {most}; if the numbers are in another unit, name it in a heading, such as `# in us`")]
    OtherUnit {
        /// Line of the first row, from 1.
        line: usize,
        /// The median.
        ns: f64,
        /// The least that any machine has.
        least: f64,
        /// The most.
        most: f64,
    },
    /// Nothing but zeros.
    #[error("line {line}: expected latencies above 0, found zeros only: the clock that measured them is too coarse")]
    Zeros {
        /// Line of the first, from 1.
        line: usize,
    },
    /// A matrix and a topology of different size.
    #[error("the topology `{topology}` has {cpus} CPUs and the matrix {found}: expected a matrix of that machine with all of its CPUs")]
    OtherSize {
        /// The topology.
        topology: String,
        /// CPUs of the topology.
        cpus: usize,
        /// CPUs of the matrix.
        found: usize,
    },
    /// A matrix that contradicts the topology.
    #[error("the topology `{topology}` is of another machine than the matrix: CPUs of one {far} would be nearer ({far_ns:.1} ns) than those of one {near} ({near_ns:.1} ns)")]
    OtherMachine {
        /// The topology.
        topology: String,
        /// Nearer level.
        near: Level,
        /// Median of its pairs.
        near_ns: f64,
        /// Farther level.
        far: Level,
        /// Median of its pairs.
        far_ns: f64,
    },
    /// A base that there is not.
    #[error(
        "`like`: no machine `{name}` comes with lineweave; `lineweave list --machines` shows those that do"
    )]
    NoSuchMachine {
        /// Name of the machine, as given.
        name: String,
    },
}
