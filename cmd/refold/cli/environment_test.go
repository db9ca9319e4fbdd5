package cli

import (
	"reflect"
	"testing"

	"github.com/refold/refold/internal/natsio"
)

// TestConnectionFlagsHaveTheClientsVariables: the variables of the flags are those
// that client.Connect reads.
func TestConnectionFlagsHaveTheClientsVariables(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"NATS": natsio.VariableURL, "Creds": natsio.VariableCreds, "Context": natsio.VariableContext, "Prefix": natsio.VariablePrefix,
	}
	for field := range reflect.TypeFor[connection]().Fields() {
		if got := field.Tag.Get("env"); got != want[field.Name] {
			t.Errorf("%s: the variable is %q, want %q", field.Name, got, want[field.Name])
		}
	}
}
