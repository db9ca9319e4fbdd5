package settings

import "testing"

func TestSizeReadsBack(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{
		"0": 0, "500000": 500000, "1K": 1 << 10, "512KiB": 512 << 10, "256MB": 256 << 20, "256mib": 256 << 20, "2 GiB": 2 << 30, "1T": 1 << 40, "10B": 10,
	} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %d (%v), want %d", text, got, err, want)
		}
		var again Size
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
			t.Errorf("%q: %s reads back as %d (%v)", text, got, again, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5G", "1X", "9999999T", "1KK"} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}
