package cli

// refold tools import services: the output can be published, and faults of a
// service are reported.

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/micro"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
)

// service starts a service with one endpoint, do, that says text of itself.
func (w *world) service(name, text string) {
	w.t.Helper()
	nc, _ := testbus.JS(w.t, w.node)
	s, err := micro.AddService(nc, micro.Config{Name: name, Version: "1.0.0"})
	if err == nil {
		err = s.AddEndpoint("do", micro.HandlerFunc(func(micro.Request) {}), micro.WithEndpointSubject(name+".do"),
			micro.WithEndpointMetadata(map[string]string{"refold.tool": text}))
	}
	if err == nil {
		err = nc.Flush()
	}
	bustest.OK(w.t, err)
}

func TestImportServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, errOut := w.does(statusFailed, "tools", "import", "services")
	like(t, "none", errOut, `^refold: no service is a tool: start one`)
	w.does(statusUsage, "tools", "import", "services", "--registry", "--base", "-")

	w.service("orders", `{"schema": {"type": "object"}, "retry_safe": true}`)
	record, errOut := w.does(0, "tools", "import", "services")
	like(t, "said", errOut, `^orders.do: service orders 1.0.0, endpoint do, subject orders.do\nrefold: models are shown some schemas of these 1 tools in another form, and calls are checked against the original: gemini 1, openai 1, openai-chat 1\n$`)
	like(t, "record", record, `(?s)^\{\n  "config": .*"provider": "p".*"target": "services".*"tool_id": "orders.do".*\}\n$`)
	out, _ := w.end(w.begin(record, "install", "-"), 0)
	like(t, "installed", out, `^published at 2: hash [0-9a-f]{64}, 1 tools`)
	again, _ := w.end(w.begin(record, "tools", "import", "services", "--base", "-"), 0)
	if again != record {
		t.Errorf("added to itself: got %s, want %s", again, record)
	}
	out, _ = w.does(0, "tools", "import", "services", "--registry", "--target", "shop")
	like(t, "registry", out, `^\{"tools":\[\{.*"target":"shop".*\}\]\}\n$`)

	w.service("mail", `{"schema": {"type": "object"}, "retrysafe": true}`)
	out, errOut = w.does(statusFailed, "tools", "import", "services")
	like(t, "one is wrong", out+errOut, `^refold: service mail, endpoint do: refold.tool: retrysafe: there is no such member.*\nrefold: nothing is printed: correct the services, or give --partly\n$`)
	for _, args := range []string{"--partly", "orders"} {
		if got, _ := w.does(0, append([]string{"tools", "import", "services"}, strings.Fields(args)...)...); got != record {
			t.Errorf("%s: got %s, want %s", args, got, record)
		}
	}
}
