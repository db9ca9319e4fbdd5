// Package service provides the tools of NATS micro services, in any language.
// An endpoint whose metadata has the key refold.tool is a tool.
//
//	tools, err := service.New(service.Options{Target: "services"})
//	…
//	err = b.Tool("services", tools) // a executor.Executor
//	stop, err := tools.Start(ctx, nc) // nc: a *bus.Bus
//
// # Path
//
// Services are found by $SRV.INFO, at the start and periodically (watch.go). An
// endpoint's metadata becomes a Tool or a Problem (metadata.go, find.go). A
// call is a request to the endpoint's subject, and its answer becomes a result
// (call.go, reply.go).
//
// # Laws
//
//   - A service's present metadata counts, and it may be no weaker than the
//     session's registry: arguments are checked against the present schema, and
//     a call that is retry-safe for the session is refused if it is not for the
//     service.
//   - A call that no service received is sent again, even if it is not
//     retry-safe. A call that may have arrived is sent again only if it is.
//   - A call ends when every instance that may have received it is gone: another
//     one of its service does not keep it waiting.
//   - One missed answer does not mark a service as gone. A call to a service
//     that is gone is still sent: it may be back already.
//   - One tool_id is one subject. If two services claim it, neither gets a call.
//   - No service can make a bridge publish where only Refold and the server's
//     own API may: subjects that begin with $, with _ or with Refold's prefix
//     are refused, and so are wildcards.
//   - A tool that is not retry-safe needs a queue group: without one every
//     instance would carry out every call.
//
// # Testing
//
// The tests run the rules in memory, in virtual time. Package e2e runs the
// examples, in Go and in JavaScript, as processes.
package service
