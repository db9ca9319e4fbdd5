// Package sentence is what the fold tells people and models about ends, calls, answers
// and syncs. A state stores a sentence by its number and its arguments, so that the words
// are in one table, and not in every snapshot.
//
// # Laws
//
//   - A number keeps its sentence for ever, since snapshots have the number and effects the
//     words. To say something in other words, add a sentence. A test fails if a line of
//     testdata/sentences.txt changes.
//   - A text renders to at most BytesMax bytes of UTF-8.
//   - A text of somebody else, such as a person's reason or a bridge's detail, is stored
//     as it is.
package sentence

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// BytesMax is the most bytes of a rendered text, and of all arguments together.
const BytesMax = 256

// textMax is how many sentences a text has at most: what is wrong with an answer, how the
// answer ended, and that it can't be repaired.
const textMax = 3

// quotedBytesMax is how much of a foreign text is quoted.
const quotedBytesMax = 128

// argumentsMax is how many arguments a sentence has at most.
const argumentsMax = 4

// Text is a stored text: somebody's own, or sentences. Its zero value is no text.
type Text string

// A sentence is stored as mark, its number, and a separator before each argument. The
// mark next stands between two sentences.
const (
	mark      = '\x01'
	separator = '\x1f'
	next      = '\x1e'
)

// marks are the characters that arguments can't have.
var marks = strings.NewReplacer(string(mark), " ", string(separator), " ", string(next), " ")

// Say returns a sentence with its arguments, which are cut so that they have at most
// BytesMax bytes together.
func Say(n Number, args ...string) Text {
	var b strings.Builder
	b.WriteByte(mark)
	b.WriteString(strconv.Itoa(int(n)))
	room := BytesMax
	for _, arg := range args {
		arg = Clip(marks.Replace(arg), room)
		room -= len(arg)
		b.WriteByte(separator)
		b.WriteString(arg)
	}
	return Text(b.String())
}

// Own returns the text of somebody else, cut to BytesMax bytes.
func Own(text string) Text {
	text = Clip(text, BytesMax)
	if strings.HasPrefix(text, string(mark)) {
		return Say(own, text)
	}
	return Text(text)
}

// And returns the text followed by a sentence. A text has at most three.
func (t Text) And(n Number, args ...string) Text {
	if t == "" || t[0] != mark {
		t = Say(own, string(t))
	}
	return t + Text(next) + Say(n, args...)
}

// String renders the text.
func (t Text) String() string {
	if t == "" || t[0] != mark {
		return string(t)
	}
	var parts []string
	for part := range strings.SplitSeq(string(t), string(next)) {
		parts = append(parts, render(part))
	}
	for i, part := range parts[:len(parts)-1] { // a long one leaves room for those that follow
		parts[i] = Clip(part, BytesMax/2)
	}
	return Clip(strings.Join(parts, "; "), BytesMax)
}

// MarshalJSON returns the text for people. Only a state stores numbers.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// render renders one stored sentence.
func render(stored string) string {
	n, args, _ := parse(stored)
	var pairs []string
	for i, arg := range args {
		pairs = append(pairs, "{"+strconv.Itoa(i)+"}", arg)
	}
	return strings.NewReplacer(pairs...).Replace(table[n])
}

// parse returns the number and the arguments of a stored sentence.
func parse(stored string) (n Number, args []string, err error) {
	number, rest, has := strings.Cut(stored, string(separator))
	i, err := strconv.Atoi(strings.TrimPrefix(number, string(mark)))
	if err != nil || i < 0 || i >= len(table) || table[i] == "" || number != string(mark)+strconv.Itoa(i) {
		return 0, nil, errors.New("there is no such sentence")
	}
	if has {
		args = strings.Split(rest, string(separator))
	}
	if want := strings.Count(table[i], "{"); len(args) != want || len(rest) > BytesMax+argumentsMax {
		return 0, nil, fmt.Errorf("sentence %d has %d arguments of %d bytes, and takes %d", i, len(args), len(rest), want)
	}
	return Number(i), args, nil
}

// Check returns what is wrong with a text that was read; nil if it can be rendered.
func (t Text) Check() error {
	if t == "" || t[0] != mark {
		if len(t) > BytesMax {
			return fmt.Errorf("it has %d bytes", len(t))
		}
		return nil
	}
	parts := strings.Split(string(t), string(next))
	if len(parts) > textMax {
		return fmt.Errorf("it has %d sentences", len(parts))
	}
	for _, part := range parts {
		if _, _, err := parse(part); err != nil {
			return err
		}
	}
	return nil
}

// Quoted quotes a foreign text, cut and in ASCII: which other characters count as
// printable changes between Go releases, and a detail may enter the state.
func Quoted(text string) string { return strconv.QuoteToASCII(Clip(text, quotedBytesMax)) }

// Clip cuts text to at most n bytes without splitting a character. Cut text is
// copied, so that a state does not keep all of a large text alive.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return strings.Clone(text[:n])
}
