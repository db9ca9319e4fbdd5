// Package service makes tools of NATS micro services, in whatever language they
// are written: an endpoint whose metadata has the key refold.tool is one.
//
//	tools, err := service.New(service.Options{Target: "services"})
//	…
//	err = b.Tool("services", tools) // a bridge.Executor
//	stop, err := tools.Start(ctx, nc) // nc: a *bus.Bus
//
// # Path
//
// Services are asked what they are, at the start and from time to time, by
// $SRV.INFO (watch.go). What an endpoint says of itself becomes a Tool, or a
// Problem (metadata.go, find.go). A call goes to the endpoint's subject as a
// request, and its answer becomes a result (call.go, reply.go).
//
// # Laws
//
//   - A tool is what its service says now, and may be called only as far as that
//     is not less than what the session was told: arguments are checked by the
//     schema of now, and a call that the session holds for retry-safe is refused
//     if the service says that it is not.
//   - What reached nobody is sent again, also if it is not retry-safe. What may
//     have arrived is sent again only if it is.
//   - A service that did not answer once is not gone, and one that is gone is
//     still asked: it may be back before anybody notices.
//   - One tool_id is one subject. Of two services that both say they have it,
//     neither gets a call.
//   - No service makes a bridge publish where only Refold and the server's own
//     API may: subjects that begin with $, with _ or with Refold's prefix are
//     refused, and so are wildcards.
//   - A tool that is not retry-safe needs a queue group: without one each instance
//     would carry out each call.
//
// # Testing
//
// The rules run against a world in memory, in virtual time. Package e2e runs the
// examples, in Go and in JavaScript, as processes.
package service
