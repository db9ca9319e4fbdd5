package settings

import "testing"

func TestPercentFor(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{
		0: 400, 4 << 20: 400, 64 << 20: 400, 65 << 20: 360, 80 << 20: 320, 100 << 20: 240, 128 << 20: 200, 1 << 30: 200, 1 << 40: 200,
	} {
		if got := percentFor(live); got != want {
			t.Errorf("%d MiB live: got %d, want %d", live>>20, got, want)
		}
	}
}
