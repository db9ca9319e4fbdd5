package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/journal"
)

// TestDeadLettersAreListedAndSentAgain: with the id and the body of the first tries.
func TestDeadLettersAreListedAndSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := make(chan string, 8)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Header.Get("webhook-id") + " " + string(body)
	}))
	t.Cleanup(receiver.Close)
	for _, d := range []journal.DeadLetter{
		{Webhook: "crm", ID: "s1.3", Session: "s1", Failure: "the receiver answered 500", Body: []byte(`{"text":"<é>"}`)},
		{Webhook: "erp", ID: "s1.3", Session: "s1", Failure: "none", Body: []byte(`{}`)},
	} {
		bustest.OK(t, w.bus.StoreDead(w.ctx, d))
	}
	if out, _ := w.does(0, "webhooks", "crm"); !strings.Contains(out, "s1.3") || !strings.Contains(out, "answered 500") || strings.Contains(out, "erp") {
		t.Errorf("listed %s", out)
	}
	file := file(t, "webhooks:\n- {name: crm, url: '"+receiver.URL+"', secret: "+strings.Repeat("QUFB", 10)+", events: [RunFinished], allow_private: true}\n")
	out, told := w.does(statusFailed, "webhooks", "--json", "--send", file)
	if !strings.Contains(out, `"sent":"delivered"`) || !strings.Contains(out, `"sent":"the file has no webhook erp"`) || !strings.Contains(told, "1 dead letters were not delivered") {
		t.Errorf("sent: %s%s", out, told)
	}
	if sent := <-got; sent != `s1.3 {"text":"<é>"}` || len(got) > 0 {
		t.Errorf("the receiver got %s", sent)
	}
}
