package planner

import (
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// drawNumber draws a number as the codec writes it, with big.Rat's idea of it.
func drawNumber(t *rapid.T, label string) (decimal, *big.Rat) {
	var text string
	switch rapid.IntRange(0, 2).Draw(t, label+" kind") {
	case 0:
		text = strconv.FormatInt(rapid.SampledFrom([]int64{0, 1, -1, 10, -10, 12, 120, -7, 1 << 53}).Draw(t, label), 10)
	case 1:
		text = strconv.FormatUint(rapid.Uint64().Draw(t, label), 10)
	default:
		f := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0.1, 0.5, -0.25, 1e300, -1e-300, 1.5e21, 5e-324})).Draw(t, label)
		text = strconv.FormatFloat(f, rapid.SampledFrom([]byte("ef")).Draw(t, label+" form"), -1, 64)
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("big.Rat doesn't read %q", text)
	}
	return parseDecimal(text), exact
}

// TestDecimalAgreesWithRat compares every operation with big.Rat.
func TestDecimalAgreesWithRat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, exactA := drawNumber(t, "a")
		b, exactB := drawNumber(t, "b")
		if got, want := a.compare(b), exactA.Cmp(exactB); got != want {
			t.Fatalf("compare: got %d, want %d", got, want)
		}
		if got, want := a == b, exactA.Cmp(exactB) == 0; got != want {
			t.Fatalf("equal: got %t, want %t", got, want)
		}
		if got, want := string(a.appendKey(nil)) == string(b.appendKey(nil)), a == b; got != want {
			t.Fatalf("equal keys: got %t, want %t", got, want)
		}
		if got, want := a.whole(), exactA.IsInt(); got != want {
			t.Fatalf("whole: got %t, want %t", got, want)
		}
		if exactB.Sign() != 0 {
			if got, want := a.multipleOf(b), new(big.Rat).Quo(exactA, exactB).IsInt(); got != want {
				t.Fatalf("multipleOf: got %t, want %t", got, want)
			}
		}
		if exactB.Sign() > 0 && exactA.IsInt() && exactA.Num().IsInt64() {
			// A product is a multiple, which random pairs seldom are.
			product := new(big.Rat).Mul(exactA, exactB)
			if text := product.FloatString(400); !parseDecimal(text).multipleOf(b) {
				t.Fatalf("%s is no multiple of %s", text, exactB.FloatString(30))
			}
		}
	})
}

// TestTooLargeCountIsTheLargestInt: it allows as much.
func TestTooLargeCountIsTheLargestInt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"0": 0, "7": 7, "1e+3": 1000, "120": 120, "1e+17": 1e17, "-1": 0, "1.5": 0,
		"9223372036854775807": int(^uint(0) >> 1), "1e+300": int(^uint(0) >> 1),
	} {
		if got := count(parseDecimal(text)); got != want {
			t.Errorf("count of %s: got %d, want %d", text, got, want)
		}
	}
}
