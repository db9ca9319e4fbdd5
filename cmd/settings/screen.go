package settings

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// Screen is a terminal, or a file or pipe that another program reads.
type Screen struct {
	io.Writer
	Columns int  // of the terminal; 0: not a terminal
	Colors  bool // the terminal shows colors, and the user has not turned them off
}

// columnsDefault is the width of a terminal that does not report its own.
const columnsDefault = 80

// ScreenOf returns the screen of a writer, which is a file or the writer that
// Terminal made of one. COLUMNS overrides the terminal's width. NO_COLOR, with
// any value, and TERM=dumb turn colors off.
func ScreenOf(w io.Writer) Screen {
	f, ok := Raw(w).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Screen{Writer: w}
	}
	s := Screen{Writer: w, Columns: columnsDefault, Colors: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		s.Columns = columns
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		s.Columns = columns
	}
	return s
}

// Color is a text color on a screen.
type Color string

// The colors that programs use, as SGR parameters of the terminal's own palette.
const (
	Plain  Color = ""
	Bold   Color = "1"
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Blue   Color = "34"
)

// Paint writes text in a color. Without colors it writes the text alone.
func (s Screen) Paint(c Color, text string) {
	if !s.Colors || c == Plain {
		fmt.Fprint(s, text)
		return
	}
	below := Raw(s.Writer) // unlike Terminal's writer, it does not escape control sequences
	fmt.Fprint(below, "\x1b["+string(c)+"m")
	fmt.Fprint(s, text)
	fmt.Fprint(below, "\x1b[0m")
}

// Cells returns how many columns of a terminal a text from Spelled takes.
func Cells(text string) int {
	n := 0
	for _, char := range text {
		n += cells(char)
	}
	return n
}

func cells(char rune) int {
	switch width.LookupRune(char).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Fit returns as much of a text as columns allow, with a … where it was cut.
func Fit(text string, columns int) string {
	switch {
	case columns <= 0:
		return ""
	case Cells(text) <= columns:
		return text
	}
	n := 0
	for i, char := range text {
		if n += cells(char); n > columns-1 {
			return text[:i] + "…"
		}
	}
	return text
}
