//! Rows for people: columns under bold headings on a terminal, tab-separated lines off it.
//!
//! Decides how a row fits the terminal: cells that do not fit their line go on below it.

use std::io::{self, IsTerminal};

use super::out::{Paint, printable_cell};

/// The rows, as standard output wants them.
pub fn text<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let out = io::stdout();
    let safe = |row: &[String; N]| row.each_ref().map(|cell| printable_cell(cell).into_owned());
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

/// The cells of a row on one line if they fit, else on several: a cell that does not fit its line
/// begins another one, and is broken between words. A word is not broken: it may have to be typed.
pub fn fitted<T: AsRef<str>>(cells: &[T], width: Option<usize>) -> String {
    const INDENT: &str = "    ";
    const GAP: &str = "  ";
    let width = width.unwrap_or(usize::MAX);
    let mut text = String::new();
    let mut used = 0;
    for cell in cells.iter().map(AsRef::as_ref) {
        let wanted = letters(cell.trim_end());
        if used == 0 || used + GAP.len() + wanted <= width {
            let gap = if used == 0 { "" } else { GAP };
            text += gap;
            text += cell;
            used += gap.len() + letters(cell);
            continue;
        }
        used = usize::MAX;
        for word in cell.trim_end().split(' ') {
            let length = letters(word);
            if used.saturating_add(1 + length) > width {
                text.truncate(text.trim_end().len());
                text += "\n";
                text += INDENT;
                used = INDENT.len();
            } else {
                text.push(' ');
                used += 1;
            }
            text += word;
            used += length;
        }
    }
    text.truncate(text.trim_end().len());
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
    let names = headings.map(|heading| heading.chars().count());
    let mut widths = names;
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    // The last cell may go on below; it needs no column.
    if let (Some(last), Some(name)) = (widths.last_mut(), names.last()) {
        *last = *name;
    }
    if let Some(width) = width {
        shrink(&mut widths, &names, width.saturating_sub(2 * N.saturating_sub(1)));
    }
    let line = |cells: &[String; N]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        fitted(&padded.collect::<Vec<_>>(), width)
    };
    let head = paint.bold(&line(&headings.map(str::to_owned)));
    let body: String = rows.iter().map(|row| line(row) + "\n").collect();
    format!("{head}\n{body}")
}

/// Narrows the widest columns until all fit `room`, none below its heading. What is longer than its
/// column moves what follows.
fn shrink<const N: usize>(widths: &mut [usize; N], least: &[usize; N], room: usize) {
    while widths.iter().sum::<usize>() > room {
        let wide = widths.iter_mut().zip(least).filter(|(width, least)| **width > **least);
        let Some((widest, least)) = wide.max_by_key(|(width, _)| **width) else { return };
        *widest = (*widest).saturating_sub(1).max(*least);
    }
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
        let coloured = fitted(&["\x1b[31mrefused\x1b[0m", "a b"], Some(12));
        assert_eq!(coloured, "\x1b[31mrefused\x1b[0m  a b");
        assert_eq!(fitted(&["x", "long-as-it-is b"], Some(8)), "x\n    long-as-it-is\n    b");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_unless_one_word_is() {
        let agent = "azsdk-python-storage-blob/12.28.0";
        let row = |object: &str| {
            let cells = ["03:04:05.123", object, "Put Blob", "5f0c1a22", agent, "127.0.0.1:4000"];
            cells.map(str::to_owned)
        };
        let rows = [row("blob:docs/a"), row(&format!("blob:docs/{}", "long/".repeat(20)))];
        let headings = ["TIME", "OBJECT", "OPERATION", "CLIENT REQUEST", "USER AGENT", "ADDRESS"];
        for width in [40, 80, 120, 200] {
            let shown = columns(headings, &rows, Paint::NONE, Some(width));
            let words = shown.split_whitespace().map(letters).max().unwrap();
            let widest = shown.lines().map(letters).max().unwrap();
            assert!(widest <= width.max(words + 4), "{widest} at {width}:\n{shown}");
            for cell in rows.iter().flatten() {
                assert!(shown.contains(&**cell), "{cell} at {width}:\n{shown}");
            }
        }
    }
}
