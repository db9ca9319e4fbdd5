package llm

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/media"
)

// Of more images than a request may have, the latest are kept, and the texts of all
// stay. The messages themselves do not change, since they may be cached.
func TestLatestImagesAreKept(t *testing.T) {
	t.Parallel()
	png, err := os.ReadFile("../media/testdata/dot.png")
	if err != nil {
		t.Fatal(err)
	}
	message := func(i int) executor.Message {
		text := fmt.Sprintf("picture %d", i)
		part := executor.Part{Name: fmt.Sprintf("p%d", i), MediaType: "image/jpeg", Data: png}
		return executor.Message{Role: "user", Text: text, Parts: []executor.Part{{Text: text}, part, part}}
	}
	messages := []executor.Message{message(0), {Role: "assistant", Text: "seen"}, message(1), message(2)}
	before := []executor.Message{message(0), {Role: "assistant", Text: "seen"}, message(1), message(2)}
	accepts := Accepts{Server: "a server", Images: []string{media.PNG}, TotalMax: 3 * media.EncodedLen(len(png))}
	got := accepts.Fit(messages)
	if !reflect.DeepEqual(messages, before) {
		t.Errorf("the request's own messages have changed: %+v", messages)
	}
	const line = "[%s, image/png, 91 bytes, is not shown: the images and documents of the conversation are more than one request may have: the latest ones are shown]"
	for i, want := range []struct {
		shown int
		text  string
	}{
		{0, "picture 0\n" + strings.Repeat("\n"+fmt.Sprintf(line, "p0"), 2)[1:]},
		{0, "seen"},
		{1, "picture 1\n" + fmt.Sprintf(line, "p1")},
		{2, "picture 2"},
	} {
		shown := 0
		for _, p := range got[i].Parts {
			if len(p.Data) > 0 {
				shown++
				if p.MediaType != media.PNG {
					t.Errorf("message %d: a part is of type %s", i, p.MediaType)
				}
			}
		}
		if shown != want.shown || got[i].Text != want.text {
			t.Errorf("message %d: got %d images with %q, want %d with %q", i, shown, got[i].Text, want.shown, want.text)
		}
	}
	if got[2].Parts[1].Text != fmt.Sprintf(line, "p1") {
		t.Errorf("the line is not where the image was: %+v", got[2].Parts)
	}
}
