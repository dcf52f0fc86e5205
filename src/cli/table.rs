//! Rows for people: columns under bold headings on a terminal, tab-separated lines off it.
//!
//! Decides how a row fits the terminal: a last cell that is too long for its line goes on below it.

use std::io::{self, IsTerminal};

use super::out::{Paint, printable};

/// The rows, as standard output wants them.
pub fn text<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let out = io::stdout();
    let safe = |row: &[String; N]| row.each_ref().map(|cell| printable(cell).into_owned());
    let rows: Vec<_> = rows.iter().map(safe).collect();
    if out.is_terminal() {
        columns(headings, &rows, Paint::of(&out), terminal_width())
    } else {
        plain(&rows)
    }
}

/// How many columns the terminal on standard output has; none if it does not say.
pub fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// The first cells of a row and its last one: on one line if they fit, else the last one below, in
/// lines of words that fit.
pub fn fitted(first: &str, last: &str, width: Option<usize>) -> String {
    const INDENT: &str = "    ";
    let line = format!("{first}  {last}");
    let Some(width) = width.filter(|width| last.contains(' ') && letters(&line) > *width) else {
        return line.trim_end().to_owned();
    };
    let mut text = first.trim_end().to_owned();
    let mut room = 0;
    for word in last.split(' ') {
        if letters(word) >= room {
            text += "\n";
            text += INDENT;
            room = width.saturating_sub(INDENT.len());
        } else {
            text.push(' ');
            room -= 1;
        }
        text += word;
        room = room.saturating_sub(letters(word));
    }
    text
}

/// How many columns a text takes, without what sets its colour.
fn letters(text: &str) -> usize {
    let mut count = 0;
    let mut sets_colour = false;
    for letter in text.chars() {
        match letter {
            '\x1b' => sets_colour = true,
            'm' if sets_colour => sets_colour = false,
            _ if sets_colour => {}
            _ => count += 1,
        }
    }
    count
}

fn plain<const N: usize>(rows: &[[String; N]]) -> String {
    rows.iter().map(|row| row.join("\t") + "\n").collect()
}

fn columns<const N: usize>(
    headings: [&str; N],
    rows: &[[String; N]],
    paint: Paint,
    width: Option<usize>,
) -> String {
    let mut widths = headings.map(|heading| heading.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String; N], width: Option<usize>| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let first = padded.take(N.saturating_sub(1)).collect::<Vec<_>>().join("  ");
        match cells.last() {
            Some(last) if N > 1 => fitted(&first, last, width),
            last => last.cloned().unwrap_or_default(),
        }
    };
    let head = paint.bold(&line(&headings.map(str::to_owned), None));
    let body: String = rows.iter().map(|row| line(row, width) + "\n").collect();
    format!("{head}\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_do_not_trail() {
        let rows = [["1".into(), "/a/long/path".into()], ["1234567".into(), "/b".into()]];
        let text = columns(["HANDLE", "PATH"], &rows, Paint::NONE, None);
        assert_eq!(text, "HANDLE   PATH\n1        /a/long/path\n1234567  /b\n");
        assert!(columns(["A"], &[], Paint::always(), None).starts_with("\x1b[1mA\x1b[0m"));
        assert_eq!(plain(&rows), "1\t/a/long/path\n1234567\t/b\n");
    }

    #[test]
    fn a_last_cell_that_is_too_long_goes_on_below_in_lines_that_fit() {
        let what = "open: the file is open and not shared [SharingViolation, EBUSY]";
        let rows = [["1".into(), "s:/a".into(), what.to_owned()]];
        let shown = |width| columns(["SEQ", "PATH", "WHAT"], &rows, Paint::NONE, width);
        assert_eq!(shown(None), format!("SEQ  PATH  WHAT\n1    s:/a  {what}\n"));
        assert_eq!(shown(Some(80)), shown(None));
        let expected = "SEQ  PATH  WHAT\n1    s:/a\n    open: the file is open and\n    \
                        not shared\n    [SharingViolation, EBUSY]\n";
        assert_eq!(shown(Some(30)), expected);
        let coloured = fitted("\x1b[31mrefused\x1b[0m", "a b", Some(12));
        assert_eq!(coloured, "\x1b[31mrefused\x1b[0m  a b");
        // A word that fits no line is not broken: it may have to be typed.
        assert_eq!(fitted("x", "long-as-it-is b", Some(8)), "x\n    long-as-it-is\n    b");
    }
}
