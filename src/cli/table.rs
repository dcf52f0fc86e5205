//! Rows for people: columns under bold headings on a terminal, tab-separated lines off it.

use std::io::{self, IsTerminal, Write};

/// Writes rows to standard output.
pub fn print<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        let bold = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        out.write_all(columns(headings, rows, bold).as_bytes())
    } else {
        out.write_all(plain(rows).as_bytes())
    }
}

fn plain<const N: usize>(rows: &[[String; N]]) -> String {
    rows.iter().map(|row| row.join("\t") + "\n").collect()
}

fn columns<const N: usize>(headings: [&str; N], rows: &[[String; N]], bold: bool) -> String {
    let mut widths = headings.map(|heading| heading.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String; N]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head = line(&headings.map(str::to_owned));
    let head = if bold { format!("\x1b[1m{head}\x1b[0m") } else { head };
    let body: String = rows.iter().map(|row| line(row) + "\n").collect();
    format!("{head}\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_do_not_trail() {
        let rows = [["1".into(), "/a/long/path".into()], ["1234567".into(), "/b".into()]];
        let text = columns(["HANDLE", "PATH"], &rows, false);
        assert_eq!(text, "HANDLE   PATH\n1        /a/long/path\n1234567  /b\n");
        assert!(columns(["A"], &[], true).starts_with("\x1b[1mA\x1b[0m"));
        assert_eq!(plain(&rows), "1\t/a/long/path\n1234567\t/b\n");
    }
}
