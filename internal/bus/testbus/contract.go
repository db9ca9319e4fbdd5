package testbus

import (
	"context"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/subjects"
)

// Env is the environment of a contract's case, with one connection to each server.
type Env struct {
	T     *testing.T
	Ctx   context.Context
	Nodes []*bustest.Node
	All   []*bus.Bus
	B     *bus.Bus // to the first server
	Names subjects.Names
}

// Publish stores an event and returns its sequence.
func (e Env) Publish(door session.Door, sid, payload string) uint64 {
	e.T.Helper()
	seq, err := e.B.Publish(e.Ctx, door, sid, []byte(payload), "")
	if err != nil {
		e.T.Fatal(err)
	}
	return seq
}

// Contract runs cases against servers on which streams have this many replicas. All
// cases share the streams and use sessions of their own. first, if not nil, runs alone
// before them.
func Contract(t *testing.T, nodes []*bustest.Node, replicas int, first func(*testing.T, Env), cases map[string]func(*testing.T, Env)) {
	e := Env{T: t, Ctx: Context(t), Nodes: nodes, Names: Names(t, "")}
	for _, node := range nodes {
		e.All = append(e.All, Connect(t, node, ""))
	}
	e.B = e.All[0]
	if err := e.B.Provision(Context(t), Conf(t, ""), replicas); err != nil {
		t.Fatal(err)
	}
	if first != nil {
		first(t, e)
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := e
			e.T, e.Ctx = t, Context(t)
			f(t, e)
		})
	}
}
