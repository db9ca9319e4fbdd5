package refold

// Keep sets how many updates of a session the runtime keeps for its readers. It is for
// use before there are any.
func Keep(rt *Runtime, n int) { rt.keptMax = n }

// ConfigOf returns the config of an agent's definition, as JSON.
func ConfigOf(a *Agent) string { return string(a.config) }
