package jetmodel_test

// The compared state of consumers.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/proof/jetmodel"
)

func (p *pair) pull(name string) (op, model, server string) {
	if op, model, server = p.info(name); model != server {
		return op, model, server
	}
	if p.mine[name].Info().AckPending == pendingMax && name == "some" {
		return op, model, server // the server lets such a request wait
	}
	op = "pull " + name
	var of pins
	if name == "lane" {
		if of, op = p.pin(op); of.server == "" && p.mine[name].Info().Pin != "" {
			return p.info(name) // who has no pin waits
		}
	}
	d, found, err := p.mine[name].Pull(of.model)
	switch {
	case err != nil:
		model = err.Error()
	case !found:
		model = "nothing"
	default:
		model = fmt.Sprintf("%d %s %s as %d, time %d, %d behind it", d.Seq, d.Subject, d.Data, d.ConsumerSeq, d.Count, d.Pending)
	}
	m := p.next(name, of.server)
	switch status := m.Header.Get("Status"); status {
	case "404", "408", "409":
		return op, model, "nothing"
	case "423":
		return op, model, jetmodel.ErrPin.Error()
	case "":
	default:
		return op, model, status + " " + m.Header.Get("Description")
	}
	meta, err := m.Metadata()
	if err != nil {
		p.t.Fatal(err)
	}
	p.held[name][meta.Sequence.Stream] = m.Reply
	if name == "lane" && found && d.Pin != of.model {
		p.pins[name] = append(p.pins[name], pins{d.Pin, m.Header.Get("Nats-Pin-Id")})
	}
	server = fmt.Sprintf("%d %s %s as %d, time %d, %d behind it", meta.Sequence.Stream, m.Subject, m.Data, meta.Sequence.Consumer, meta.NumDelivered, meta.NumPending)
	return op, model, server
}

// pin draws with which pin to pull: mostly the last one, now and then a former
// one or none.
func (p *pair) pin(op string) (pins, string) {
	all := p.pins["lane"]
	if len(all) == 0 || p.rand.IntN(6) == 0 {
		return pins{}, op + " without a pin"
	}
	i := len(all) - 1
	if p.rand.IntN(6) == 0 {
		i = p.rand.IntN(len(all))
	}
	return all[i], op + " with pin " + all[i].model
}

// next asks the server for one message that is there now.
func (p *pair) next(name, pin string) *nats.Msg {
	body := `{"batch":1,"no_wait":true`
	if name == "lane" {
		body += `,"group":"owner"`
		if pin != "" {
			body += `,"id":` + strconv.Quote(pin)
		}
	}
	m, err := p.nc.Request("$JS.API.CONSUMER.MSG.NEXT."+p.name+"."+name, []byte(body+"}"), time.Minute)
	if err != nil {
		p.t.Fatal(err)
	}
	return &nats.Msg{Subject: m.Subject, Reply: m.Reply, Header: m.Header, Data: m.Data, Sub: m.Sub}
}

// answer acks a delivery, or gives it back, by any reply that there ever was.
func (p *pair) answer(name string, nak bool) (op, model, server string) {
	held := slices.Sorted(maps.Keys(p.held[name]))
	if len(held) == 0 {
		return p.info(name)
	}
	seq := held[p.rand.IntN(len(held))]
	body, verb := "+ACK", "ack"
	if nak {
		// A nak of an earlier epoch is told by its consumer sequence.
		if p.mine[name].Info().Delivered < ownSeq(p.held[name][seq]) {
			return p.info(name)
		}
		body, verb = "-NAK", "nak"
		if info := p.mine[name].Info(); ownSeq(p.held[name][seq]) > info.Floor {
			p.mine[name].Nak(seq, 0)
		}
	} else {
		p.mine[name].Ack(seq)
	}
	if _, err := p.nc.Request(p.held[name][seq], []byte(body), 200*time.Millisecond); err != nil && !nak {
		op = " (no answer)" // an ack that is not for it is not answered
	}
	_, model, server = p.info(name)
	return fmt.Sprintf("%s %s %d%s", verb, name, seq, op), model, server
}

// ownSeq returns the consumer sequence that a reply names.
func ownSeq(reply string) uint64 {
	tokens := strings.Split(reply, ".")
	n, err := strconv.ParseUint(tokens[len(tokens)-3], 10, 64)
	if err != nil {
		panic(reply)
	}
	return n
}

func (p *pair) reset(name string) (op, model, server string) {
	if p.rand.IntN(3) > 0 {
		return p.info(name)
	}
	p.forget(name)
	p.mine[name].Reset()
	var said struct {
		Error *jetstream.APIError `json:"error"`
	}
	p.request("CONSUMER.RESET."+p.name+"."+name, map[string]any{}, &said)
	if said.Error != nil {
		p.t.Fatal(said.Error)
	}
	_, model, server = p.info(name)
	return "reset " + name, model, server
}

