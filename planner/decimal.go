package planner

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
)

// decimal is a number: digits × 10^exponent. Each number has one form (no zero
// at either end of the digits; zero has no digits and no sign), so == compares
// numbers.
type decimal struct {
	digits   string
	exponent int
	negative bool
}

// parseDecimal reads a JSON number. The codec has checked that it is an integer
// of 64 bits or a float, written with the fewest digits.
func parseDecimal(text string) decimal {
	text, negative := strings.CutPrefix(text, "-")
	mantissa, power, _ := strings.Cut(text, "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, _ := strconv.Atoi(power) // no power is 0
	digits := strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return decimal{}
	}
	return decimal{digits: trimmed, exponent: exponent - len(fraction) + len(digits) - len(trimmed), negative: negative}
}

// whole reports whether d is an integer: 1 and 1.0 are.
func (d decimal) whole() bool { return d.exponent >= 0 }

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// compare returns -1, 0 or 1 as d is less than, equal to or greater than e.
func (d decimal) compare(e decimal) int {
	if d.sign() != e.sign() || d.sign() == 0 {
		return cmp.Compare(d.sign(), e.sign())
	}
	// As 0.digits × 10^(exponent+len): the greater power is the greater number,
	// and between equal powers the digits decide, as text.
	size := cmp.Or(cmp.Compare(d.exponent+len(d.digits), e.exponent+len(e.digits)), cmp.Compare(d.digits, e.digits))
	return size * d.sign()
}

// multipleOf reports whether d is an integer multiple of e, which is not zero.
func (d decimal) multipleOf(e decimal) bool {
	if d.sign() == 0 {
		return true
	}
	least := min(d.exponent, e.exponent)
	return new(big.Int).Rem(d.integer(least), e.integer(least)).Sign() == 0
}

// integer returns the absolute value of d × 10^-exponent. Numbers come from
// floats and 64-bit integers, so the result has some two thousand bits at most.
func (d decimal) integer(exponent int) *big.Int {
	n, _ := new(big.Int).SetString(d.digits, 10)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.exponent-exponent)), nil)
	return n.Mul(n, power)
}

// appendKey appends text that is the same for equal numbers only.
func (d decimal) appendKey(out []byte) []byte {
	if d.negative {
		out = append(out, '-')
	}
	out = append(out, d.digits...)
	out = append(out, 'e')
	return strconv.AppendInt(out, int64(d.exponent), 10)
}

// appendText appends the number as JSON, with as few digits as possible.
func (d decimal) appendText(out []byte) []byte {
	const zerosMax = 21 // beyond that an exponent is easier to read
	if d.sign() == 0 {
		return append(out, '0')
	}
	if d.negative {
		out = append(out, '-')
	}
	switch point := len(d.digits) + d.exponent; {
	case d.exponent >= 0 && point <= zerosMax:
		return append(append(out, d.digits...), strings.Repeat("0", d.exponent)...)
	case d.exponent < 0 && point > 0:
		return append(append(append(out, d.digits[:point]...), '.'), d.digits[point:]...)
	case d.exponent < 0 && point > -zerosMax:
		return append(append(append(out, "0."...), strings.Repeat("0", -point)...), d.digits...)
	default:
		out = append(out, d.digits[0])
		if len(d.digits) > 1 {
			out = append(append(out, '.'), d.digits[1:]...)
		}
		return strconv.AppendInt(append(out, 'e'), int64(point-1), 10)
	}
}
