package refold

// Keep sets how many updates of a session the runtime keeps for its readers. It is for
// use before there are any.
func Keep(rt *Runtime, n int) { rt.keptMax = n }
