//! A picture of 256 by 256 counts.

use std::fmt::Write as _;
use std::io::{self, Write};

/// Pixels of a side.
pub(super) const SIDE: usize = 256;

/// Colours from no listed address to all: black, blue, red, yellow, white.
const COLOURS: [[u8; 3]; 5] = [
    [0, 0, 0],
    [30, 60, 170],
    [200, 40, 60],
    [250, 200, 40],
    [255, 255, 255],
];
/// Characters from no listed address to all, for an output without colours.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// Counts in the order of their networks, and the count of a fully listed network.
#[derive(Debug)]
pub(super) struct Picture {
    counts: Vec<u64>,
    full: u64,
    hilbert: bool,
}

impl Picture {
    /// An empty picture. With `hilbert`, neighbours lie together along a Hilbert curve; otherwise 256 networks are a
    /// row.
    pub(super) fn new(full: u64, hilbert: bool) -> Self {
        Self {
            counts: vec![0; SIDE * SIDE],
            full,
            hilbert,
        }
    }

    /// Adds to the count of a network; networks outside the picture are left out.
    pub(super) fn add(&mut self, network: usize, count: u64) {
        let place = match self.hilbert {
            true => {
                let (x, y) = hilbert(network);
                y * SIDE + x
            }
            false => network,
        };
        if let Some(sum) = self.counts.get_mut(place) {
            *sum += count;
        }
    }

    /// The sum of the counts of a square of pixels.
    fn sum(&self, x: usize, y: usize, side: usize) -> u64 {
        let rows = (y..y + side).filter_map(|y| self.counts.get(y * SIDE + x..y * SIDE + x + side));
        rows.flatten().sum()
    }

    /// How much of a square is listed, 0 to 1, on a logarithmic scale: one address is visible.
    fn level(&self, x: usize, y: usize, side: usize) -> f64 {
        let full = self.full * (side * side) as u64;
        let listed = self.sum(x, y, side);
        ((1 + listed) as f64).log2() / ((1 + full) as f64).log2()
    }

    fn colour(&self, x: usize, y: usize, side: usize) -> [u8; 3] {
        let level = self.level(x, y, side) * (COLOURS.len() - 1) as f64;
        let below = (level as usize).min(COLOURS.len() - 2);
        let part = level - below as f64;
        let (from, to) = (COLOURS[below], COLOURS[below + 1]);
        std::array::from_fn(|channel| {
            let (from, to) = (f64::from(from[channel]), f64::from(to[channel]));
            (from + (to - from) * part).round().clamp(0.0, 255.0) as u8
        })
    }

    /// Writes the picture as PNG, a pixel for each count.
    pub(super) fn png(&self, output: impl Write) -> Result<(), png::EncodingError> {
        let mut encoder = png::Encoder::new(output, SIDE as u32, SIDE as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let places = (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (x, y)));
        let pixels: Vec<u8> = places.flat_map(|(x, y)| self.colour(x, y, 1)).collect();
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&pixels)?;
        writer.finish()
    }

    /// Writes the picture as text of at most so many columns; with colours, a character is two squares, one above the
    /// other.
    pub(super) fn text(
        &self,
        output: &mut impl Write,
        columns: usize,
        colours: bool,
    ) -> io::Result<()> {
        let sides = [1, 2, 4, 8, 16];
        let side = sides
            .into_iter()
            .find(|side| SIDE / side <= columns)
            .unwrap_or(32);
        for y in (0..SIDE).step_by(2 * side) {
            let mut line = String::new();
            for x in (0..SIDE).step_by(side) {
                if colours {
                    let [r, g, b] = self.colour(x, y, side);
                    let _ = write!(line, "\x1b[38;2;{r};{g};{b}m");
                    let [r, g, b] = self.colour(x, y + side, side);
                    let _ = write!(line, "\x1b[48;2;{r};{g};{b}m▀");
                } else {
                    let level = self.level(x, y, side).max(self.level(x, y + side, side));
                    let shade = (level * (SHADES.len() - 1) as f64).ceil() as usize;
                    line.push(SHADES[shade.min(SHADES.len() - 1)]);
                }
            }
            let end = if colours { "\x1b[0m" } else { "" };
            writeln!(output, "{line}{end}")?;
        }
        Ok(())
    }
}

/// The place of a number on the Hilbert curve of 256 by 256 places.
fn hilbert(number: usize) -> (usize, usize) {
    let (mut x, mut y, mut rest) = (0, 0, number);
    let mut side = 1;
    while side < SIDE {
        let right = rest >> 1 & 1;
        let down = (rest ^ right) & 1;
        if down == 0 {
            if right == 1 {
                (x, y) = (side - 1 - x, side - 1 - y);
            }
            (x, y) = (y, x);
        }
        x += side * right;
        y += side * down;
        rest >>= 2;
        side *= 2;
    }
    (x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hilbert_curve_visits_each_place_once_in_steps_of_one() {
        let places: Vec<_> = (0..SIDE * SIDE).map(hilbert).collect();
        for pair in places.windows(2) {
            let ((x, y), (next_x, next_y)) = (pair[0], pair[1]);
            assert_eq!(x.abs_diff(next_x) + y.abs_diff(next_y), 1, "{pair:?}");
        }
        let mut sorted = places.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), places.len());
    }

    #[test]
    fn a_picture_has_the_colours_of_its_counts() {
        let mut picture = Picture::new(256, false);
        picture.add(0, 256);
        picture.add(257, 1);
        let mut file = Vec::new();
        picture.png(&mut file).expect("a picture");
        let mut reader = png::Decoder::new(io::Cursor::new(file))
            .read_info()
            .expect("a head");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut pixels).expect("an image");
        assert_eq!((info.width, info.height), (256, 256));
        assert_eq!(pixels[..3], COLOURS[4]);
        assert_eq!(pixels[3..6], COLOURS[0]);
        assert_ne!(pixels[3 * 257..3 * 258], COLOURS[0]);
        let mut text = Vec::new();
        picture.text(&mut text, 80, false).expect("a text");
        let text = String::from_utf8(text).expect("UTF-8");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[0].chars().count()), (32, 64));
        assert!(
            lines[0].starts_with('▓') || lines[0].starts_with('█'),
            "{}",
            lines[0]
        );
    }
}