func (p *pair) unpin() (op, model, server string) {
	if p.rand.IntN(2) > 0 {
		return p.info("lane")
	}
	p.mine["lane"].Unpin()
	var said struct {
		Error *jetstream.APIError `json:"error"`
	}
	p.request("CONSUMER.UNPIN."+p.name+".lane", map[string]any{"group": "owner"}, &said)
	if said.Error != nil {
		p.t.Fatal(said.Error)
	}
	_, model, server = p.info("lane")
	return "unpin", model, server
}

func (p *pair) info(name string) (op, model, server string) {
	mine := p.mine[name].Info()
	text := func(i jetmodel.Info, pinned bool) string {
		return fmt.Sprintf("delivered %d/%d, floor %d, before %d, %d unacked, %d again, %d to come, pinned %v",
			i.Delivered, i.DeliveredStream, i.Floor, p.behind(name, i.FloorStream), i.AckPending, i.Redelivered, i.Pending, pinned)
	}
	model = text(mine, mine.Pin != "")
	// The server tells its consumers of a message after it has answered who
	// published it.
	tick, end := time.NewTicker(time.Millisecond), time.Now().Add(settleFor)
	defer tick.Stop()
	for ; ; <-tick.C {
		c, err := p.js.Consumer(p.t.Context(), p.name, name)
		if err != nil {
			p.t.Fatal(err)
		}
		at := c.CachedInfo()
		if f := p.former[name]; f != nil && f.shows(at, mine) {
			at.Delivered = jetstream.SequenceInfo{Consumer: mine.Delivered, Stream: mine.DeliveredStream}
			at.AckFloor = jetstream.SequenceInfo{Consumer: mine.Floor, Stream: mine.FloorStream}
		}
		pinned := slices.ContainsFunc(at.PriorityGroups, func(g jetstream.PriorityGroupState) bool { return g.PinnedClientID != "" })
		server = text(jetmodel.Info{
			Delivered: at.Delivered.Consumer, DeliveredStream: at.Delivered.Stream,
			Floor: at.AckFloor.Consumer, FloorStream: at.AckFloor.Stream,
			AckPending: at.NumAckPending, Redelivered: at.NumRedelivered, Pending: int(at.NumPending),
		}, pinned)
		if model == server || time.Now().After(end) {
			return "info " + name, model, server
		}
	}
}

// forget is called before a reset. Of a consumer that is reset to its very
// beginning the server may show for good what it was before. It keeps what it
// shows as delivered and as acked in its file store, whose zeros mean that the
// file is not loaded. A reset writes zeros; but what the store flushes beside that
// is of a moment before, and may be written last, or keep the zeros from being
// written. Whoever looks next then loads it, and what is delivered from there on
// never gets below it. A reset to any other place ends that.
func (p *pair) forget(name string) {
	at := p.mine[name].Info()
	if at.FloorStream > 0 {
		delete(p.former, name)
		return
	}
	f := &former{delivered: at.Delivered, stream: at.DeliveredStream}
	if old := p.former[name]; old != nil {
		f.delivered, f.stream = max(f.delivered, old.delivered), max(f.stream, old.stream)
	}
	p.former[name] = f
}

// former is what a consumer had delivered at most before it was reset to its very
// beginning.
type former struct {
	delivered, stream uint64
	shown             bool // the server shows it since
}

// shows reports whether the server shows what was before. What is delivered and
// acked since may be passed over then, while it is not beyond that.
func (f *former) shows(at *jetstream.ConsumerInfo, mine jetmodel.Info) bool {
	f.shown = f.shown || at.Delivered.Consumer > mine.Delivered
	return f.shown && at.Delivered.Consumer >= mine.Delivered && at.Delivered.Consumer <= max(mine.Delivered, f.delivered) &&
		at.Delivered.Stream <= max(mine.DeliveredStream, f.stream) &&
		at.AckFloor.Consumer <= at.Delivered.Consumer && at.AckFloor.Stream <= at.Delivered.Stream
}

// behind returns the first message behind an ack floor that a consumer delivers,
// 0 if there is none. Where the floor stands between two of them means nothing,
// and the server shows it as it was written last.
func (p *pair) behind(name string, floor uint64) uint64 {
	for _, m := range p.model.All(">", floor+1, 0) {
		if len(p.filter[name]) == 0 || slices.Contains(p.filter[name], m.Subject) {
			return m.Seq
		}
	}
	return 0
}

// settleFor is for how long a consumer may show what was before.
const settleFor = 20 * time.Second
