package prompt

import (
	"testing"

	"github.com/refold/refold/actors/session"
)

// The relations of the limits.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why  string
		hold bool
	}{
		{"a preview is what the session counts for one", previewHeadBytes+previewTailBytes == session.PreviewBytesMax},
		{"a text in a blob is shown up to what the session counts for one", ContentBytesMax == session.ShownBytesMax},
		{"events read at once fit a request, and the room that NATS clients have for answers", eventsAtOnce*session.EventBytesMax < min(requestBytesMax, 64<<20)},
		{"of an image or a document all can be read", fileBytesMax <= ContentBytesMax && fileBytesMax < mediaBytesMax},
		{"one content fits a request", ContentBytesMax < requestBytesMax},
	} {
		if !c.hold {
			t.Errorf("does not hold: %s", c.why)
		}
	}
}
