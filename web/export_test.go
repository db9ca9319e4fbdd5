package web

// Operation is a row of the table of routes.
type Operation struct {
	Method, Path, Name string
	Right              Right
	Open, Stream       bool
	Global             bool // it needs a token without a scope
}

// Operations returns the table of routes.
func Operations() (all []Operation) {
	for i := range routes {
		rt := &routes[i]
		all = append(all, Operation{rt.method, rt.path, rt.name, rt.right, rt.open != never, rt.stream, rt.global})
	}
	return all
}

// CheckpointEach is how many events are between two states that are kept.
const CheckpointEach = checkpointEach
