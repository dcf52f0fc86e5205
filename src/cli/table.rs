//! Rows for people: columns under bold headings on a terminal, tab-separated lines off it.

use std::io::{self, IsTerminal};

use super::out::Paint;

/// The rows, as standard output wants them.
pub fn text<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let out = io::stdout();
    if out.is_terminal() { columns(headings, rows, Paint::of(&out)) } else { plain(rows) }
}

fn plain<const N: usize>(rows: &[[String; N]]) -> String {
    rows.iter().map(|row| row.join("\t") + "\n").collect()
}

fn columns<const N: usize>(headings: [&str; N], rows: &[[String; N]], paint: Paint) -> String {
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
    let head = paint.bold(&line(&headings.map(str::to_owned)));
    let body: String = rows.iter().map(|row| line(row) + "\n").collect();
    format!("{head}\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_do_not_trail() {
        let rows = [["1".into(), "/a/long/path".into()], ["1234567".into(), "/b".into()]];
        let text = columns(["HANDLE", "PATH"], &rows, Paint::NONE);
        assert_eq!(text, "HANDLE   PATH\n1        /a/long/path\n1234567  /b\n");
        assert!(columns(["A"], &[], Paint::always()).starts_with("\x1b[1mA\x1b[0m"));
        assert_eq!(plain(&rows), "1\t/a/long/path\n1234567\t/b\n");
    }
}
