//! A picture as PNG: resvg draws it with a font that the program contains, so that it looks the same everywhere.

use crate::error::CliError;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use std::sync::Arc;

/// Letters of DejaVu Sans (crates/lineweave-cli/fonts).
const FONT: &[u8] = include_bytes!("../../../fonts/sans.ttf");
const FAMILY: &str = "lineweave Sans";
/// Largest width or height in pixels; a larger picture is scaled down.
const MOST: f32 = 16_000.0;

/// Returns the pixels of `svg`, two for each of its units either way.
pub fn png(svg: &str) -> Result<Vec<u8>, CliError> {
    let failed = |why: String| CliError::Picture { why };
    let mut options = Options { font_family: FAMILY.to_owned(), ..Options::default() };
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    let tree = Tree::from_str(svg, &options).map_err(|e| failed(e.to_string()))?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let scale = (MOST / width.max(height)).min(2.0);
    let sides = ((width * scale).ceil() as u32, (height * scale).ceil() as u32);
    let mut pixels = Pixmap::new(sides.0, sides.1).ok_or_else(|| failed("it has no extent".to_owned()))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| failed(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_drawn_without_fonts_of_the_machine() {
        let picture = |text: &str| {
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"90\" height=\"20\" font-family=\"system-ui, Helvetica, \
                 sans-serif\"><text x=\"2\" y=\"14\" font-size=\"12\">{text}</text></svg>"
            );
            Pixmap::decode_png(&png(&svg).unwrap()).unwrap()
        };
        let dark = |p: &Pixmap| p.pixels().iter().filter(|p| p.alpha() > 128).count();
        assert_eq!((picture("").width(), picture("").height()), (180, 40));
        assert_eq!(dark(&picture("")), 0);
        assert!(dark(&picture("lineweave \u{3c4}")) > dark(&picture("line")) && dark(&picture("line")) > 50);
        assert!(matches!(png("<svg"), Err(CliError::Picture { .. })));
    }
}
