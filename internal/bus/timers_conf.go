package bus

import (
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/subjects"
)

func (c *Conf) readTimers(section entry) (err error) {
	c.timers.keys, err = section.decode(&c.timers.cfg)
	return err
}

// checkTimers refuses a stream of timers that would lose some, or fill up.
func checkTimers(cfg *jetstream.StreamConfig) error {
	if cfg.Retention != jetstream.WorkQueuePolicy || cfg.MaxAge != 0 || cfg.MaxMsgsPerSubject != 1 || !cfg.AllowMsgSchedules || !cfg.AllowAtomicPublish {
		return fmt.Errorf("stream %s: want retention workqueue, no max_age, max_msgs_per_subject 1, allow_msg_schedules and allow_atomic: else a wake could be forgotten before it is due, kept for ever after, or not stored", cfg.Name)
	}
	return nil
}

// dueConf returns the consumer from which session-actors pull what is due.
func (c *Conf) dueConf() consumerConf {
	out := consumerConf{cfg: c.timers.cfg, keys: slices.Concat(c.timers.keys, []string{"filter_subject"})}
	out.cfg.Name, out.cfg.Durable, out.cfg.FilterSubject = subjects.DueConsumer, subjects.DueConsumer, c.names.DueAll()
	return out
}
